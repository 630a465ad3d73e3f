// How the sums of warp groups leave registers: through shared memory, some columns after another, and as what the
// epilogue takes unless several groups have sums of the same elements. Threads put down two neighbours of two rows for
// each eight columns, and take packs, which lie beside each other along the rows:
//
//   put     lane 4·g + q        rows g and g + 8, columns 2·q and 2·q + 1 of each eight
//   taken   lane k·across + c   row k, pack c                                 k + 128 / across, pack c …
//
// Of a group by itself (GroupDrain) the shared memory is its own, and no thread waits for another group.
#pragma once

#include "common/drain.cuh"
#include "rt/device/mma.cuh"

namespace rk {

template <class T>
struct GroupPlace;  // common/wgmma.cuh

// Whether groups of tiles T may store by themselves: epilogues compute packs of what they take. Three products leave
// too few registers for it.
template <class T, class Epi>
constexpr bool kDrainsAlone = T::KG == 1 && T::kProducts == 1 && T::kSize > 1 && T::BN % 32 == 0 &&
                              (Epi::kPack == 4 || Epi::kPack == 8) &&
                              (sizeof(typename Epi::In) == 2 || sizeof(typename Epi::In) == 4);

template <class T, class Epi>
class GroupDrain {
  using In = typename Epi::In;
  using Out = typename Epi::Out;
  static constexpr int P = Epi::kPack;
  // Columns that are put down at once, and elements from row to row, at which lanes meet in no bank.
  static constexpr bool kWide = T::BN % 64 == 0 && (sizeof(In) == 2 || T::kColumns == 64);
  static constexpr int kColumns = kWide ? 64 : 32, kPitch = kColumns + 8;
  static constexpr int kAcross = kColumns / P, kDown = 128 / kAcross, kTurns = 64 / kDown;
  // Packs of a turn of the loop: few where an epilogue is long, or has operands beside many sums.
  static constexpr int kMost = Epi::kLength > 14 ? 1 : Epi::kLength > 4 || !std::is_empty_v<typename Epi::Row> ? 2 : 4;
  static constexpr int kBatch = kTurns < kMost ? kTurns : kMost;

 public:
  // What an epilogue needs of all rows, if that fits the registers of 128 bytes.
  static constexpr int kPacks = (T::BN + kColumns - 1) / kColumns * kTurns;
  static constexpr bool kMayBeEarly =
      !std::is_empty_v<typename Epi::Row> && kPacks * static_cast<int>(sizeof(typename Epi::Row)) <= 128;
  using Early = typename Epi::Row[kMayBeEarly ? kPacks : 1];

  // Bytes of shared memory of a group. It is aligned to 32.
  static constexpr int kBytes = 64 * kPitch * static_cast<int>(sizeof(In));

  // `row` is the group's first row of the tile.
  RT_DEVICE GroupDrain(const rt::Task& t, char* stage, int group, int row, const rt::Operand3& out,
                       const typename Epi::Args& epi, const TilePlace& place)
      : t_(t),
        epi_(epi),
        stage_(reinterpret_cast<In*>(stage)),
        group_(group),
        i0_(place.i0),
        i1_(place.i1 + row + t.tid % 128 / kAcross),
        i2_(place.i2 + t.tid % kAcross * P),
        end1_(place.end1),
        end2_(place.end2),
        down_(static_cast<int>(out.s1)),
        to_(rt::place_of(t.template ptr<Out>(out.ref) + element(out, i0_, i1_, i2_))) {}

  // Asks for what the epilogue needs of rows, before the sums are there. There may be room for more than that.
  template <int Room>
  RT_DEVICE void load(typename Epi::Row (&early)[Room]) const {
    if constexpr (kMayBeEarly) {
      static_assert(kPacks <= Room);
      RT_UNROLL
      for (int i = 0; i < kPacks; ++i) {
        const int i1 = i1_ + i % kTurns * kDown;
        early[i] = Epi::load_row(t_, epi_, i0_, i1 < end1_ ? i1 : end1_ - 1, near(i / kTurns * kColumns));
      }
    }
  }

  // Stores the sums with what load has asked for.
  template <int Room>
  RT_DEVICE void store(const typename T::Acc& acc, const typename Epi::Row (&early)[Room]) {
    if constexpr (kMayBeEarly) {
      store_early<0>(acc, early);
    } else {
      store(acc);
    }
  }

