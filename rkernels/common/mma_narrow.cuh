// The tile of a contraction (tile.cuh) on tensor cores with elements of 16 or 8 bits: mma.sync.m16n8k16 with float32
// sums, or mma.sync.m16n8k32 with int32 sums. A fragment is 32 bytes deep either way, and its bytes lie in the lanes in
// the same places, so that one tile serves both. Products of float16 and of bfloat16 are exact in float32, those of
// integers in int32.
#pragma once

#include "common/mma.cuh"
#include "common/split_tile.cuh"
#include "common/types.cuh"

namespace rk {

template <class T>
struct NarrowPlace;

// What a NarrowTile multiplies: elements of 16 bits, or of 8 bits with or without a sign.
template <class E>
struct HalfProducts {
  using Element = E;  // of a stage
  using Sum = float;
  static RT_DEVICE void multiply(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
    if constexpr (std::is_same_v<E, half>) {
      rt::mma_f16(d, a, b);
    } else {
      rt::mma_bf16(d, a, b);
    }
  }
};
template <bool SignedA, bool SignedB>
struct ByteProducts {
  using Element = int8_t;  // for both operands: a stage holds bytes, of which the instruction knows the signs
  using Sum = int32_t;
  static RT_DEVICE void multiply(int32_t (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
    rt::mma_int8<SignedA, SignedB>(d, a, b);
  }
};

// The lower or upper float16 of a word as tf32, which has all its numbers.
RT_DEVICE uint32_t widened_half(uint32_t two, int upper) {
  return rk::bit_cast<uint32_t>(float(half::from_bits(static_cast<uint16_t>(upper ? two >> 16 : two))));
}

// d += A·B of fragments of E that are 32 bytes deep, of float as tf32.
template <class E>
RT_DEVICE void multiply_fragments(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  if constexpr (std::is_same_v<E, float>) {
    rt::mma_tf32(d, a, b);
  } else {
    HalfProducts<E>::multiply(d, a, b);
  }
}

// A warp owns WM×WN elements of the tile, as WM/16 by WN/8 fragments of 16×8. KG groups of warps share the tile's k
// range. An operand is held along k: by rows of A or columns of B, BK long; or across k: by values of k, BM or BN long.
// Fragments of 16 bits come from either with one instruction, so operands are held as they can be copied, 16 bytes at a
// time; those of 8 bits come from operands held along k. Constants are packed along k. Rows are padded by 16 bytes, so
// that the eight rows of a block fall on all banks.
template <class P, int BM_, int BN_, int BK_, int WM_, int WN_, int KG_, int ST_, bool AcrossA_, bool AcrossB_>
struct NarrowTile {
  using Products = P;
  using Element = typename P::Element;  // of a stage
  static constexpr int BM = BM_, BN = BN_, BK = BK_, WM = WM_, WN = WN_, KG = KG_, ST = ST_;
  static constexpr bool kAcrossA = AcrossA_, kAcrossB = AcrossB_;
  static constexpr int kGroup = BM / WM * (BN / WN) * 32;
  static constexpr int kThreads = kGroup * KG;
  static constexpr int kRun = kPerLoad<Element>;  // elements of 16 bytes, half a fragment's depth
  static constexpr int LDA = (kAcrossA ? BM : BK) + kRun, LDB = (kAcrossB ? BN : BK) + kRun, LDC = BN + 8;
  static constexpr int kLeftRows = BM, kLeftCols = BK, kRightRows = BN, kRightCols = BK;
  static constexpr int kStageA = (kAcrossA ? BK : BM) * LDA, kStageB = (kAcrossB ? BK : BN) * LDB;
  static constexpr int kRing = static_cast<int>(sizeof(Element)) * ST * (kStageA + kStageB);  // bytes
  static constexpr int kSums = 4 * KG * BM * LDC;
  static constexpr int kShared = kRing > kSums ? kRing : kSums;
  static constexpr int kSlice = BK / KG;
  static constexpr int MI = WM / 16, NI = WN / 8;
  using Acc = typename P::Sum[MI][NI][4];
  using At = NarrowPlace<NarrowTile>;
  static_assert(sizeof(Element) == 2 || !kAcrossA && !kAcrossB, "fragments of 8 bits come from operands held along k");
  static_assert(WM % 16 == 0 && WN % 8 == 0 && BM % WM == 0 && BN % WN == 0,
                "a tile is whole warp tiles of whole fragments");
  static_assert(kSlice % (2 * kRun) == 0, "a slice is whole fragments deep");
};

// Which row of a block of 8×8 each lane gives the address of, as offsets in a stage. The blocks are in the order of a
// fragment's words: of A the rows 0 and 8 at depth 0, then 16 bytes deeper; of two fragments of B the same depths of
// the first, then of the second.
template <class T>
struct NarrowPlace : MmaPlace<T> {
  int a, b;

