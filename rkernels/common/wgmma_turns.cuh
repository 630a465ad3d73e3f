// Products of warp groups that take turns at tiles: while one multiplies its tile, the other stores the sums of its
// own, so that tensor cores multiply all the time but at the beginning and the end of an rTask. One ring of stages has
// boxes of both operands, tile after tile. Two more warps send for them (rt/device/box_rings.cuh), one for each
// operand, since one would take longer for a stage than tensor cores do:
//
//   senders        tile 0 ─────────▶ tile 1 ─────────▶ tile 2 ─────────▶ …
//   warp group 0   multiply tile 0 │ drain tile 0    │ multiply tile 2 │ drain tile 2 …
//   warp group 1                   │ multiply tile 1 │ drain tile 1    │ multiply tile 3 …
//
// The groups share a ring, so that the order of stages keeps theirs, and only the group of a tile gives its stages
// back.
#pragma once

#include "common/wgmma_boxes.cuh"

namespace rk {

// A group's tile is 128×BN: two products of 64 rows that read the same columns. ST stages of both operands are in the
// ring.
template <class E, int BN_, int ST_>
struct TurnTile : RingTile<GroupTile<E, E, 128, BN_, 1, ST_, 1, true>> {
  using Base = RingTile<GroupTile<E, E, 128, BN_, 1, ST_, 1, true>>;
  static constexpr int kHalves = 2;
  using Turns = rt::RingTurns<4>;
  static constexpr int kShared = Base::kShared + Turns::kBytes;

  RT_DEVICE static Turns turns(const rt::Task& t) { return Turns(t, Base::first(t) + Base::kBehind); }
};

// The first sender makes the mbarriers. Only the group of a tile gives its stages back.
template <class T>
RT_DEVICE void open_turns(const rt::Task& t, int sender) {
  if (sender == 0 && t.tid % 32 == 0) T::turns(t).open();
  open_boxes<T>(t, sender, 4);
}

// A warp group's turns at the tiles of an rTask, of so many stages each. store(acc, tile) stores the sums of both
// halves.
template <class T, class Store>
RT_DEVICE void take_turns(const rt::Task& t, int tiles, int count, Store store) {
  typename T::Rings::Reader boxes(t, T::first(t), 0);
  const typename T::Turns turns = T::turns(t);
  int turn = rt::settled(t.tid / 128);
  if (turn > 0) boxes.skip(count);
  RK_UNROLL(1)
  for (; turn < tiles; turn += T::kGroups) {
    typename T::Acc acc[T::kHalves] = {};
    turns.await(turn);
    RK_UNROLL(1)
    for (int s = 0; s < count; ++s) {
      const rt::OperandPlace rows = rt::operand_in_warp(boxes.ahead()), columns = rows + T::kBytesA;
      boxes.take();
      rt::multiply_begin();
      RT_UNROLL
      for (int k = 0; k < T::kSlice / T::kDeep; ++k) {
        RT_UNROLL
        for (int half = 0; half < T::kHalves; ++half) {
          begin_product<T>(rows + (half * 64 * 128 + 32 * k), columns + k * (2 * T::kPitch), true, acc[half]);
        }
      }
      rt::multiply_end();
      rt::multiplied_but<1>();
      if (s > 0) boxes.done();
    }
    turns.pass(turn);
    RT_UNROLL
    for (int half = 0; half < T::kHalves; ++half) rt::multiplied(acc[half]);
    boxes.done();
    store(acc, turn);
    boxes.skip(count);
  }
}

// An rTask of warp groups that take turns: a.tall×a.wide tiles of the a.tiles_m×a.tiles_n of M×N results, each of
// a.tiles_k stages; a.columns rTasks lie beside each other. Rows(t, a, m, wide) sends for the rows of its tiles: those
// of row m of tiles come first, for each of the `wide` tiles there. `columns` is the other operand, which is constant.
template <class T, class Epi, class Rows, class Args>
RT_DEVICE void compute_turns(const rt::Task& t, const Args& a, const rt::TiledMatrix& columns, int M, int N,
                             int rtask) {
  int row = rtask;
  const int n = take_digit(row, a.columns) * a.wide, m = row * a.tall;
  const int wide = a.tiles_n - n < a.wide ? a.tiles_n - n : a.wide;
  const int tiles = (a.tiles_m - m < a.tall ? a.tiles_m - m : a.tall) * wide;
  const int sender = rt::settled(t.tid / 32) - T::kThreads / 32, stages = tiles * a.tiles_k, rows = T::BN * a.tiles_k;
  open_turns<T>(t, sender);
  if (sender == 0) return send_boxes<typename T::Rings>(t, T::first(t), Rows(t, a, m, wide), stages);
  if (sender == 1)
    return send_boxes<typename T::Rings>(t, T::first(t), typename T::Columns(t, columns, n * rows, (n + wide) * rows),
                                         stages);
  t.wait_for_inputs();
  take_turns<T>(t, tiles, a.tiles_k, [&](const typename T::Acc(&acc)[T::kHalves], int tile) {
    const TilePlace place{0, (m + tile / wide) * T::BM, (n + tile % wide) * T::BN, M, N};
    if constexpr (kDrainsAlone<T, Epi>) {
      GroupDrain<T, Epi, kHeldBeside, T::kHalves>::store_parts(t, acc, a.epi, [&](int half) {
        return SumPlace<typename Epi::Out>::template of<T>(t, a.out, place, 64 * half);
      });
    } else {
      const int group = rt::settled(t.tid / 128);
      RT_UNROLL
      for (int half = 0; half < T::kHalves; ++half) {
        drain_rows<T, Epi>(t, acc[half], T::sums(t, group), group, 64 * half, a.out, a.epi, place);
      }
    }
  });
}

}  // namespace rk
