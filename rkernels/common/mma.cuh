// The tile of a contraction (tile.cuh) on tensor cores: mma.sync.m16n8k8 on tf32 operands, float32 sums.
//
// A tensor core reads the upper 19 bits of a float32 (1 sign, 8 exponent, 10 mantissa: tf32). With one product an
// operand is rounded to them. With three, each operand x is split in two parts, hi = tf32(x) and
// lo = tf32(x - hi), and hi·hi + hi·lo + lo·hi has the accuracy of a float32 product. What is left out, lo·lo, is
// below half a unit in the last place. Where an operand is constant, parts of float16 are faster (split_tile.cuh).
#pragma once

#include "common/tile.cuh"
#include "rt/device/mma.cuh"

namespace rk {

template <class T>
struct MmaPlace;

// A warp owns WM×WN elements of the tile, as WM/16 by WN/8 fragments of 16×8. KG groups of warps share the tile's
// k range. A is held by rows, BK long. So is a constant B, by columns of the matrix; what is produced is held by rows,
// BN long. Rows are padded so that the lanes of a fragment's load fall on all banks.
// Constants are packed as tf32.
template <int BM_, int BN_, int BK_, int WM_, int WN_, int KG_, int ST_, bool ConstA_, bool ConstB_, int Products_>
struct MmaTile {
  static constexpr int BM = BM_, BN = BN_, BK = BK_, WM = WM_, WN = WN_, KG = KG_, ST = ST_;
  static constexpr bool ConstA = ConstA_, ConstB = ConstB_;
  static constexpr bool kAcrossA = false, kAcrossB = !ConstB;
  static constexpr int kProducts = Products_;
  static constexpr int kGroup = BM / WM * (BN / WN) * 32;
  static constexpr int kThreads = kGroup * KG;
  static constexpr int LDA = BK + 4, LDB = ConstB ? BK + 4 : BN + 8, LDC = BN + 8;
  static constexpr int kLeftRows = BM, kLeftCols = BK, kRightRows = BN, kRightCols = BK;
  static constexpr int kStageA = BM * LDA, kStageB = ConstB ? kRightRows * LDB : BK * LDB;
  static constexpr int kRing = ST * (kStageA + kStageB);
  static constexpr int kSums = KG * BM * LDC;
  static constexpr int kShared = 4 * (kRing > kSums ? kRing : kSums);
  static constexpr int kSlice = BK / KG;
  static constexpr int MI = WM / 16, NI = WN / 8;
  using Element = float;  // of a stage
  using Acc = float[MI][NI][4];
  using At = MmaPlace<MmaTile>;
  static_assert(WM % 16 == 0 && WN % 8 == 0 && BM % WM == 0 && BN % WN == 0,
                "a tile is whole warp tiles of whole fragments");
  static_assert(kSlice % 8 == 0, "a slice is whole fragments deep");
  static_assert(kProducts == 1 || kProducts == 3 && !ConstA && !ConstB, "tf32, or float32 out of three products");
};

// Where a thread's first elements of a fragment are: row g and k or column q of it.
template <class T>
struct MmaPlace {
  int m, n, group;  // of the warp's corner in the tile
  int g, q;         // lane/4 and lane%4
  int lane;
  RT_DEVICE explicit MmaPlace(int tid) {
    lane = tid % 32;
    const int warp = tid % T::kGroup / 32;
    group = rt::settled(tid / T::kGroup);
    m = rt::settled(warp % (T::BM / T::WM) * T::WM);
    n = rt::settled(warp / (T::BM / T::WM) * T::WN);
    g = lane / 4, q = lane % 4;
  }
};

// An operand's parts.
template <int Products, int N>
struct Parts {
  uint32_t hi[N], lo[Products == 3 ? N : 1];
  RT_DEVICE void set(int i, float x) {
    hi[i] = rt::to_tf32(x);
    if constexpr (Products == 3) lo[i] = rt::to_tf32(x - rk::bit_cast<float>(hi[i]));
  }
};

// d += A·B out of the parts of two fragments. Of three products the sum eight deep is made by itself and added in
// float32: tensor cores cut off the bits that do not fit while they add, always towards zero, and over many additions
// and layers that shows as a bias.
template <int Products>
RT_DEVICE void multiply_parts(const Parts<Products, 4>& a, const Parts<Products, 2>& b, float (&d)[4]) {
  if constexpr (Products == 3) {
    float sum[4] = {};
    rt::mma_tf32(sum, a.lo, b.hi);
    rt::mma_tf32(sum, a.hi, b.lo);
    rt::mma_tf32(sum, a.hi, b.hi);
    RT_UNROLL
    for (int e = 0; e < 4; ++e) d[e] += sum[e];
  } else {
    rt::mma_tf32(d, a.hi, b.hi);
  }
}

// acc += A·B of one stage, this group's share of k.
template <class T>
RT_DEVICE void multiply_stage(const MmaPlace<T>& at, const float* sa, const float* sb, float (&acc)[T::MI][T::NI][4]) {
  static_assert(T::NI % 2 == 0, "fragments of B come in pairs");
  constexpr int P = T::kProducts;
  // The rows that a lane gives the address of: of A in the order of a fragment's registers, of B of two fragments.
  const float* row_a = sa + (at.m + at.lane % 16) * T::LDA + at.group * T::kSlice + at.lane / 16 * 4;
  const float* row_b =
      T::ConstB ? sb + (at.n + at.lane / 16 * 8 + at.lane % 8) * T::LDB + at.group * T::kSlice + at.lane / 8 % 2 * 4
                : sb + (at.group * T::kSlice + at.q) * T::LDB + at.n + at.g;
  RK_UNROLL(T::kProducts == 3 ? 1 : 2)
  for (int k = 0; k < T::kSlice; k += 8) {
    Parts<P, 4> a[T::MI];
    Parts<P, 2> b[T::NI];
    RT_UNROLL
    for (int i = 0; i < T::MI; ++i) {
      uint32_t r[4];
      rt::load_fragments(r, row_a + 16 * i * T::LDA);
      RT_UNROLL
      for (int e = 0; e < 4; ++e) {
        if constexpr (T::ConstA) {
          a[i].hi[e] = r[e];
        } else {
          a[i].set(e, rk::bit_cast<float>(r[e]));
        }
      }
    }
    if constexpr (T::ConstB) {
      RT_UNROLL
      for (int j = 0; j < T::NI; j += 2) {
        uint32_t r[4];
        rt::load_fragments(r, row_b + 8 * j * T::LDB);
        b[j].hi[0] = r[0], b[j].hi[1] = r[1], b[j + 1].hi[0] = r[2], b[j + 1].hi[1] = r[3];
      }
    } else {
      RT_UNROLL
      for (int j = 0; j < T::NI; ++j) {
        const float* p = row_b + 8 * j;
        b[j].set(0, p[0]), b[j].set(1, p[4 * T::LDB]);
      }
    }
    RT_UNROLL
    for (int i = 0; i < T::MI; ++i) {
      RT_UNROLL
      for (int j = 0; j < T::NI; ++j) multiply_parts<P>(a[i], b[j], acc[i][j]);
    }
    row_a += 8, row_b += T::ConstB ? 8 : 8 * T::LDB;
  }
}

// Puts what a thread owns of the tile into its group's sums.
template <class T, class Sum>
RT_DEVICE void put_sums(const MmaPlace<T>& at, const Sum (&acc)[T::MI][T::NI][4], Sum* sums) {
  sums += (at.group * T::BM + at.m + at.g) * T::LDC + at.n + 2 * at.q;
  RT_UNROLL
  for (int i = 0; i < T::MI; ++i) {
    RT_UNROLL
    for (int j = 0; j < T::NI; ++j) {
      Sum* p = sums + 16 * i * T::LDC + 8 * j;
      *reinterpret_cast<Pack<Sum, 2>*>(p) = Pack<Sum, 2>{{acc[i][j][0], acc[i][j][1]}};
      *reinterpret_cast<Pack<Sum, 2>*>(p + 8 * T::LDC) = Pack<Sum, 2>{{acc[i][j][2], acc[i][j][3]}};
    }
  }
}

}  // namespace rk
