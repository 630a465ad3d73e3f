// Products of warp groups whose operands come as boxes by the copy engine (rt/device/box_rings.cuh), which rounds
// float32 to tf32 and leaves numbers of 16 bits as they are; constants are rounded when they are packed. Tensor cores
// read both operands in shared memory; the groups' threads only begin products and wait. One more warp for each operand
// sends for its boxes, tile after tile. All are in one ring:
//
//   senders        boxes s + ST - 1, when the groups have given back stage s - 1
//   groups         begin s   │ s - 1 is done: give it back │ s + 1 comes │ …
//   tensor cores   s - 1 ──▶ │ s ─────────────────────────────────────────▶ …
#pragma once

#include "common/row_statistics.cuh"
#include "common/wgmma.cuh"
#include "common/wgmma_drain.cuh"
#include "rt/device/box_rings.cuh"

namespace rk {

// Where warp groups of a tile T have their sums leave: through areas of their own behind the rings, so that no group
// waits for another one, but for groups that share k, which add up their sums.
template <class T, class Rings_>
struct BoxTile : T {
  using Rings = Rings_;
  static constexpr int kColumns = 32, LDC = kColumns + 8;  // of the results that are stored at a time
  static constexpr int kSumBytes = 4 * 64 * LDC;           // of a group
  static constexpr int kBehind = Rings::kBytes + T::kGroups * kSumBytes, kShared = Rings::kAlign + kBehind;
  static_assert(T::kSlice * T::kSize == 128, "a group's stage is a box wide");

  RT_DEVICE static char* first(const rt::Task& t) { return rt::aligned_shared<Rings::kAlign>(t.smem); }
  RT_DEVICE static float* sums(const rt::Task& t, int group) {
    return reinterpret_cast<float*>(first(t) + Rings::kBytes + group * kSumBytes);
  }
};

// Bytes of a stage of both operands.
template <class T>
constexpr int kStageOfBoxes = 128 * T::KG * (T::BM + T::BN);

// A tile whose operands are in one ring. A stage has the rows of A for each of the groups that share k, and then B.
template <class T>
struct RingTile : BoxTile<T, rt::BoxRings<1, T::ST, kStageOfBoxes<T>>> {
  static constexpr int kSenders = 2, kBytesA = 128 * T::KG * T::BM;
  static constexpr int kRowsB = T::KG * T::BN, kBoxesB = rt::boxes_of(kRowsB);
  static_assert(128 * kRowsB == T::kStageB);
  // What sends for A and for B.
  using Rows = rt::MatrixWalk<T::BM, T::KG>;
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

// Multiplies the rows of the thread's group by the columns of tile after tile, as their boxes come. With Norm results
// are divided by the rows' root mean squares (1) or by their standard deviations (2).
template <class T, int Norm = 0>
class BoxGroup {
 public:
  RT_DEVICE explicit BoxGroup(const rt::Task& t)
      : boxes_(t, T::first(t), 0),
        rows_(at(t).kg * 128 * T::BM + at(t).row * 128),
        columns_(T::kBytesA + at(t).kg * 128 * T::BN),
        kg_(at(t).kg),
        tid_(t.tid) {}

