// How tiles of contractions leave shared memory: through the epilogue to global memory. Of epilogues that compute packs
// (Epi::kPack neighbours along i2) each access brings or stores a pack, elsewhere one element.
//
//   columns of the tile    0 … 3    4 … 7    …       a thread has packs that are one below the other
//   row 0                  thread 0 thread 1 …
//   row 1                  thread k …
#pragma once

#include "common/operand.cuh"
#include "common/tiles.cuh"
#include "rt/device/device.cuh"

#if defined(__CUDACC__)
#define RK_PRAGMA(text) _Pragma(#text)
#define RK_UNROLL(n) RK_PRAGMA(unroll n)
#else
#define RK_UNROLL(n)
#endif

namespace rk {

// Where a tile lies in the result [i0][i1][i2]: its corner, and the ends of i1 and i2.
struct TilePlace {
  int i0, i1, i2;
  int end1, end2;
};

// Stores Rows×Cols elements of a tile, which stand in shared memory as the sums of KG groups, through the epilogue. The
// sums are added in a fixed order; those of one group may be of the type that the epilogue takes. Batch elements at a
// time: their operands are on the way together, since no store stands between the loads. What adds up many groups and
// has a long epilogue fills the time with two of them. Elements outside the result read a neighbour's operands instead
// of branching. Threads that have no whole row to themselves have no elements.
template <int Threads, int Rows, int Cols, int LDC, int KG, class Epi, class Sum>
RT_DEVICE void drain_elements(const rt::Task& t, const Sum* sums, const rt::Operand3& out,
                              const typename Epi::Args& epi, const TilePlace& place) {
  using Out = typename Epi::Out;
  constexpr int kDraining = Threads / Cols * Cols;
  constexpr int Batch = 2 * KG + Epi::kLength < 14 && Rows * Cols >= 4 * kDraining ? 4 : 2;
  static_assert(kDraining > 0 && Rows * Cols % (Batch * kDraining) == 0, "a tile is whole batches");
  if (kDraining < Threads && t.tid >= kDraining) return;
  // A thread's elements are one below the other.
  constexpr int kRows = kDraining / Cols;
  const int i2 = place.i2 + t.tid % Cols;
  const int near2 = i2 < place.end2 ? i2 : place.end2 - 1, last1 = place.end1 - 1;
  int i1 = place.i1 + t.tid / Cols;
  int left = i2 < place.end2 ? place.end1 - i1 : 0;
  const Sum* from = sums + t.tid / Cols * LDC + t.tid % Cols;
  // A number, so that the compiler sees at every store that it goes to global memory and changes no argument.
  int64_t to = rt::place_of(t.template ptr<Out>(out.ref) + element(out, place.i0, i1, i2));
  const int step = static_cast<int>(out.s1);
  RK_UNROLL(1)
  for (int r = 0; r < Rows; r += Batch * kRows) {
    Out result[Batch];
    RT_UNROLL
    for (int b = 0; b < Batch; ++b) {
      Sum sum = *from;
      if constexpr (KG > 1) {
        RT_UNROLL
        for (int g = 1; g < KG; ++g) sum += from[g * Rows * LDC];
      }
      const int row = i1 + b * kRows;
      result[b] = Epi::apply(t, epi, static_cast<typename Epi::In>(sum), place.i0, row < last1 ? row : last1, near2);
      from += kRows * LDC;
    }
    RT_UNROLL
    for (int b = 0; b < Batch; ++b) {
      result[b] = rt::settled(result[b]);
    }
    RT_UNROLL
    for (int b = 0; b < Batch; ++b) {
      if (b * kRows < left) *rt::at_place<Out>(to) = result[b];
      to = rt::mad_wide(step, kRows * static_cast<int>(sizeof(Out)), to);
    }
    i1 += Batch * kRows;
    left -= Batch * kRows;
  }
}

// How the threads of a drain by packs divide the tile, and how many packs a thread has under way at once: what a turn
// of the loop repeats is about as long for all epilogues, and no more than Most elements.
template <int Threads, int Rows, int Cols, int Most, class Epi>
struct PackDrain {
  static constexpr int kAcross = Cols / Epi::kPack;  // threads that share a row
  static constexpr int below(int most) {
    int n = 1;
    while (2 * n <= most && 2 * n <= Rows) n *= 2;
    return n;
  }
  static constexpr int kRows = below(Threads / kAcross);  // rows that are drained at once
  static constexpr int kDraining = kAcross * kRows;       // threads that have packs
  // Long epilogues of integers quantise again, which is a chain of short operations: two packs fill its time.
  static constexpr bool kIntegers = std::is_same_v<typename Epi::In, int32_t>;
  static constexpr int kRepeated = Epi::kLength <= 4 ? 16 : Epi::kLength <= 14 || kIntegers ? 8 : 4;
  static constexpr int kElements = kRepeated < Most ? kRepeated : Most;
  static constexpr int kWanted = kElements > Epi::kPack ? kElements / Epi::kPack : 1;
  static constexpr int kBatch = kWanted * kRows <= Rows ? kWanted : Rows / kRows;
  // Memory answers later than a turn of the loop takes, above all where a long epilogue has one pack a turn. So the
  // operands of rows come for kSpan turns at once, while those of the turns before are used: in 16 registers at most,
  // or half of them beside many sums. Of more operands, or in the only turn, what a turn needs comes in it: kSpan is 0.
  static constexpr int kTurns = Rows / (kBatch * kRows), kBytes = kBatch * static_cast<int>(sizeof(typename Epi::Row));
  static constexpr int kRoom = (Most < 16 ? 16 : 32) / kBytes, kMostSpan = kTurns < 4 ? kTurns : 4;
  static constexpr bool kWords = !std::is_empty_v<typename Epi::Row> && sizeof(typename Epi::Row) % 4 == 0;
  static constexpr int kSpan = !kWords || kTurns == 1 ? 0 : kRoom < kMostSpan ? kRoom : kMostSpan;
  static_assert(Cols % Epi::kPack == 0 && Threads >= kAcross && Rows % (kBatch * kRows) == 0,
                "a tile is whole batches");
};

// Nothing was asked for early.
struct NoRows {
  static constexpr bool kUsed = false, kColumns = false;
};

// What an epilogue needs of a thread's columns, which is asked for while operands are on their way: behind the sums it
// would be waited for. Threads that have no column ask for the last one.
template <int Threads, int Rows, int Cols, int Most, class Epi, bool Packs = (Epi::kPack > 1)>
struct EarlyColumns : NoRows {
  RT_DEVICE EarlyColumns(const rt::Task&, const typename Epi::Args&, const TilePlace&) {}
};
template <int Threads, int Rows, int Cols, int Most, class Epi>
struct EarlyColumns<Threads, Rows, Cols, Most, Epi, true> : NoRows {
  static constexpr bool kColumns = true;
  typename Epi::Column column;
  RT_DEVICE EarlyColumns(const rt::Task& t, const typename Epi::Args& epi, const TilePlace& place) {
    const int i2 = place.i2 + t.tid % PackDrain<Threads, Rows, Cols, Most, Epi>::kAcross * Epi::kPack;
    const int last = place.end2 - Epi::kPack;
    column = Epi::load_column(t, epi, place.i0, 0, i2 < last ? i2 : last);
  }
};

// What an epilogue needs of all rows of a thread, of Parts parts of the columns, which is asked for before the sums are
// there: where results are quantised again and so few words are needed that they wait in registers. A part takes its
// rows from the front, all of them.
template <class D, class Epi, int Parts>
class EarlyRows {
  using Row = typename Epi::Row;
  static constexpr int kPart = D::kTurns * D::kBatch, kAll = Parts * kPart;

