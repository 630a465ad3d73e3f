// How the sums of warp groups leave registers. Tensor cores leave each thread two neighbours of two rows for each eight
// columns of a product. The columns of the constant are packed in such an order (PackedPlace in lower/contraction) that
// these are more neighbours of the result, T::kNear, so that threads store packs of their own sums:
//
//   columns of the product   0 1   2 3   4 5   6 7   8 9  10 11  12 13  14 15  …
//   thread of the row        0     1     2     3     0     1      2      3     …
//   columns of the result    0 1   4 5   8 9  12 13  2 3   6 7   10 11  14 15  …     with four neighbours
//
// No thread waits for another one then (GroupDrain). Where epilogues compute no packs, or groups share k, sums go
// through shared memory.
#pragma once

#include "common/drain.cuh"
#include "rt/device/mma.cuh"

namespace rk {

// Whether threads have registers for what epilogues need beside the sums. Where integers are quantised again that is
// much: threads have them that hold nothing but sums, of no more than 128 columns, and that exchange no packs
// (RATIONALE.md, *Why threads store the sums that tensor cores leave them*).
template <class T, class Epi>
constexpr bool kHasRegisters = T::kSize > 1 ||
                               T::kSumsAlone && (Epi::kLength == 0 || T::BN <= 128 && Epi::kPack == T::kNear);

// Whether groups of tiles T may store by themselves: epilogues compute packs of all neighbours that a thread has, or of
// half of them. Three products leave too few registers for what epilogues need beside the sums.
template <class T, class Epi>
constexpr bool kDrainsAlone =
    T::KG == 1 && T::kProducts == 1 && kHasRegisters<T, Epi> && Epi::kPack >= 4 && T::kNear % Epi::kPack == 0;

// Where the sums of a thread go: to two rows of the result, from a column on.
template <class Out>
struct SumPlace {
  int i0, i2, end1, end2;  // the first column, and the ends of the result
  int i1[2];               // the rows, of which those that do not exist are not below end1
  int64_t row, from;       // from a row to the next in elements, and the address of the column in the first one