  // Adds the products of the next tile, of so many stages, to acc. Of the rows no more than so many boxes come, in turn
  // for groups that share k: in the last stage of all there may be one for the first group alone.
  RT_DEVICE void run(int stages, int boxes, typename T::Acc& acc) {
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
    if (T::KG == 1 || count > 0) boxes_.done();
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

// Stores a group's sums of 64 rows of a tile, from the given row on, through the epilogue, T::kColumns columns after
// another, and through shared memory of its own.
template <class T, class Epi>
RT_DEVICE void drain_rows(const rt::Task& t, const typename T::Acc& acc, float* sums, int group, int row,
                          const rt::Operand3& out, const typename Epi::Args& epi, const TilePlace& tile) {
  if constexpr (kDrainsAlone<T, Epi>) {
    static_assert(GroupDrain<T, Epi>::kBytes <= T::kSumBytes);
    GroupDrain<T, Epi>(t, reinterpret_cast<char*>(sums), group, row, out, epi, tile).store(acc);
    return;
  }
  const typename T::At at(t.tid);
  const int first = at.m % 64 + at.g, rows[2] = {first, first + 8};
  rt::Task alone = t;
  alone.tid = t.tid % 128;
  TilePlace place = tile;
  place.i1 += row;
  RK_UNROLL(1)
  for (int from = 0; from < T::BN && place.i2 < place.end2; from += T::kColumns) {
    rt::group_barrier(t, group);
    put_columns<T, false>(at, acc, rows, from, sums);
    rt::group_barrier(t, group);
    drain_sums<128, 64, T::kColumns, T::LDC, 1, kMostDrained<T>, Epi>(alone, sums, out, epi, place);
    place.i2 += T::kColumns;
  }
}

// A tile of so many of a tile's columns, which a group by itself stores.
template <class T, int Columns>
struct ColumnsOf : T {
  static constexpr int BN = Columns, KG = 1;
  using Acc = typename T::Sum[Columns / 2];
};

// How many columns the first of two groups that share k finishes, and whether each may store its own by itself.
template <class T>
constexpr int kFirstColumns = (T::BN + 63) / 64 * 32;
template <class T, class Epi>
constexpr bool kDrainsShared = T::KG == 2 && kDrainsAlone<ColumnsOf<T, kFirstColumns<T>>, Epi>;

// What two groups that share k do with their sums: each finishes some of the tile's columns, and gives the other one
// the sums of the others. These go through memory that a thread of one group shares with the same thread of the other
// one, so that no lanes meet in a bank:
//
//   group 0   puts columns 32 … 63 │ adds what it finds to columns 0 … 31, and stores them
//   group 1   puts columns  0 … 31 │ adds what it finds to columns 32 … 63, and stores them
template <class T, class Epi>
class SharedDrain {
  static_assert(kDrainsShared<T, Epi>);
  static constexpr int kFirst = kFirstColumns<T>, kSecond = T::BN - kFirst;  // columns that a group finishes
  using Sums = Pack<typename T::Sum, 4>;
  template <int Columns>
  using Drain = GroupDrain<ColumnsOf<T, Columns>, Epi>;
  static constexpr bool kEarly = Drain<kFirst>::kMayBeEarly;
  // Whether sums fit the areas behind the ring, so that nobody has to wait until the ring is free.
  static constexpr bool kBehindRing = 256 * kFirst <= T::kSumBytes;

 public:
  using Early = typename Drain<kFirst>::Early;

  // `between` is free for 256 bytes for each column when all groups have come to store.
  RT_DEVICE SharedDrain(const rt::Task& t, char* between, const rt::Operand3& out, const typename Epi::Args& epi,
                        const TilePlace& tile)
      : t_(t), between_(between), out_(out), epi_(epi), tile_(tile), at_(t.tid) {}

  // Asks for what the epilogue needs of rows, before the sums are there, if that fits registers in both groups.
  RT_DEVICE void load(Early& early) const {
    if constexpr (!kEarly) return;
    if (at_.kg == 0) {
      drain<0, kFirst>().load(early);
    } else if constexpr (kSecond > 0) {
      drain<kFirst, kSecond>().load(early);
    }
  }

  // Stores the sums with what load has asked for.
  RT_DEVICE void store(const typename T::Acc& acc, const Early& early) const {
    if constexpr (!kBehindRing) rt::groups_barrier(t_, T::kThreads);
    if (at_.kg == 0) {
      put<kFirst, kSecond>(acc, 1);
    } else {
      put<0, kFirst>(acc, 0);
    }
    rt::groups_barrier(t_, T::kThreads);
    if (at_.kg == 0) {
      finish<0, kFirst>(acc, early);
    } else if constexpr (kSecond > 0) {
      finish<kFirst, kSecond>(acc, early);
    }
  }

 private:
  // What the thread and that of its place in the other group share: sums for the given one of the groups.
  RT_DEVICE Sums* shared(int kg) const {
    if constexpr (kBehindRing) {
      // The area of the group that finishes the columns.
      const int group = kg == at_.kg ? at_.group : (at_.group + T::kRowGroups) % T::kGroups;
      return reinterpret_cast<Sums*>(T::sums(t_, group)) + t_.tid % 128;
    }
    return reinterpret_cast<Sums*>(between_ + kg * 256 * kFirst) + (at_.row / 64 * 128 + t_.tid % 128);
  }
  static constexpr int kNext = kBehindRing ? 128 : 128 * T::kRowGroups;  // from a thread's sums to its next ones

  template <int From, int Columns>
  RT_DEVICE void put(const typename T::Acc& acc, int kg) const {
    Sums* to = shared(kg);
    RT_UNROLL
    for (int i = 0; i < Columns / 8; ++i) {
      const typename T::Sum* d = acc + From / 2 + 4 * i;
      to[i * kNext] = Sums{{d[0], d[1], d[2], d[3]}};
    }
  }
  // What stores columns from column From of the tile on.
  template <int From, int Columns>
  RT_DEVICE Drain<Columns> drain() const {
    static_assert(Drain<Columns>::kBytes <= T::kSumBytes);
    TilePlace place = tile_;
    place.i2 += From;
    return Drain<Columns>(t_, reinterpret_cast<char*>(T::sums(t_, at_.group)), at_.group, at_.row, out_, epi_, place);
  }
  template <int From, int Columns>
  RT_DEVICE void finish(const typename T::Acc& acc, const Early& early) const {
    const Sums* found = shared(at_.kg);
    typename ColumnsOf<T, Columns>::Acc sums;
    RT_UNROLL
    for (int i = 0; i < Columns / 8; ++i) {
      const Sums more = found[i * kNext];
      RT_UNROLL
      for (int v = 0; v < 4; ++v) sums[4 * i + v] = acc[From / 2 + 4 * i + v] + more.v[v];
    }
    if constexpr (kEarly) {
      drain<From, Columns>().store(sums, early);
    } else {
      drain<From, Columns>().store(sums);
    }
  }

  const rt::Task& t_;
  char* between_;
  const rt::Operand3& out_;
  const typename Epi::Args& epi_;
  const TilePlace& tile_;
  typename T::At at_;
};

// Stores what groups that share k have, for epilogues of which a group cannot store a part by itself.
template <class T, class Epi>
RT_DEVICE void drain_together(const rt::Task& t, const typename T::Acc& acc, const rt::Operand3& out,
                              const typename Epi::Args& epi, const TilePlace& tile) {
  const typename T::At at(t.tid);
  float* sums = T::sums(t, 0);
  const int both[2] = {at.m + at.g, at.m + at.g + 8};
  TilePlace columns = tile;
  RK_UNROLL(1)
  for (int from = 0; from < T::BN && columns.i2 < tile.end2; from += T::kColumns) {
    rt::groups_barrier(t, T::kThreads);
    put_columns<T, false>(at, acc, both, from, sums);
    rt::groups_barrier(t, T::kThreads);
    drain_sums<T::kThreads, T::BM, T::kColumns, T::LDC, T::KG, kMostDrained<T>, Epi>(t, sums, out, epi, columns);
    columns.i2 += T::kColumns;
  }
}

// Multiplies a tile and stores it: run(acc) adds the products of the thread's group. What the epilogue needs of rows
// comes meanwhile, if it fits registers. Groups that share k add up their sums; these have only one tile, behind which
// the ring is free.
template <class T, class Epi, class Run>
RT_DEVICE void multiply_and_store(const rt::Task& t, const rt::Operand3& out, const typename Epi::Args& epi,
                                  const TilePlace& tile, const Run& run) {
  const typename T::At at(t.tid);
  typename T::Acc acc = {};
  if constexpr (T::KG == 1) {
    float* sums = T::sums(t, at.group);
    if constexpr (kDrainsAlone<T, Epi>) {
      using Drain = GroupDrain<T, Epi>;
      if constexpr (Drain::kMayBeEarly) {
        static_assert(Drain::kBytes <= T::kSumBytes);
        Drain drain(t, reinterpret_cast<char*>(sums), at.group, at.row, out, epi, tile);
        typename Drain::Early early;
        drain.load(early);
        run(acc);
        drain.store(acc, early);
        return;
      }
    }
    run(acc);
    drain_rows<T, Epi>(t, acc, sums, at.group, at.row, out, epi, tile);
  } else if constexpr (kDrainsShared<T, Epi>) {
    const SharedDrain<T, Epi> drain(t, T::first(t), out, epi, tile);
    typename SharedDrain<T, Epi>::Early early;
    drain.load(early);
    run(acc);
    drain.store(acc, early);
  } else {
    run(acc);
    drain_together<T, Epi>(t, acc, out, epi, tile);
  }
}

}  // namespace rk