 public:
  static constexpr bool kUsed = D::kIntegers && !std::is_empty_v<Row> && sizeof(Row) == 4 && kAll <= 16;
  static constexpr bool kColumns = false;
  // Cols is from a part to the next.
  template <int Cols>
  RT_DEVICE void load(const rt::Task& t, const typename Epi::Args& epi, const TilePlace& place) {
    if constexpr (kUsed) {
      const int last = place.end1 - 1, i1 = place.i1 + t.tid / D::kAcross;
      const int i2 = place.i2 + t.tid % D::kAcross * Epi::kPack, last2 = place.end2 - Epi::kPack;
      RT_UNROLL
      for (int i = 0; i < kAll; ++i) {
        const int at1 = i1 + i % kPart * D::kRows, at2 = i2 + i / kPart * Cols;
        words_[i] = bit_cast<int>(Epi::load_row(t, epi, place.i0, at1 < last ? at1 : last, at2 < last2 ? at2 : last2));
      }
    }
  }
  RT_DEVICE void take(Row (&rows)[D::kBatch]) {
    RT_UNROLL
    for (int b = 0; b < D::kBatch; ++b) rows[b] = bit_cast<Row>(words_[b]);
    RT_UNROLL
    for (int b = D::kBatch; b < kAll; ++b) words_[b - D::kBatch] = words_[b];
  }

