// The tile of a contraction (tile.cuh) on tensor cores with elements of 16 bits: mma.sync.m16n8k16, float32 sums.
// Products of float16 and of bfloat16 are exact in float32.
#pragma once

#include "common/mma.cuh"
#include "common/types.cuh"

namespace rk {

template <class T>
struct HalfPlace;

// A warp owns WM×WN elements of the tile, as WM/16 by WN/8 fragments of 16×8. KG groups of warps share the tile's k
// range. An operand is held along k: by rows of A or columns of B, BK long; or across k: by values of k, BM or BN long.
// Fragments come from either with one instruction, so operands are held as they can be copied, 16 bytes at a time.
// Constants are packed along k. Rows are padded by 16 bytes, so that the eight rows of a block fall on all banks.
template <class E, int BM_, int BN_, int BK_, int WM_, int WN_, int KG_, int ST_, bool AcrossA_, bool AcrossB_>
struct HalfTile {
  static constexpr int BM = BM_, BN = BN_, BK = BK_, WM = WM_, WN = WN_, KG = KG_, ST = ST_;
  static constexpr bool kAcrossA = AcrossA_, kAcrossB = AcrossB_;
  static constexpr int kGroup = BM / WM * (BN / WN) * 32;
  static constexpr int kThreads = kGroup * KG;
  static constexpr int LDA = (kAcrossA ? BM : BK) + 8, LDB = (kAcrossB ? BN : BK) + 8, LDC = BN + 8;
  static constexpr int kLeftRows = BM, kLeftCols = BK, kRightRows = BN, kRightCols = BK;
  static constexpr int kStageA = (kAcrossA ? BK : BM) * LDA, kStageB = (kAcrossB ? BK : BN) * LDB;
  static constexpr int kRing = 2 * ST * (kStageA + kStageB);  // bytes
  static constexpr int kSums = 4 * KG * BM * LDC;
  static constexpr int kShared = kRing > kSums ? kRing : kSums;
  static constexpr int kSlice = BK / KG;
  static constexpr int MI = WM / 16, NI = WN / 8;
  using Element = E;  // of a stage
  using Acc = float[MI][NI][4];
  using At = HalfPlace<HalfTile>;
  static_assert(sizeof(E) == 2, "elements of 16 bits");
  static_assert(WM % 16 == 0 && WN % 16 == 0 && BM % WM == 0 && BN % WN == 0,
                "a tile is whole warp tiles of whole fragments");
  static_assert(kSlice % 16 == 0, "a slice is whole fragments deep");
};

// Which row of a block of 8×8 each lane gives the address of, as offsets in a stage. The blocks are in the order of a
// fragment's words: of A the rows 0 and 8 at depth 0, then at depth 8; of two fragments of B the depths 0 and 8 of the
// first, then of the second.
template <class T>
struct HalfPlace : MmaPlace<T> {
  int a, b;

  RT_DEVICE explicit HalfPlace(int tid) : MmaPlace<T>(tid) {
    const int row = this->lane % 8, second = this->lane / 8 % 2, third = this->lane / 16, k = this->group * T::kSlice;
    a = T::kAcrossA ? (k + 8 * third + row) * T::LDA + this->m + 8 * second
                    : (this->m + 8 * second + row) * T::LDA + k + 8 * third;
    b = T::kAcrossB ? (k + 8 * second + row) * T::LDB + this->n + 8 * third
                    : (this->n + 8 * third + row) * T::LDB + k + 8 * second;
  }
};

template <bool Across>
RT_DEVICE void load_half_fragments(uint32_t (&r)[4], const void* row) {
  if constexpr (Across) {
    rt::load_fragments_across(r, row);
  } else {
    rt::load_fragments(r, row);
  }
}

template <class E>
RT_DEVICE void multiply_half(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  if constexpr (std::is_same_v<E, half>) {
    rt::mma_f16(d, a, b);
  } else {
    rt::mma_bf16(d, a, b);
  }
}

// acc += A·B of one stage, this group's share of k.
template <class T>
RT_DEVICE void multiply_stage(const HalfPlace<T>& at, const typename T::Element* sa, const typename T::Element* sb,
                              float (&acc)[T::MI][T::NI][4]) {
  sa += at.a, sb += at.b;
  RK_UNROLL(2)
  for (int k = 0; k < T::kSlice; k += 16) {
    uint32_t a[T::MI][4], b[T::NI][2];
    RT_UNROLL
    for (int i = 0; i < T::MI; ++i) {
      load_half_fragments<T::kAcrossA>(a[i], sa + (T::kAcrossA ? 16 * i : 16 * i * T::LDA));
    }
    RT_UNROLL
    for (int j = 0; j < T::NI; j += 2) {
      uint32_t r[4];
      load_half_fragments<T::kAcrossB>(r, sb + (T::kAcrossB ? 8 * j : 8 * j * T::LDB));
      b[j][0] = r[0], b[j][1] = r[1], b[j + 1][0] = r[2], b[j + 1][1] = r[3];
    }
    RT_UNROLL
    for (int i = 0; i < T::MI; ++i) {
      RT_UNROLL
      for (int j = 0; j < T::NI; ++j) multiply_half<typename T::Element>(acc[i][j], a[i], b[j]);
    }
    sa += T::kAcrossA ? 16 * T::LDA : 16;
    sb += T::kAcrossB ? 16 * T::LDB : 16;
  }
}

// The tile on tensor cores for elements of type E: tf32 if that is float. AcrossA and AcrossB count for 16 bits alone.
template <class E, int BM, int BN, int BK, int WM, int WN, int KG, int ST, bool ConstA, bool ConstB, bool AcrossA,
          bool AcrossB, int Products>
struct TensorTileOf {
  using type = HalfTile<E, BM, BN, BK, WM, WN, KG, ST, AcrossA, AcrossB>;
};
template <int BM, int BN, int BK, int WM, int WN, int KG, int ST, bool ConstA, bool ConstB, bool AcrossA, bool AcrossB,
          int Products>
struct TensorTileOf<float, BM, BN, BK, WM, WN, KG, ST, ConstA, ConstB, AcrossA, AcrossB, Products> {
  using type = MmaTile<BM, BN, BK, WM, WN, KG, ST, ConstA, ConstB, Products>;
};
template <class E, int BM, int BN, int BK, int WM, int WN, int KG, int ST, bool ConstA, bool ConstB, bool AcrossA,
          bool AcrossB, int Products>
using TensorTile =
    typename TensorTileOf<E, BM, BN, BK, WM, WN, KG, ST, ConstA, ConstB, AcrossA, AcrossB, Products>::type;

}  // namespace rk