  template <class T>
  RT_DEVICE static SumPlace of(const rt::Task& t, const rt::Operand3& out, const TilePlace& tile, int row0, int row1) {
    SumPlace p;
    p.i0 = tile.i0, p.i2 = tile.i2 + t.tid % 4 * T::kNear;
    p.end1 = tile.end1, p.end2 = tile.end2;
    p.i1[0] = row0, p.i1[1] = row1;
    p.row = out.s1;
    p.from = rt::place_of(t.template ptr<Out>(out.ref) + element(out, p.i0, 0, p.i2));
    return p;
  }
  // The same of a warp group, `row` rows behind the tile's first one.
  template <class T>
  RT_DEVICE static SumPlace of(const rt::Task& t, const rt::Operand3& out, const TilePlace& tile, int row) {
    const int first = tile.i1 + row + t.tid % 128 / 32 * 16 + t.tid % 32 / 4;
    return of<T>(t, out, tile, first, first + 8);
  }
};

// How many bytes of registers a thread has before its products are made for what epilogues need of rows and of columns.
struct Held {
  int rows, columns;
};

// Stores the sums of a thread through the epilogue. As much of what this needs as the thread may hold is asked for
// before the products are made: behind the sums it would be waited for.
//
// Where packs are half of a thread's neighbours, threads of two rows share their columns, so that sectors of memory are
// stored whole: each gives the other one a pack, and stores packs of the same half of both rows.
//
//   row g      thread 4·g + q       packs 0 │ 1 ─┐     0 of row g, 0 of row g + 1
//   row g + 1  thread 4·g + q + 4   packs 0 │ 1  └▶    1 of row g, 1 of row g + 1
//
// A turn stores two packs of a thread, which have the same columns. Parts is how many tiles lie one below the other, of
// which a thread has sums.
template <class T, class Epi, Held kHeld, int Parts = 1>
class GroupDrain {
  static_assert(kDrainsAlone<T, Epi>);
  using In = typename Epi::In;
  using Out = typename Epi::Out;
  using Column = typename Epi::Column;
  using Row = typename Epi::Row;
  static constexpr int P = Epi::kPack;
  static constexpr bool kShares = P < T::kNear;
  static_assert(!kShares || 2 * P == T::kNear);
  static constexpr int kSets = kShares ? 2 : 1;  // of two rows
  static constexpr int kAlong = T::BN / 4 / T::kNear, kStep = 4 * T::kNear, kTurns = kSets * kAlong;
  // Long epilogues, or many packs, are in a loop, in which so many turns stand: of all of them they would make too much
  // code, which takes long to come. Others are not, since a loop asks late for what its next turns need. Where integers
  // are quantised again, a loop holds that for as many turns as there are registers, and moves it up from turn to turn.
  static constexpr bool kLong = Epi::kLength > 4, kIntegers = std::is_same_v<In, int32_t>;
  static constexpr int kMostTurns = kIntegers ? 12 : 8;  // in a loop ptxas finds that integers stop warp groups
  static constexpr bool kLoop = kTurns > 1 && (kLong || kTurns > kMostTurns || 2 * kTurns * P * Epi::kLength > 256);
  static constexpr bool kMoves = kLoop && kLong && kIntegers && Parts == 1;
  static constexpr int kUnrolled = !kLoop ? kTurns : kLong || P > 4 || kTurns % 2 == 1 ? 1 : 2;
  static_assert(!kMoves || !kShares);
  // How much is held of what is needed of columns, and of the two rows of turns, and how much of that early.
  template <class Operand>
  static constexpr int held(int all, int bytes) {
    const int fit = bytes / static_cast<int>(sizeof(Operand));
    return std::is_empty_v<Operand> || fit > all ? all : fit;
  }
  static constexpr int at_least_one(int n) { return n < 1 ? 1 : n; }
  static constexpr int kMost = Parts > 1 || T::kGroups > 2 || kMoves&& T::BN > 128 ? 64 : 128;
  static constexpr int kColumns = at_least_one(kLoop && !kMoves ? (kUnrolled + kSets - 1) / kSets
                                                                : held<Column>(kAlong, kMoves ? kMost : kMost / 2));
  static constexpr int kRows = kLoop && !kMoves ? kUnrolled : at_least_one(held<Row>(kTurns, kMost / 2));
  static constexpr int kEarlyColumns = held<Column>(kColumns, kMoves ? kMost : kHeld.columns);
  static constexpr int kEarlyRows = held<Row>(kRows, kHeld.rows / 2);

 public:
  RT_DEVICE GroupDrain(const rt::Task& t, const typename Epi::Args& epi, const SumPlace<Out>& place)
      : t_(t),
        epi_(epi),
        second_(kShares && t.tid % 8 / 4 == 1),
        i0_(place.i0),
        i2_(place.i2 + (second_ ? P : 0)),
        end2_(place.end2) {
    const int64_t column = place.from + (second_ ? P * static_cast<int>(sizeof(Out)) : 0);
    RT_UNROLL
    for (int i = 0; i < 2 * kSets; ++i) {
      int row = place.i1[i / kSets];
      if constexpr (kShares) {
        const int other = rt::shfl_xor(t, row, 4);
        row = second_ == (i % 2 == 1) ? row : other;
      }
      exists_[i] = row < place.end1;
      i1_[i] = exists_[i] ? row : place.end1 - 1;
      to_[i] = rt::settled(column + rk::place(i1_[i], place.row) * static_cast<int>(sizeof(Out)));
    }
    load<0, kEarlyColumns, 0, kEarlyRows>();
  }

