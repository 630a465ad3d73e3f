// C[m][n] = epilogue(Σ_k A[m][k] · B[k][n]) in tf32 or 16 bits, summed in float32, for a constant B that is packed and
// streamed, and an A whose tiles the copy engine brings (TMA). An rTask is a strip: tiles of BM×BN results that lie
// beside each other.
//
//   columns of the result   0 … BN     BN … 2·BN   2·BN … 3·BN
//   strip of three tiles    multiply   multiply    multiply         one warp group for 64 rows of the strip
//                                   └▶ drain    └▶ drain    └▶ drain
//
// While the sums of a tile leave, the operands of the next one come: neither ring stops at the end of a tile.
#pragma once

#include "common/wgmma_boxes.cuh"

namespace rk {

// With splits > 1 each rTask adds up a part of k only, i0 is the split, and a strip is one tile: the stream of an rTask
// is one block, which the parts of several tiles are not. It is one tile also where two groups share k (KG), each of
// which takes its own box of the same rows.
template <int BM, int BN, int KG, int ST, int Products, class E, class Epi>
struct GemmStrip {
  static_assert(Products == 1);
  using T = StripTile<E, BM, BN, KG, ST>;
  static constexpr int kThreads = T::kThreads + 32;  // with the sender
  static constexpr int kShared = T::kShared;
  static constexpr int kStreamStep = T::kStageB;

  struct Args {
    rt::TiledMatrix a;
    rt::Ref b;
    rt::Operand3 out;  // [split][m][n]
    int32_t M, N;
    Div tiles_m, strips_n;
    int32_t tiles_n, wide;     // tiles along n, and how many of them a strip has
    int32_t tiles_k, split_k;  // k tiles of the whole contraction and of one split
    typename Epi::Args epi;
  };

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    int split = rtask;
    const int m0 = take_digit(split, a.tiles_m) * BM, first = take_digit(split, a.strips_n) * a.wide;
    const int tiles = a.tiles_n - first < a.wide ? a.tiles_n - first : a.wide;
    const int kt0 = split * a.split_k;
    const int count = a.tiles_k - kt0 < a.split_k ? a.tiles_k - kt0 : a.split_k;
    if (rt::settled(t.tid / 32) == T::kThreads / 32) {
      send(t, a, kt0 * T::BK, m0, count, tiles);
      if constexpr (KG > 1) meet(t, a.N - first * BN);
      return;
    }
    BoxProducts<T> products(t, count);
    t.wait_for_inputs();
    RK_UNROLL(1)
    for (int i = 0; i < tiles; ++i) {
      typename T::Acc acc = {};
      products.run(acc);
      drain_group<T, Epi>(t, acc, a.out, a.epi, {split, m0, (first + i) * BN, a.M, a.N});
    }
    products.end();
  }

 private:
  RT_DEVICE static void send(const rt::Task& t, const Args& a, int column, int row, int count, int tiles) {
    using Walk = rt::MatrixWalk<64, KG>;
    auto sender = T::sender(t, Walk(t, a.a, column, row, T::kSlice, count, 0));
    sender.open(4 * KG);
    t.sync();
    t.wait_for_inputs();
    const int stages = count * tiles;
    sender.refill(stages - sender.fill(stages));
    t.stream.leave(stages * T::kStageB);
  }
  // All threads meet twice for each part of a tile's columns where groups add up their sums (drain_group).
  RT_DEVICE static void meet(const rt::Task& t, int columns) {
    RK_UNROLL(1)
    for (int n = columns < BN ? columns : BN; n > 0; n -= T::kColumns) {
      t.sync();
      t.sync();
    }
  }
};

}  // namespace rk