 private:
  int words_[kUsed ? kAll : 1];
};

// What an epilogue needs of the rows of a thread, for one turn of D's loop after another: of those that were asked for
// early, or of those that are asked for here.
template <class D, class Epi, class Early>
class RowOperands {
  using Row = typename Epi::Row;

 public:
  // The first row of the thread, and the last one of the tile. Behind that one nothing is loaded but it again.
  RT_DEVICE RowOperands(const rt::Task& t, const typename Epi::Args& epi, Early& early, int i0, int i1, int i2,
                        int last)
      : t_(t), epi_(epi), early_(early), i0_(i0), i1_(i1), i2_(i2), last_(last) {
    if constexpr (kWaiting > 0) bring();
  }
  RT_DEVICE void take(Row (&rows)[D::kBatch]) {
    if constexpr (Early::kUsed) {
      early_.take(rows);
    } else if constexpr (kWaiting > 0) {
      if (turn_ == 0) {
        RT_UNROLL
        for (int b = 0; b < kWaiting; ++b) near_[b] = coming_[b];
        bring();
      }
      RT_UNROLL
      for (int b = 0; b < D::kBatch; ++b) rows[b] = bit_cast<Row>(near_[b]);
      RT_UNROLL
      for (int b = D::kBatch; b < kWaiting; ++b) near_[b - D::kBatch] = near_[b];
      turn_ = turn_ + 1 == D::kSpan ? 0 : turn_ + 1;
    } else {
      RT_UNROLL
      for (int b = 0; b < D::kBatch; ++b) rows[b] = load();
    }
  }

 private:
  static constexpr int kWaiting = Early::kUsed ? 0 : D::kSpan * D::kBatch, kWords = (sizeof(Row) + 3) / 4;
  // Operands wait as words: nvcc would keep each byte that passes from one turn of a loop to the next in a register of
  // its own, if it knew of bytes.
  struct Words {
    int w[kWords];
  };
  RT_DEVICE void bring() {
    RT_UNROLL
    for (int b = 0; b < kWaiting; ++b) {
      coming_[b] = bit_cast<Words>(load());
      RT_UNROLL
      for (int i = 0; i < kWords; ++i) coming_[b].w[i] = rt::settled(coming_[b].w[i]);
    }
  }
  // The next row's.
  RT_DEVICE Row load() {
    const int at = i1_ < last_ ? i1_ : last_;
    i1_ += D::kRows;
    return Epi::load_row(t_, epi_, i0_, at, i2_);
  }