  RT_DEVICE void store(const typename T::Acc& acc) {
    static_assert(Parts == 1);
    store(&acc, 0);
  }
  // Stores the sums of all parts, part number i at place(i).
  template <class Place>
  RT_DEVICE static void store_parts(const rt::Task& t, const typename T::Acc (&acc)[Parts],
                                    const typename Epi::Args& epi, const Place& place) {
    if constexpr (kLoop) {
      RK_UNROLL(1)
      for (int i = 0; i < Parts; ++i) GroupDrain(t, epi, place(i)).store(acc, i);
    } else {
      RT_UNROLL
      for (int i = 0; i < Parts; ++i) GroupDrain(t, epi, place(i)).store(acc, i);
    }
  }

 private:
  using Sums = Pack<In, P>;
  // Rows that move up in a loop wait as words: nvcc would keep each of their bytes in a register of its own.
  static constexpr bool kWords = kMoves && !std::is_empty_v<Row> && sizeof(Row) % 4 == 0;
  static constexpr int kRowWords = (sizeof(Row) + 3) / 4;
  struct Words {
    int w[kRowWords];
  };
  using WaitingRow = std::conditional_t<kWords, Words, Row>;
  // What a turn stores, and what the epilogue needs of it.
  struct Turn {
    Sums sums[2];
    Column column;
    Row rows[2];
  };

  // Stores the sums of a part. Where turns are not in a loop, its number is known at compile time.
  RT_DEVICE void store(const typename T::Acc* acc, int part) {
    load<kEarlyColumns, kColumns, kEarlyRows, kRows>();
    if constexpr (kLoop) {
      loop(acc, part);
    } else {
      RT_UNROLL
      for (int i = 0; i < kTurns; ++i) {
        const int c = i / kSets;
        Turn turn = {{}, columns_[c % kColumns], {row(rows_[i % kRows][0]), row(rows_[i % kRows][1])}};
        take(acc[part], i, turn.sums);
        exchange(turn.sums);
        if ((i + 1) % kSets == 0 && c + kColumns < kAlong) columns_[c % kColumns] = column(c + kColumns);
        if (i + kRows < kTurns) load_rows(i + kRows, rows_[i % kRows]);
        finish(i, turn);
      }
    }
  }
  // All lanes of a warp take as many turns.
  RT_DEVICE void loop(const typename T::Acc* acc, int part) {
    const int first2 = i2_ - t_.tid % 4 * T::kNear - (second_ ? P : 0);
    RK_UNROLL(1)
    for (int i = 0; i < kTurns && first2 + i / kSets * kStep < end2_; i += kUnrolled) {
      Turn turns[kUnrolled];
      RT_UNROLL
      for (int u = 0; u < kUnrolled; ++u) turns[u] = {{}, columns_[u / kSets], {row(rows_[u][0]), row(rows_[u][1])}};
      take<0>(acc, part * kTurns + i, turns);
      RT_UNROLL
      for (int u = 0; u < kUnrolled; ++u) exchange(turns[u].sums);
      if constexpr (kMoves) {
        move_up(i + 1);
      } else {
        load<0, kColumns, 0, kRows>(i + kUnrolled);
      }
      RT_UNROLL
      for (int u = 0; u < kUnrolled; ++u) finish(i + u, turns[u]);
    }
  }

  // The thread's own pack number n of either row.
  RT_DEVICE static Sums own(const typename T::Acc& acc, int n, int r) {
    Sums pack;
    RT_UNROLL
    for (int v = 0; v < P; ++v) pack.v[v] = static_cast<In>(acc[(n * P + v) / 2 * 4 + 2 * r + v % 2]);
    return pack;
  }
  // Takes the thread's own sums of a turn out of all, which are in registers: of either row or, if rows share columns,
  // two packs of one row.
  RT_DEVICE static void take(const typename T::Acc& acc, int i, Sums (&sums)[2]) {
    RT_UNROLL
    for (int r = 0; r < 2; ++r) sums[r] = kShares ? own(acc, i / 2 * 2 + r, i % 2) : own(acc, i, r);
  }
  // The same in a loop, of the turns that stand there: there is code for each of these from I on, of all parts.
  template <int I>
  RT_DEVICE static void take(const typename T::Acc* acc, int i, Turn (&turns)[kUnrolled]) {
    if (i == I) {
      RT_UNROLL
      for (int u = 0; u < kUnrolled; ++u) take(acc[I / kTurns], I % kTurns + u, turns[u].sums);
    } else if constexpr (I + kUnrolled < Parts * kTurns) {
      take<I + kUnrolled>(acc, i, turns);
    }
  }