  RT_DEVICE void store(const typename T::Acc& acc) {
    const int lane = t_.tid % 32;
    In* put = stage_ + (t_.tid % 128 / 32 * 16 + lane / 4) * kPitch + lane % 4 * 2;
    const In* taken = stage_ + t_.tid % 128 / kAcross * kPitch + t_.tid % kAcross * P;
    const int columns = end2_ - (i2_ - t_.tid % kAcross * P);
    RK_UNROLL(1)
    for (int from = 0; from < T::BN && from < columns; from += kColumns) {
      rt::group_barrier(t_, group_);
      put_columns(acc, from, put);
      const int near2 = near(from);
      const typename Epi::Column column = Epi::load_column(t_, epi_, i0_, 0, near2);
      typename Epi::Row rows[kBatch];
      load_rows(0, near2, rows);
      rt::group_barrier(t_, group_);
      take(i2_ + from < end2_, near2, from, taken, column, rows);
    }
  }

 private:
  // Columns from column From of the tile on, and those behind them.
  template <int From, int Room>
  RT_DEVICE void store_early(const typename T::Acc& acc, const typename Epi::Row (&early)[Room]) {
    if (From >= end2_ - (i2_ - t_.tid % kAcross * P)) return;
    const int lane = t_.tid % 32;
    rt::group_barrier(t_, group_);
    put_columns<From>(acc, From, stage_ + (t_.tid % 128 / 32 * 16 + lane / 4) * kPitch + lane % 4 * 2);
    const typename Epi::Column column = Epi::load_column(t_, epi_, i0_, 0, near(From));
    rt::group_barrier(t_, group_);
    const In* taken = stage_ + t_.tid % 128 / kAcross * kPitch + t_.tid % kAcross * P;
    int64_t to = rt::mad_wide(From, sizeof(Out), to_);
    const int left = i2_ + From < end2_ ? end1_ - i1_ : 0;
    RT_UNROLL
    for (int turn = 0; turn < kTurns; ++turn) {
      const Pack<In, P> in = *reinterpret_cast<const Pack<In, P>*>(taken + turn * kDown * kPitch);
      const Pack<Out, P> result = Epi::apply_pack(epi_, column, early[From / kColumns * kTurns + turn], in.v);
      if (turn * kDown < left) *rt::at_place<Pack<Out, P>>(to) = result;
      to = rt::mad_wide(down_, kDown * static_cast<int>(sizeof(Out)), to);
    }
    if constexpr (From + kColumns < T::BN) store_early<From + kColumns>(acc, early);
  }

  // The thread's pack so far from its first one, or the last one of the row if there is none.
  RT_DEVICE int near(int from) const { return i2_ + from < end2_ ? i2_ + from : end2_ - P; }

  // Puts down columns from `from` on, a number of which there is code for each: sums are in registers.
  template <int From = 0>
  RT_DEVICE static void put_columns(const typename T::Acc& acc, int from, In* put) {
    if (from == From) {
      RT_UNROLL
      for (int j = 0; j < kColumns / 8; ++j) {
        RT_UNROLL
        for (int r = 0; r < 2; ++r) {
          const typename T::Sum* d = acc + From / 2 + 4 * j + 2 * r;
          *reinterpret_cast<Pack<In, 2>*>(put + 8 * r * kPitch + 8 * j) =
              Pack<In, 2>{{static_cast<In>(d[0]), static_cast<In>(d[1])}};
        }
      }
    } else if constexpr (From + kColumns < T::BN) {
      put_columns<From + kColumns>(acc, from, put);
    }
  }

  // What the epilogue needs of the rows of a turn. Rows outside the result have the operands of the last one.
  RT_DEVICE void load_rows(int turn, int i2, typename Epi::Row (&rows)[kBatch]) const {
    RT_UNROLL
    for (int b = 0; b < kBatch; ++b) {
      const int i1 = i1_ + (turn + b) * kDown;
      rows[b] = Epi::load_row(t_, epi_, i0_, i1 < end1_ ? i1 : end1_ - 1, i2);
    }
  }

  // Stores the packs of a thread through the epilogue.
  RT_DEVICE void take(bool exists, int near2, int from, const In* taken, const typename Epi::Column& column,
                      typename Epi::Row (&rows)[kBatch]) const {
    int64_t to = rt::mad_wide(from, sizeof(Out), to_);
    const int left = exists ? end1_ - i1_ : 0;
    RK_UNROLL(1)
    for (int turn = 0; turn < kTurns; turn += kBatch) {
      if (turn > 0) load_rows(turn, near2, rows);
      Pack<Out, P> results[kBatch];
      RT_UNROLL
      for (int b = 0; b < kBatch; ++b) {
        const Pack<In, P> in = *reinterpret_cast<const Pack<In, P>*>(taken + (turn + b) * kDown * kPitch);
        results[b] = Epi::apply_pack(epi_, column, rows[b], in.v);
      }
      RT_UNROLL
      for (int b = 0; b < kBatch; ++b) {
        if ((turn + b) * kDown < left) *rt::at_place<Pack<Out, P>>(to) = results[b];
        to = rt::mad_wide(down_, kDown * static_cast<int>(sizeof(Out)), to);
      }
    }
  }

