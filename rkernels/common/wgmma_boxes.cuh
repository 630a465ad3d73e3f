// Products of warp groups whose operands come as boxes by the copy engine (rt/device/box_rings.cuh), which rounds
// float32 to tf32 and leaves numbers of 16 and 8 bits as they are; constants are rounded when they are packed. Tensor
// cores read both operands in shared memory; the groups' threads only begin products and wait. One more warp for each
// operand sends for its boxes, tile after tile. All are in one ring:
//
//   senders        boxes s + ST - 1, when the groups have given back stage s - 1
//   groups         begin s   │ s - 1 is done: give it back │ s + 1 comes │ …
//   tensor cores   s - 1 ──▶ │ s ─────────────────────────────────────────▶ …
#pragma once

#include "common/row_statistics.cuh"
#include "common/wgmma.cuh"
#include "common/wgmma_sums.cuh"
#include "rt/device/box_rings.cuh"

namespace rk {

// A tile T with areas for the sums of each of its warp groups behind the rings: those that groups which share k give
// each other, and those that threads cannot store by themselves (common/wgmma_sums.cuh).
template <class T, class Rings_>
struct BoxTile : T {
  using Rings = Rings_;
  static constexpr bool kSumsAlone = true;
  static constexpr int kColumns = 32;                        // of the results that are stored at a time
  static constexpr int kSumBytes = 4 * 64 * (kColumns + 8);  // of a group
  // From a row of sums to the next one: lanes that put down eight neighbours of several rows meet in no bank.
  static constexpr int LDC = kColumns + (T::kNear == 8 ? 4 : 8);
  static constexpr int kBehind = Rings::kBytes + T::kGroups * kSumBytes, kShared = Rings::kAlign + kBehind;
  static_assert(T::kSlice * T::kSize == 128, "a group's stage is a box wide");

  RT_DEVICE static char* first(const rt::Task& t) { return rt::aligned_shared<Rings::kAlign>(t.smem); }
  RT_DEVICE static typename T::Sum* sums(const rt::Task& t, int group) {
    return reinterpret_cast<typename T::Sum*>(first(t) + Rings::kBytes + group * kSumBytes);
  }
};

// Bytes of a stage of both operands.
template <class T, int RowsA>
constexpr int kStageOfBoxes = 128 * T::KG * (RowsA + T::BN);

// A tile whose operands are in one ring. A stage has RowsA rows of A for each of the groups that share k, and then B.
// If these are fewer than those of a warp group, A has no more, and tensor cores take what lies behind them for the
// others, whose sums nobody stores.
template <class T, int RowsA = T::BM>
struct RingTile : BoxTile<T, rt::BoxRings<1, T::ST, kStageOfBoxes<T, RowsA>>> {
  static constexpr int kSenders = 2, kRowsA = RowsA, kBytesA = 128 * T::KG * RowsA;
  static_assert(RowsA == T::BM || (T::BM == 64 && RowsA + T::BN >= 64), "no warp group reads behind the ring");
  static constexpr int kRowsB = T::KG * T::BN, kBoxesB = rt::boxes_of(kRowsB);
  static_assert(128 * kRowsB == T::kStageB);
  // What sends for A and for B.
  using Rows = rt::MatrixWalk<RowsA, T::KG>;
  using Columns = rt::PackedWalk<kRowsB / kBoxesB, kBoxesB, kBytesA>;
};

// The first sender makes the mbarriers of the ring, for so many warps that give its stages back, and then all threads
// meet: at one place in code, since compute-sanitizer takes threads that meet elsewhere for divergent.
template <class T>
RT_DEVICE void open_boxes(const rt::Task& t, int sender, int readers) {
  if (sender == 0) T::Rings::open(T::first(t), t.tid % 32 == 0, readers, T::kSenders);
  t.sync();
}

// What a sender does: it sends for so many stages. The first boxes of constants are sent for before the inputs are
// there, for which all threads wait together: later ones need stages that groups give back.
template <class Rings, class Walk>
RT_DEVICE void send_boxes(const rt::Task& t, char* at, const Walk& walk, int stages) {
  if (t.tid % 32 == 0) walk.prefetch();
  if constexpr (!Walk::kConstant) t.wait_for_inputs();
  typename Rings::template Sender<Walk> sender(t, at, walk);
  const int first = sender.fill(stages);
  if constexpr (Walk::kConstant) t.wait_for_inputs();
  sender.refill(stages - first);
}

// Multiplies the rows of the thread's group by the columns of tile after tile, as their boxes come. With Norm results,
// which are no integers, are divided by the rows' root mean squares (1) or by their standard deviations (2).
template <class T, int Norm = 0>
class BoxGroup {
 public:
  RT_DEVICE explicit BoxGroup(const rt::Task& t)
      : boxes_(t, T::first(t), 0),
        rows_(at(t).kg * 128 * T::kRowsA + at(t).row * 128),
        columns_(T::kBytesA + at(t).kg * 128 * T::BN),
        kg_(at(t).kg),
        tid_(t.tid) {}