  // Gives the thread that shares the columns one of two packs for one of its: both are of the same half then.
  RT_DEVICE void exchange(Sums (&sums)[2]) const {
    if constexpr (kShares) {
      constexpr int kWords = P * static_cast<int>(sizeof(In)) / 4;
      using Words = Pack<int, kWords>;
      Words packs[2] = {rk::bit_cast<Words>(sums[0]), rk::bit_cast<Words>(sums[1])};
      RT_UNROLL
      for (int w = 0; w < kWords; ++w) {
        const int first = packs[0].v[w], second = packs[1].v[w];
        const int other = rt::shfl_xor(t_, second_ ? first : second, 4);
        packs[0].v[w] = second_ ? other : first;
        packs[1].v[w] = second_ ? second : other;
      }
      sums[0] = rk::bit_cast<Sums>(packs[0]), sums[1] = rk::bit_cast<Sums>(packs[1]);
    }
  }

  // What is listed for either row of a turn. No index is computed, since lists are in registers.
  template <class X>
  RT_DEVICE static X of_row(const X (&list)[2 * kSets], int i, int r) {
    return kShares && i % 2 == 1 ? list[2 * (kSets - 1) + r] : list[r];
  }

  template <int FirstColumn, int EndColumn, int FirstTurn, int EndTurn>
  RT_DEVICE void load(int turn = 0) {
    RT_UNROLL
    for (int c = FirstColumn; c < EndColumn; ++c) columns_[c] = column(turn / kSets + c);
    RT_UNROLL
    for (int i = FirstTurn; i < EndTurn; ++i) load_rows(turn + i, rows_[i]);
  }
  // What waits becomes that of turns from the given one on, which share no columns.
  RT_DEVICE void move_up(int turn) {
    RT_UNROLL
    for (int c = 1; c < kColumns; ++c) columns_[c - 1] = columns_[c];
    if constexpr (kColumns < kTurns) columns_[kColumns - 1] = column(turn + kColumns - 1);
    RT_UNROLL
    for (int i = 1; i < kRows; ++i) rows_[i - 1][0] = rows_[i][0], rows_[i - 1][1] = rows_[i][1];
    if constexpr (kRows < kTurns) load_rows(turn + kRows - 1, rows_[kRows - 1]);
  }
  // What the epilogue needs of packs. Of those outside the result it is that of the last one.
  RT_DEVICE int near(int c) const { return i2_ + c * kStep < end2_ ? i2_ + c * kStep : end2_ - P; }
  RT_DEVICE Column column(int c) const { return Epi::load_column(t_, epi_, i0_, 0, near(c)); }
  RT_DEVICE void load_rows(int i, WaitingRow (&rows)[2]) const {
    RT_UNROLL
    for (int r = 0; r < 2; ++r) {
      const Row row = Epi::load_row(t_, epi_, i0_, of_row(i1_, i, r), near(i / kSets));
      if constexpr (kWords) {
        rows[r] = bit_cast<Words>(row);
        RT_UNROLL
        for (int w = 0; w < kRowWords; ++w) rows[r].w[w] = rt::settled(rows[r].w[w]);
      } else {
        rows[r] = row;
      }
    }
  }
  RT_DEVICE static Row row(const WaitingRow& waiting) {
    if constexpr (kWords) {
      return bit_cast<Row>(waiting);
    } else {
      return waiting;
    }
  }

