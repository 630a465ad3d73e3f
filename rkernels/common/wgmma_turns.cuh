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
struct TurnTile : GroupTile<E, E, 128, BN_, 1, ST_, 1, true> {
  using Base = GroupTile<E, E, 128, BN_, 1, ST_, 1, true>;
  using At = GroupPlace<TurnTile>;
  static constexpr int kHalves = 2, kBytesA = 128 * Base::BM;
  static_assert(BN_ % 64 == 0 && Base::kStageB == 128 * BN_, "rows of 128 bytes");
  using Rings = rt::BoxRings<1, ST_, 64, (Base::BM + BN_) / 64>;
  static constexpr int kColumns = 32, LDC = kColumns + 8;  // of the results that are stored at a time
  static constexpr int kSumBytes = 4 * 64 * LDC;           // of a group, behind the ring
  using Turns = rt::RingTurns<4>;
  static constexpr int kPlaceOfTurns = Rings::kBytes + Base::kGroups * kSumBytes;
  static constexpr int kShared = Rings::kAlign + kPlaceOfTurns + Turns::kBytes;
  static constexpr int kSenders = 2;
  // What sends for B: the stages of tiles that lie beside each other.
  using Columns = rt::PackedWalk<BN_, Base::BM / 64>;

  RT_DEVICE static char* first(const rt::Task& t) { return rt::aligned_shared<Rings::kAlign>(t.smem); }
  RT_DEVICE static float* sums(const rt::Task& t, int group) {
    return reinterpret_cast<float*>(first(t) + Rings::kBytes + group * kSumBytes);
  }
  RT_DEVICE static Turns turns(const rt::Task& t) { return Turns(t, first(t) + kPlaceOfTurns); }
};

// The first sender makes the mbarriers, and then all threads meet: at one place in code, since compute-sanitizer takes
// threads that meet elsewhere for divergent.
template <class T>
RT_DEVICE void open_turns(const rt::Task& t, int sender) {
  if (sender == 0) {
    const bool one = t.tid % 32 == 0;
    if (one) T::turns(t).open();
    T::Rings::open(T::first(t), one, 4, T::kSenders);
  }
  t.sync();
  t.wait_for_inputs();
}

// What a sender does: it sends for so many stages.
template <class T, class Walk>
RT_DEVICE void send_for_turns(const rt::Task& t, const Walk& walk, int stages) {
  typename T::Rings::template Sender<Walk> sender(t, T::first(t), walk);
  sender.refill(stages - sender.fill(stages));
}

// A warp group's turns at the tiles of an rTask, of so many stages each. store(acc, half, tile) stores the sums of 64
// rows.
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
      const char* stage = boxes.next();
      const rt::OperandPlace rows = rt::operand_in_warp(stage), columns = rt::operand_in_warp(stage + T::kBytesA);
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
    RT_UNROLL
    for (int half = 0; half < T::kHalves; ++half) store(acc[half], half, turn);
    boxes.skip(count);
  }
}

}  // namespace rk
