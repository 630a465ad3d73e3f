// C[m][n] = epilogue(Σ_k A[m][k] · B[k][n]) in tf32, summed in float32, for a constant B that is packed and streamed,
// and an A whose tiles the copy engine brings (TMA): one BM×BN tile an rTask, multiplied by warp groups.
#pragma once

#include "common/wgmma_boxes.cuh"

namespace rk {

// With splits > 1 each rTask adds up a part of k only, and i0 is the split.
template <int BM, int BN, int KG, int ST, class Epi>
struct GemmBoxed {
  using T = GroupTile<float, float, BM, BN, KG, ST, 1, true>;
  static constexpr int kThreads = T::kThreads;
  static constexpr int kShared = T::kShared;
  static constexpr int kStreamStep = T::kStageB;

  struct Args {
    rt::TiledMatrix a;
    rt::Ref b;
    rt::Operand3 out;  // [split][m][n]
    int32_t M, N;
    Div tiles_m, tiles_n;
    int32_t tiles_k, split_k;  // k tiles of the whole contraction and of one split
    typename Epi::Args epi;
  };

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    int split = rtask;
    const int m0 = take_digit(split, a.tiles_m) * BM, n0 = take_digit(split, a.tiles_n) * BN;
    const int kt0 = split * a.split_k;
    const int count = a.tiles_k - kt0 < a.split_k ? a.tiles_k - kt0 : a.split_k;
    typename T::Acc acc = {};
    BoxProducts<T> products(t, a.a, kt0 * T::BK, m0, count);
    t.wait_for_inputs();
    products.run(acc);
    drain_groups<T, Epi>(t, acc, a.out, a.epi, {split, m0, n0, a.M, a.N});
  }
};

}  // namespace rk