  RT_DEVICE void finish(int i, const Turn& turn) const {
    const int along = i / kSets * kStep;
    RT_UNROLL
    for (int r = 0; r < 2; ++r) {
      const Pack<Out, P> results = Epi::apply_pack(epi_, turn.column, turn.rows[r], turn.sums[r].v);
      if (of_row(exists_, i, r) && i2_ + along < end2_) {
        *rt::at_place<Pack<Out, P>>(rt::mad_wide(along, sizeof(Out), of_row(to_, i, r))) = results;
      }
    }
  }

  const rt::Task& t_;
  const typename Epi::Args& epi_;
  bool second_;         // of two that share
  int i0_, i2_, end2_;  // the thread's first column, and the end of the result's
  int i1_[2 * kSets];   // the rows, or the last one instead of those that do not exist
  bool exists_[2 * kSets];
  int64_t to_[2 * kSets];  // the addresses there, numbers, so that stores through them change no argument
  Column columns_[kColumns];
  WaitingRow rows_[kRows][2];
};

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
template <class T, class Epi, Held kHeld>
class SharedDrain {
  static_assert(kDrainsShared<T, Epi>);
  static constexpr int kFirst = kFirstColumns<T>, kSecond = T::BN - kFirst;  // columns that a group finishes
  using Half = ColumnsOf<T, kFirst>;
  using Out = typename Epi::Out;
  using Four = Pack<typename T::Sum, 4>;

 public:
  // Bytes of the memory in which a group finds the sums of another one. It is aligned to 16.
  static constexpr int kBytes = 256 * kFirst;

  // The group's memory, and that of the group whose columns it gives.
  RT_DEVICE SharedDrain(const rt::Task& t, char* own, char* other, const rt::Operand3& out,
                        const typename Epi::Args& epi, const TilePlace& tile)
      : t_(t),
        own_(reinterpret_cast<Four*>(own) + t.tid % 128),
        other_(reinterpret_cast<Four*>(other) + t.tid % 128),
        first_(typename T::At(t.tid).kg == 0),
        drain_(t, epi, place(t, out, tile, first_)) {}

  RT_DEVICE void store(const typename T::Acc& acc) {
    if (first_) {
      put<kFirst, kSecond>(acc);
    } else {
      put<0, kFirst>(acc);
    }
    rt::groups_barrier(t_, T::kThreads);
    if (kSecond == 0 && !first_) return;
    typename Half::Acc sums;
    if (first_) {
      add<0, kFirst>(acc, sums);
    } else {
      add<kFirst, kSecond>(acc, sums);
    }
    drain_.store(sums);
  }

 private:
  // Of columns behind the tile, which the second group has if the first has more than half, nothing is stored.
  RT_DEVICE static SumPlace<Out> place(const rt::Task& t, const rt::Operand3& out, TilePlace tile, bool first) {
    if (tile.i2 + T::BN < tile.end2) tile.end2 = tile.i2 + T::BN;
    if (!first) tile.i2 += kFirst;
    return SumPlace<Out>::template of<T>(t, out, tile, typename T::At(t.tid).row);
  }
  template <int From, int Columns>
  RT_DEVICE void put(const typename T::Acc& acc) const {
    RT_UNROLL
    for (int i = 0; i < Columns / 8; ++i) {
      const typename T::Sum* d = acc + From / 2 + 4 * i;
      other_[i * 128] = Four{{d[0], d[1], d[2], d[3]}};
    }
  }
  template <int From, int Columns>
  RT_DEVICE void add(const typename T::Acc& acc, typename Half::Acc& sums) const {
    RT_UNROLL
    for (int i = 0; i < kFirst / 8; ++i) {
      const Four more = i < Columns / 8 ? own_[i * 128] : Four{};
      RT_UNROLL
      for (int v = 0; v < 4; ++v) sums[4 * i + v] = i < Columns / 8 ? acc[From / 2 + 4 * i + v] + more.v[v] : more.v[v];
    }
  }

  const rt::Task& t_;
  Four *own_, *other_;
  bool first_;
  GroupDrain<Half, Epi, kHeld> drain_;
};

}  // namespace rk