  const rt::Task& t_;
  const typename Epi::Args& epi_;
  In* stage_;
  int group_;
  int i0_, i1_, i2_, end1_, end2_;  // the thread's first pack, and the ends of the result
  int down_;                        // from a row of the result to the next
  // The place of the first pack, a number, so that stores through it change no argument.
  int64_t to_;
};

// What sums are on their way through shared memory: what the epilogue takes, if that is shorter, unless several groups'
// sums have to be added up there.
template <class T, class Epi>
using SumOnTheWay = std::conditional_t<T::KG == 1 && (sizeof(typename Epi::In) < sizeof(typename T::Sum)),
                                       typename Epi::In, typename T::Sum>;

// Puts what a thread owns of columns From to From + T::kColumns of the tile into its group's sums. Its two rows go to
// rows[0] and rows[1] there; if Some, not where these are below zero.
template <class T, int From, bool Some, class Sum>
RT_DEVICE void put_columns(const typename T::At& at, const typename T::Acc& acc, const int (&rows)[2], Sum* sums) {
  using Two = Pack<Sum, 2>;
  sums += at.kg * T::BM * T::LDC + 2 * at.q;
  RT_UNROLL
  for (int j = 0; j < T::kColumns / 8; ++j) {
    const typename T::Sum* d = acc + From / 2 + 4 * j;
    RT_UNROLL
    for (int r = 0; r < 2; ++r) {
      if (Some && rows[r] < 0) continue;
      *reinterpret_cast<Two*>(sums + rows[r] * T::LDC + 8 * j) =
          Two{{static_cast<Sum>(d[2 * r]), static_cast<Sum>(d[2 * r + 1])}};
    }
  }
}

// The same where `from` is known only when the program runs.
template <class T, bool Some, int First = 0, class Sum>
RT_DEVICE void put_columns(const typename T::At& at, const typename T::Acc& acc, const int (&rows)[2], int from,
                           Sum* sums) {
  if (from == First) {
    put_columns<T, First, Some>(at, acc, rows, sums);
  } else if constexpr (First + T::kColumns < T::BN) {
    put_columns<T, Some, First + T::kColumns>(at, acc, rows, from, sums);
  }
}

// How many elements a thread of a tile T may have in registers at once when it stores, beside the sums of the columns
// that come later.
template <class T>
constexpr int kMostDrained = T::BN > 128 ? 8 : 16;

template <class T, class Epi, bool Packs>
struct GroupEarly {
  using Type = NoRows;
};
template <class T, class Epi>
struct GroupEarly<T, Epi, true> {
  using Type = EarlyRows<PackDrain<T::kThreads, T::BM, T::kColumns, kMostDrained<T>, Epi>, Epi, T::BN / T::kColumns>;
};

// What the epilogue of a tile needs of rows and is asked for before the tile is multiplied.
template <class T, class Epi>
struct GroupRows : GroupEarly<T, Epi, (Epi::kPack > 1)>::Type {
  RT_DEVICE GroupRows(const rt::Task& t, const typename Epi::Args& epi, const TilePlace& place) {
    if constexpr (GroupRows::kUsed) this->template load<T::kColumns>(t, epi, place);
  }
};

// Stores every element of the tile through the epilogue, T::kColumns columns after another. Where the epilogue has no
// operands of rows, groups store their own sums through the memory of their ring, and wait for no other one.
template <class T, class Epi>
RT_DEVICE void drain_groups(const rt::Task& t, const typename T::Acc& acc, const rt::Operand3& out,
                            const typename Epi::Args& epi, const TilePlace& place, GroupRows<T, Epi>& early) {
  const typename T::At at(t.tid);
  if constexpr (kDrainsAlone<T, Epi>) {
    if constexpr (std::is_empty_v<typename Epi::Row>) {
      constexpr int kRing = T::ST * T::kStageA * T::kSize;
      static_assert(GroupDrain<T, Epi>::kBytes <= kRing);
      char* ring = (T::kSwizzled ? rt::aligned_shared<T::kAlign>(t.smem) : t.smem) + at.group * kRing;
      GroupDrain<T, Epi>(t, ring, at.group, at.row, out, epi, place).store(acc);
      return;
    }
  }
  auto* sums = reinterpret_cast<SumOnTheWay<T, Epi>*>(t.smem);
  const int rows[2] = {at.m + at.g, at.m + at.g + 8};
  TilePlace columns = place;
  RK_UNROLL(1)
  for (int from = 0; from < T::BN && columns.i2 < place.end2; from += T::kColumns) {
    t.sync();
    put_columns<T, false>(at, acc, rows, from, sums);
    t.sync();
    drain_sums<T::kThreads, T::BM, T::kColumns, T::LDC, T::KG, kMostDrained<T>, Epi>(t, sums, out, epi, columns, early);
    columns.i2 += T::kColumns;
  }
}

}  // namespace rk
