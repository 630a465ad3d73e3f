// The tile of mma.cuh with the accuracy of float32, for a constant on the right: three products of float16
// (split.cuh), mma.sync.m16n8k16.
#pragma once

#include "common/split.cuh"

namespace rk {

template <class T>
struct SplitPlace;

// Operands are held as MmaTile's. The numbers of a column of B that a stage holds are two rows of parts, hi before lo,
// in the bytes of the float32 numbers.
template <int BM, int BN, int BK, int WM, int WN, int KG, int ST>
struct SplitTile : MmaTile<BM, BN, BK, WM, WN, KG, ST, false, true, 1> {
  static constexpr int kProducts = 3;
  static constexpr bool kSplit = true;
  using At = SplitPlace<SplitTile>;
  static_assert(BK / KG % 16 == 0, "a slice is whole fragments deep");
};

// Beside the places, the scales of the rows of A that a thread has, and the inverse of the constant's.
template <class T>
struct SplitPlace : MmaPlace<T> {
  RowScales scales[T::MI];
  float scale;
  RT_DEVICE explicit SplitPlace(int tid) : MmaPlace<T>(tid) {}
};

// The parts of the columns of a fragment.
struct SplitColumns {
  uint32_t hi[2], lo[2];
};

// Where the lane's line of a packed constant begins, whose lines have so many numbers of 32 bits: the depths of hi, or
// half a line behind them those of lo.
template <class T>
RT_DEVICE int split_column(const SplitPlace<T>& at, int line, int half) {
  return (at.n + at.lane % 8) * line + at.lane / 16 * half + at.lane / 8 % 2 * 4;
}

// acc += A·B, 16 deep. load(wide, i) brings fragment i of A; columns is at the lane's depths of B's first columns.
template <class T, class Load>
RT_DEVICE void multiply_split(SplitPlace<T>& at, const float* columns, int line, float (&acc)[T::MI][T::NI][4],
                              const Load& load) {
  SplitFragment a[T::MI];
  float down[T::MI][2];
  RT_UNROLL
  for (int i = 0; i < T::MI; ++i) {
    WideFragment wide[1];
    load(wide[0], i);
    at.scales[i].cover(wide);
    a[i].take(wide[0], at.scales[i]);
    RT_UNROLL
    for (int r = 0; r < 2; ++r) down[i][r] = at.scales[i].down(r) * at.scale;
  }
  RT_UNROLL
  for (int j = 0; j < T::NI; ++j) {
    uint32_t r[4];
    rt::load_fragments(r, columns + 8 * j * line);
    const SplitColumns b{{r[0], r[1]}, {r[2], r[3]}};
    RT_UNROLL
    for (int i = 0; i < T::MI; ++i) {
      float sum[4] = {};
      rt::mma_f16(sum, a[i].lo, b.hi);
      rt::mma_f16(sum, a[i].hi, b.lo);
      rt::mma_f16(sum, a[i].hi, b.hi);
      RT_UNROLL
      for (int e = 0; e < 4; ++e) acc[i][j][e] += sum[e] * down[i][e / 2];
    }
  }
}

// acc += A·B of one stage, this group's share of k.
template <class T>
RT_DEVICE void multiply_stage(SplitPlace<T>& at, const float* sa, const float* sb, float (&acc)[T::MI][T::NI][4]) {
  const float* row_a = sa + (at.m + at.lane % 16) * T::LDA + at.group * T::kSlice + at.lane / 16 * 4;
  const float* columns = sb + split_column(at, T::LDB, T::BK / 2) + at.group * (T::kSlice / 2);
  RK_UNROLL(1)
  for (int k = 0; k < T::kSlice; k += 16) {
    multiply_split(at, columns, T::LDB, acc, [&](WideFragment& wide, int i) { wide.load(row_a + 16 * i * T::LDA); });
    row_a += 16, columns += 8;
  }
}

}  // namespace rk