  RT_DEVICE explicit NarrowPlace(int tid) : MmaPlace<T>(tid) {
    const int row = this->lane % 8, second = this->lane / 8 % 2, third = this->lane / 16, k = this->group * T::kSlice;
    a = T::kAcrossA ? (k + 8 * third + row) * T::LDA + this->m + 8 * second
                    : (this->m + 8 * second + row) * T::LDA + k + T::kRun * third;
    b = T::kAcrossB ? (k + 8 * second + row) * T::LDB + this->n + 8 * third
                    : (this->n + 8 * third + row) * T::LDB + k + T::kRun * second;
  }
};

template <bool Across>
RT_DEVICE void load_narrow_fragments(uint32_t (&r)[4], const void* row) {
  if constexpr (Across) {
    rt::load_fragments_across(r, row);
  } else {
    rt::load_fragments(r, row);
  }
}

// acc += A·B of one stage, this group's share of k.
template <class T>
RT_DEVICE void multiply_stage(const NarrowPlace<T>& at, const typename T::Element* sa, const typename T::Element* sb,
                              typename T::Acc& acc) {
  static_assert(T::NI % 2 == 0, "fragments of B come in pairs");
  constexpr int kDepth = 2 * T::kRun;
  sa += at.a, sb += at.b;
  RK_UNROLL(2)
  for (int k = 0; k < T::kSlice; k += kDepth) {
    uint32_t a[T::MI][4], b[T::NI][2];
    RT_UNROLL
    for (int i = 0; i < T::MI; ++i) {
      load_narrow_fragments<T::kAcrossA>(a[i], sa + (T::kAcrossA ? 16 * i : 16 * i * T::LDA));
    }
    RT_UNROLL
    for (int j = 0; j < T::NI; j += 2) {
      uint32_t r[4];
      load_narrow_fragments<T::kAcrossB>(r, sb + (T::kAcrossB ? 8 * j : 8 * j * T::LDB));
      b[j][0] = r[0], b[j][1] = r[1], b[j + 1][0] = r[2], b[j + 1][1] = r[3];
    }
    RT_UNROLL
    for (int i = 0; i < T::MI; ++i) {
      RT_UNROLL
      for (int j = 0; j < T::NI; ++j) T::Products::multiply(acc[i][j], a[i], b[j]);
    }
    sa += T::kAcrossA ? kDepth * T::LDA : kDepth;
    sb += T::kAcrossB ? kDepth * T::LDB : kDepth;
  }
}

// The tile on tensor cores for elements of type E, with tf32 for float and integers of 8 bits for int8_t. A and B are
// the types of the operands in memory, which say whether such integers have a sign. AcrossA and AcrossB count for 16
// bits alone.
template <class E, class A, class B, int BM, int BN, int BK, int WM, int WN, int KG, int ST, bool ConstA, bool ConstB,
          bool AcrossA, bool AcrossB, int Products>
struct TensorTileOf {
  using type = NarrowTile<HalfProducts<E>, BM, BN, BK, WM, WN, KG, ST, AcrossA, AcrossB>;
};
template <class A, class B, int BM, int BN, int BK, int WM, int WN, int KG, int ST, bool ConstA, bool ConstB,
          bool AcrossA, bool AcrossB, int Products>
struct TensorTileOf<float, A, B, BM, BN, BK, WM, WN, KG, ST, ConstA, ConstB, AcrossA, AcrossB, Products> {
  using type = MmaTile<BM, BN, BK, WM, WN, KG, ST, ConstA, ConstB, Products>;
};
template <class A, class B, int BM, int BN, int BK, int WM, int WN, int KG, int ST, bool AcrossA, bool AcrossB>
struct TensorTileOf<float, A, B, BM, BN, BK, WM, WN, KG, ST, false, true, AcrossA, AcrossB, 3> {
  using type = SplitTile<BM, BN, BK, WM, WN, KG, ST>;
};
template <class A, class B, int BM, int BN, int BK, int WM, int WN, int KG, int ST, bool ConstA, bool ConstB,
          bool AcrossA, bool AcrossB, int Products>
struct TensorTileOf<int8_t, A, B, BM, BN, BK, WM, WN, KG, ST, ConstA, ConstB, AcrossA, AcrossB, Products> {
  using type =
      NarrowTile<ByteProducts<std::is_signed_v<A>, std::is_signed_v<B>>, BM, BN, BK, WM, WN, KG, ST, AcrossA, AcrossB>;
};
template <class E, class A, class B, int BM, int BN, int BK, int WM, int WN, int KG, int ST, bool ConstA, bool ConstB,
          bool AcrossA, bool AcrossB, int Products>
using TensorTile =
    typename TensorTileOf<E, A, B, BM, BN, BK, WM, WN, KG, ST, ConstA, ConstB, AcrossA, AcrossB, Products>::type;

}  // namespace rk
