// C[b][m][n] = epilogue(Σ_k prologue(A[b][m][k]) · B[b][k][n]), summed in float32, one BM×BN tile an rTask.
#pragma once

#include "common/loaders.cuh"
#include "common/tile.cuh"
#include "rt/device/device.cuh"

namespace rk {

// The product of elements of types A and B by tiles of type T. ModeA and ModeB say how the windows of A and B are read,
// with the dim as columns along which the tile holds them: kLoadVec4, kLoadByCol or kLoadByRow, or kLoadPacked for B.
// With splits > 1 each rTask adds up a part of k only; i0 counts (split, batch).
template <class T, int ModeA, int ModeB, class A, class B, class Epi, class Pro>
struct GemmOf {
  using E = typename T::Element;
  static constexpr int BM = T::BM, BN = T::BN, BK = T::BK;
  static constexpr int kThreads = T::kThreads;
  static constexpr int kShared = T::kShared;
  static constexpr bool kEarly = true;

  struct Args {
    rt::Ref a, b, scale;  // scale is that of B's parts, where it is a constant and there are three products
    rt::Operand3 out;     // [split·batch][m][n]
    int32_t M, N, K;
    Div tiles_m, tiles_n;
    int32_t tiles_k, split_k;  // k tiles of the whole contraction and of one split
    Div splits;
    Div batch1, batch2;          // batch = (b0·batch1 + b1)·batch2 + b2
    int64_t a0, a1, a2, am, ak;  // element strides of A over b0, b1, b2, m, k
    int64_t b0, b1, b2, bk, bn;  // of B; a packed B has one block of tiles_n·tiles_k tiles a batch
    typename Epi::Args epi;
    typename Pro::Args pro;
  };

  using LoadA = std::conditional_t<T::kAcrossA, StridedLoader<kThreads, BK, BM, T::LDA, false, ModeA, Pro, A, E>,
                                   StridedLoader<kThreads, BM, BK, T::LDA, true, ModeA, Pro, A, E>>;
  static constexpr int kModeB = ModeB == kLoadPacked ? kLoadByCol : ModeB;  // without LoadB it does not matter
  using LoadB =
      std::conditional_t<T::kAcrossB, StridedLoader<kThreads, BK, BN, T::LDB, false, kModeB, NoPrologue, B, E>,
                         StridedLoader<kThreads, BN, BK, T::LDB, true, kModeB, NoPrologue, B, E>>;

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    int batch = rtask;
    const int mt = take_digit(batch, a.tiles_m), nt = take_digit(batch, a.tiles_n), i0 = batch;
    const int split = take_digit(batch, a.splits);
    const int b2 = take_digit(batch, a.batch2), b1 = take_digit(batch, a.batch1), b0 = batch;
    const int m0 = mt * BM, n0 = nt * BN, kt0 = split * a.split_k;
    const int count = a.tiles_k - kt0 < a.split_k ? a.tiles_k - kt0 : a.split_k;

    const A* pa = t.template ptr<const A>(a.a) +
                  place(b0, a.a0, place(b1, a.a1, place(b2, a.a2, place(m0, a.am, place(kt0 * BK, a.ak)))));
    const B* pb = t.template ptr<const B>(a.b) + place(b0, a.b0, place(b1, a.b1, place(b2, a.b2)));
    const int left_k = a.K - kt0 * BK;
    LoadA load_a = T::kAcrossA ? LoadA{pa, a.ak, a.am, left_k, a.M - m0, t.tid, a.pro}
                               : LoadA{pa, a.am, a.ak, a.M - m0, left_k, t.tid, a.pro};
    typename T::Acc acc = {};
    if constexpr (ModeB == kLoadPacked) {
      PackedLoader<kThreads, T::kRightRows, T::kRightCols, T::LDB, B, E> load_b{
          pb + place(nt * a.tiles_k + kt0, T::kRightRows * T::kRightCols), t.tid, mt == 0};
      multiply_tiles<T>(t, load_a, load_b, count, acc, ConstantScale<T>(t, a.scale));
    } else {
      const NoPrologue::Args none{};
      pb += place(kt0 * BK, a.bk, place(n0, a.bn));
      LoadB load_b = T::kAcrossB ? LoadB{pb, a.bk, a.bn, left_k, a.N - n0, t.tid, none}
                                 : LoadB{pb, a.bn, a.bk, a.N - n0, left_k, t.tid, none};
      multiply_tiles<T>(t, load_a, load_b, count, acc);
    }
    drain_tile<T, Epi>(t, acc, a.out, a.epi, {i0, m0, nt * BN, a.M, a.N});
  }
};

template <int BM, int BN, int BK, int TM, int TN, int KG, int ST, int ModeA, int ModeB, class A, class B, class Epi,
          class Pro>
struct GemmTiled : GemmOf<Tile<BM, BN, BK, TM, TN, KG, ST, kRows>, ModeA, ModeB, A, B, Epi, Pro> {};

}  // namespace rk