  // Adds the products of the next tile, of so many stages, to acc. Of the rows no more than so many boxes come, in turn
  // for groups that share k: in the last stage of all there may be one for the first group alone. The last stage is
  // given back if there are more tiles behind it.
  RT_DEVICE void run(int stages, int boxes, bool more, typename T::Acc& acc) {
    int count = stages;
    if constexpr (T::KG > 1) {
      const int mine = (boxes + T::KG - 1 - kg_) / T::KG;
      count = mine < stages ? mine : stages;
    }
    if constexpr (Norm > 0) statistics_.clear();
    RK_UNROLL(1)
    for (int s = 0; s < count; ++s) {
      // The places of the operands are found while their boxes are waited for.
      const char* stage = boxes_.ahead();
      const rt::OperandPlace rows = rt::operand_in_warp(stage + rows_), columns = rt::operand_in_warp(stage + columns_);
      boxes_.take();
      rt::multiply_begin();
      RT_UNROLL
      for (int k = 0; k < T::kSlice / T::kDeep; ++k) {
        begin_product<T>(rows + 32 * k, columns + k * (2 * T::kPitch), true, acc);
      }
      rt::multiply_end();
      if constexpr (Norm > 0) statistics_.add(stage + rows_, tid_);
      rt::multiplied_but<1>();
      if (s > 0) boxes_.done();
    }
    rt::multiplied(acc);
    if (more) boxes_.done();
  }

  // Divides the sums, which are those of whole rows. `share` is that of an element of a row in its mean.
  RT_DEVICE void normalise(const rt::Task& t, float share, float epsilon, typename T::Acc& acc) {
    if constexpr (Norm > 0) {
      statistics_.join(t);
      if constexpr (T::KG > 1) {
        const typename T::At here = at(t);
        statistics_.put(T::sums(t, here.group), t.tid);
        rt::groups_barrier(t, T::kThreads);
        RT_UNROLL
        for (int i = 1; i < T::KG; ++i) {
          const int other = (here.group + i * T::kRowGroups) % T::kGroups;
          statistics_.take(T::sums(t, other), t.tid);
        }
      }
      float by[2];
      statistics_.template inverse<Norm == 2>(t, share, epsilon, by);
      RT_UNROLL
      for (int i = 0; i < T::BN / 2; ++i) acc[i] *= by[i / 2 % 2];
    }
  }

 private:
  RT_DEVICE static typename T::At at(const rt::Task& t) { return typename T::At(t.tid); }