  const rt::Task& t_;
  const typename Epi::Args& epi_;
  Early& early_;
  int i0_, i1_, i2_, last_;
  int turn_ = 0;
  Words near_[kWaiting + 1], coming_[kWaiting + 1];
};

// What the epilogue needs of the columns of a thread from i2 on.
template <class Epi, class Early>
RT_DEVICE typename Epi::Column column_of(const rt::Task& t, const typename Epi::Args& epi, const Early& early, int i0,
                                         int i2) {
  if constexpr (Early::kColumns) {
    return early.column;
  } else {
    return Epi::load_column(t, epi, i0, 0, i2);
  }
}

// drain_elements by packs. The ends of the result along i2 are ends of packs.
template <int Threads, int Rows, int Cols, int LDC, int KG, int Most, class Epi, class Sum, class Early>
RT_DEVICE void drain_packs(const rt::Task& t, const Sum* sums, const rt::Operand3& out, const typename Epi::Args& epi,
                           const TilePlace& place, Early& early) {
  using D = PackDrain<Threads, Rows, Cols, Most, Epi>;
  using Out = typename Epi::Out;
  using Results = Pack<Out, Epi::kPack>;
  using Sums = Pack<Sum, Epi::kPack>;
  const int row = t.tid / D::kAcross, col = t.tid % D::kAcross * Epi::kPack;
  const int i2 = place.i2 + col;
  const int last1 = (place.i1 + Rows < place.end1 ? place.i1 + Rows : place.end1) - 1;
  const int i1 = place.i1 + row;
  int left = place.end1 - i1;
  if (D::kDraining < Threads && t.tid >= D::kDraining || i2 >= place.end2) return;
  const typename Epi::Column column = column_of<Epi>(t, epi, early, place.i0, i2);
  RowOperands<D, Epi, Early> operands(t, epi, early, place.i0, i1, i2, last1);
  const Sum* from = sums + row * LDC + col;
  // A number, so that the compiler sees at every store that it goes to global memory and changes no argument.
  int64_t to = rt::place_of(t.template ptr<Out>(out.ref) + element(out, place.i0, i1, i2));
  const int step = static_cast<int>(out.s1);
  RK_UNROLL(1)
  for (int r = 0; r < Rows && (Early::kUsed || left > 0); r += D::kBatch * D::kRows) {
    typename Epi::Row rows[D::kBatch];
    operands.take(rows);
    Results results[D::kBatch];
    RT_UNROLL
    for (int b = 0; b < D::kBatch; ++b) {
      Sums sum = *reinterpret_cast<const Sums*>(from);
      if constexpr (KG > 1) {
        RT_UNROLL
        for (int g = 1; g < KG; ++g) {
          const Sums more = *reinterpret_cast<const Sums*>(from + g * Rows * LDC);
          RT_UNROLL
          for (int v = 0; v < Epi::kPack; ++v) sum.v[v] += more.v[v];
        }
      }
      typename Epi::In in[Epi::kPack];
      RT_UNROLL
      for (int v = 0; v < Epi::kPack; ++v) in[v] = static_cast<typename Epi::In>(sum.v[v]);
      results[b] = Epi::apply_pack(epi, column, rows[b], in);
      from += D::kRows * LDC;
    }
    RT_UNROLL
    for (int b = 0; b < D::kBatch; ++b) {
      if (b * D::kRows < left) *rt::at_place<Results>(to) = results[b];
      to = rt::mad_wide(step, D::kRows * static_cast<int>(sizeof(Out)), to);
    }
    left -= D::kBatch * D::kRows;
  }
}

// Either of the two. Most is how many elements a thread may have in registers at once, beside what else is there.
template <int Threads, int Rows, int Cols, int LDC, int KG, int Most, class Epi, class Sum, class Early>
RT_DEVICE void drain_sums(const rt::Task& t, const Sum* sums, const rt::Operand3& out, const typename Epi::Args& epi,
                          const TilePlace& place, Early& early) {
  if constexpr (Epi::kPack > 1) {
    drain_packs<Threads, Rows, Cols, LDC, KG, Most, Epi>(t, sums, out, epi, place, early);
  } else {
    drain_elements<Threads, Rows, Cols, LDC, KG, Epi>(t, sums, out, epi, place);
  }
}

template <int Threads, int Rows, int Cols, int LDC, int KG, int Most, class Epi, class Sum>
RT_DEVICE void drain_sums(const rt::Task& t, const Sum* sums, const rt::Operand3& out, const typename Epi::Args& epi,
                          const TilePlace& place) {
  NoRows none;
  drain_sums<Threads, Rows, Cols, LDC, KG, Most, Epi>(t, sums, out, epi, place, none);
}

}  // namespace rk
