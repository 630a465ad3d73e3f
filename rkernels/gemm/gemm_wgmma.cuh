// C[b][m][n] = epilogue(Σ_k prologue(A[b][m][k]) · B[b][k][n]), summed in float32, or in int32 for integers of 8 bits,
// for a constant B that is packed and streamed: one BM×BN tile an rTask, multiplied by warp groups.
#pragma once

#include "common/loaders.cuh"
#include "common/wgmma.cuh"

namespace rk {

// ModeA is kLoadVec4, kLoadByCol (lanes along k) or kLoadByRow (lanes along m). With splits > 1 each rTask adds up a
// part of k only; i0 counts (split, batch).
template <int BM, int BN, int KG, int ST, int Products, int ModeA, class A, class E, class Epi, class Pro>
struct GemmWgmma {
  using T = GroupTile<A, E, BM, BN, KG, ST, Products, ModeA == kLoadVec4>;
  using In = StagedAs<E, A>;
  static constexpr int kThreads = T::kThreads;
  static constexpr int kShared = T::kShared;
  static constexpr int kStreamStep = T::kStageB;

  struct Args {
    rt::Ref a, b, scale;  // scale is that of B's parts, where there are three products
    rt::Operand3 out;     // [split·batch][m][n]
    int32_t M, N, K;
    Div tiles_m, tiles_n;
    int32_t tiles_k, split_k;  // k tiles of the whole contraction and of one split
    Div splits;
    Div batch1, batch2;          // batch = (b0·batch1 + b1)·batch2 + b2
    int64_t a0, a1, a2, am, ak;  // element strides of A over b0, b1, b2, m, k
    typename Epi::Args epi;
    typename Pro::Args pro;
  };

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    int batch = rtask;
    const int mt = take_digit(batch, a.tiles_m), nt = take_digit(batch, a.tiles_n), i0 = batch;
    const int split = take_digit(batch, a.splits);
    const int b2 = take_digit(batch, a.batch2), b1 = take_digit(batch, a.batch1), b0 = batch;
    const typename T::At at(t.tid);
    const int m0 = mt * BM, kt0 = split * a.split_k;
    const int m = m0 + at.row, k = kt0 * T::BK + at.kg * T::kSlice;
    const int count = a.tiles_k - kt0 < a.split_k ? a.tiles_k - kt0 : a.split_k;
    const In* pa = t.inputs(t.template ptr<const In>(a.a) +
                            place(b0, a.a0, place(b1, a.a1, place(b2, a.a2, place(m, a.am, place(k, a.ak))))));
    typename T::Acc acc = {};
    Rows rows{{pa, a.am, a.ak, a.M - m, a.K - k, t.tid % 128, a.pro}};
    GroupProducts<T, Rows> products(t, rows, count, ConstantScale<T>(t, a.scale));
    const TilePlace place = {i0, m0, nt * BN, a.M, a.N};
    TileDrain<T, Epi> drain(t, a.out, a.epi, place);
    products.run(acc);
    drain.store(acc);
  }

 private:
  // Brings a group's rows of the next k tile, its share of k.
  struct Rows {
    StridedLoader<128, 64, T::kSlice, T::LDA, true, ModeA, Pro, In, E, T::kSwizzled> window;
    RT_DEVICE void issue(E* stage) {
      window.issue(stage);
      if constexpr (T::KG > 1) window.template pass<T::BK - T::kSlice>();
    }
  };
};

}  // namespace rk
