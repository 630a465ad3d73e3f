// C[m][n] = epilogue(Σ_k A[m][k] · B[k][n]) in tf32 or 16 bits, summed in float32, or of integers of 8 bits, summed in
// int32, for a constant B, by warp groups whose operands the copy engine brings (common/wgmma_boxes.cuh). An rTask is
// a strip: tiles of BM×BN results that lie beside each other.
//
//   columns of the result   0 … BN     BN … 2·BN   2·BN … 3·BN
//   strip of three tiles    multiply   multiply    multiply         one warp group for 64 rows of the strip
//                                   └▶ drain    └▶ drain    └▶ drain
//
// While the sums of a tile leave, the operands of the next one come: the ring does not stop at the end of a tile.
#pragma once

#include "common/wgmma_boxes.cuh"
#include "rt/device/div.cuh"

namespace rk {

// With splits > 1 each rTask adds up a part of k only, i0 is the split, and a strip is one tile, whose part of B is in
// one piece. It is one tile also where groups share k (KG), each of which takes its own box of the same rows. With Norm
// rows of A are divided by their root mean squares (1) or standard deviations (2), which a sum of all of k tells. RowsA
// are the rows of a box of A: half of a tile's 64 if A has no more.
template <int BM, int BN, int KG, int ST, int Products, int Norm, int RowsA, class A, class E, class Epi>
struct GemmStrip {
  static_assert(Products == 1);
  using T = RingTile<GroupTile<A, E, BM, BN, KG, ST, 1, true>, RowsA>;
  static constexpr int kThreads = T::kThreads + 32 * T::kSenders;
  static constexpr int kShared = T::kShared;
  static constexpr bool kEarly = true;  // the columns come before the inputs

  struct Args {
    rt::TiledMatrix a, b;
    rt::Operand3 out;  // [split][m][n]
    int32_t M, N;
    Div tiles_m, strips_n;
    int32_t tiles_n, wide;     // tiles along n, and how many of them a strip has
    int32_t tiles_k, split_k;  // k tiles of the whole contraction and of one split
    float share, epsilon;      // of an element in a row's mean, and what is added to the mean square
    typename Epi::Args epi;
  };

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    int split = rtask;
    const int m0 = take_digit(split, a.tiles_m) * BM, first = take_digit(split, a.strips_n) * a.wide;
    const int tiles = a.tiles_n - first < a.wide ? a.tiles_n - first : a.wide;
    const int kt0 = split * a.split_k;
    const int count = a.tiles_k - kt0 < a.split_k ? a.tiles_k - kt0 : a.split_k;
    const int sender = rt::settled(t.tid / 32) - T::kThreads / 32, stages = count * tiles;
    open_boxes<T>(t, sender, T::kThreads / 32);
    if (sender == 0) {
      return send_boxes<typename T::Rings>(t, T::first(t),
                                           typename T::Rows(t, a.a, kt0 * T::BK, m0, T::kSlice, count, 0), stages);
    }
    if (sender == 1) {
      const int row = (first * a.tiles_k + kt0) * T::kRowsB;
      return send_boxes<typename T::Rings>(t, T::first(t), typename T::Columns(t, a.b, row, row + stages * T::kRowsB),
                                           stages);
    }
    t.wait_for_inputs();
    BoxGroup<T, Norm> group(t);
    const int boxes = static_cast<int>(a.a.columns + T::kSlice - 1) / T::kSlice - kt0 * KG;
    RK_UNROLL(1)
    for (int i = 0; i < tiles; ++i) {
      multiply_and_store<T, Epi>(t, a.out, a.epi, {split, m0, (first + i) * BN, a.M, a.N}, [&](typename T::Acc& acc) {
        group.run(count, boxes, KG == 1 && i + 1 < tiles, acc);
        group.normalise(t, a.share, a.epsilon, acc);
      });
    }
  }
};

}  // namespace rk