  typename T::Rings::Reader boxes_;
  int rows_, columns_;  // where the group's operands are in a stage
  int kg_, tid_;
  RowStatistics<typename T::Element> statistics_;
};

// What the epilogue needs of rows of integers, where so many threads store so many rows through shared memory.
template <class T, class Epi, int Threads, int Rows>
using EarlyRowsOf =
    std::conditional_t<(Epi::kPack > 1),
                       EarlyRows<PackDrain<Threads, Rows, T::kColumns, kMostDrained<T>, Epi>, Epi, T::BN / T::kColumns>,
                       NoRows>;

// Stores a group's sums of 64 rows of a tile, from the given row on, through the epilogue, T::kColumns columns after
// another, and through shared memory of its own. Of the task the thread's number is that in its group.
template <class T, class Epi, class Early>
RT_DEVICE void drain_rows(const rt::Task& alone, const typename T::At& at, const typename T::Acc& acc,
                          const rt::Operand3& out, const typename Epi::Args& epi, TilePlace place, Early& early) {
  const int first = at.m % 64 + at.g, rows[2] = {first, first + 8};
  typename T::Sum* sums = T::sums(alone, at.group);
  RK_UNROLL(1)
  for (int from = 0; from < T::BN && place.i2 < place.end2; from += T::kColumns) {
    rt::group_barrier(alone, at.group);
    put_columns<T, false>(at, acc, rows, from, sums);
    rt::group_barrier(alone, at.group);
    drain_sums<128, 64, T::kColumns, T::LDC, 1, kMostDrained<T>, Epi>(alone, sums, out, epi, place, early);
    place.i2 += T::kColumns;
  }
}

// Stores what groups that share k have, for epilogues of which a group cannot store a part by itself.
template <class T, class Epi, class Early>
RT_DEVICE void drain_together(const rt::Task& t, const typename T::Acc& acc, const rt::Operand3& out,
                              const typename Epi::Args& epi, const TilePlace& tile, Early& early) {
  const typename T::At at(t.tid);
  typename T::Sum* sums = T::sums(t, 0);
  const int both[2] = {at.m + at.g, at.m + at.g + 8};
  TilePlace columns = tile;
  RK_UNROLL(1)
  for (int from = 0; from < T::BN && columns.i2 < tile.end2; from += T::kColumns) {
    rt::groups_barrier(t, T::kThreads);
    put_columns<T, false>(at, acc, both, from, sums);
    rt::groups_barrier(t, T::kThreads);
    drain_sums<T::kThreads, T::BM, T::kColumns, T::LDC, T::KG, kMostDrained<T>, Epi>(t, sums, out, epi, columns, early);
    columns.i2 += T::kColumns;
  }
}

// Sums begin with zeros. If ptxas knew of integers that they are, it would make some of them again while products are
// in work, and wait for each of these.
template <class T>
RT_DEVICE void clear_sums(typename T::Acc& acc) {
  RT_UNROLL
  for (int i = 0; i < T::BN / 2; ++i) acc[i] = T::kSize == 1 ? rt::settled(typename T::Sum{}) : typename T::Sum{};
}

// Multiplies a tile and stores it: run(acc) adds the products of the thread's group. What the epilogue needs comes
// meanwhile, as far as it fits registers. Groups that share k add up their sums; these have only one tile, behind which
// the ring is free.
template <class T, class Epi, class Run>
RT_DEVICE void multiply_and_store(const rt::Task& t, const rt::Operand3& out, const typename Epi::Args& epi,
                                  const TilePlace& tile, const Run& run) {
  constexpr Held kHeld =
      T::kGroups > 2 ? Held{64, 32} : Held{128, 64};  // of three groups, threads have fewer registers
  const typename T::At at(t.tid);
  typename T::Acc acc;
  const auto multiply = [&] {
    clear_sums<T>(acc);
    run(acc);
  };
  if constexpr (kDrainsAlone<T, Epi>) {
    GroupDrain<T, Epi, kHeld> drain(t, epi, SumPlace<typename Epi::Out>::template of<T>(t, out, tile, at.row));
    multiply();
    drain.store(acc);
  } else if constexpr (kDrainsShared<T, Epi>) {
    // Sums fit the areas behind the ring, or nobody puts them down until the ring is free.
    using Drain = SharedDrain<T, Epi, kHeld>;
    constexpr bool kBehindRing = Drain::kBytes <= T::kSumBytes;
    const int other = (at.group + T::kRowGroups) % T::kGroups;
    const auto area = [&](int group) {
      return kBehindRing ? reinterpret_cast<char*>(T::sums(t, group)) : T::first(t) + group * Drain::kBytes;
    };
    Drain drain(t, area(at.group), area(other), out, epi, tile);
    multiply();
    if constexpr (!kBehindRing) rt::groups_barrier(t, T::kThreads);
    drain.store(acc);
  } else if constexpr (T::KG == 1) {
    using Early = EarlyRowsOf<T, Epi, 128, 64>;
    rt::Task alone = t;
    alone.tid = t.tid % 128;
    TilePlace rows = tile;
    rows.i1 += at.row;
    Early early;
    if constexpr (Early::kUsed) early.template load<T::kColumns>(alone, epi, rows);
    multiply();
    drain_rows<T, Epi>(alone, at, acc, out, epi, rows, early);
  } else {
    using Early = EarlyRowsOf<T, Epi, T::kThreads, T::BM>;
    Early early;
    if constexpr (Early::kUsed) early.template load<T::kColumns>(t, epi, tile);
    multiply();
    drain_together<T, Epi>(t, acc, out, epi, tile, early);
  }
}

}  // namespace rk
