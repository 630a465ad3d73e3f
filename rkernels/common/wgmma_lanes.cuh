// How the sums of a warp group leave registers without shared memory: through the epilogue to global memory.
//
// A thread of a warp has two neighbours of each eight columns, of two rows. Where epilogues compute packs, the four
// lanes that share a row trade, so that each has packs of neighbours, as wide as an access of memory:
//
//   columns        0 1   2 3   4 5   6 7  │  8 9  …          before: lane 0 has 0 1, 8 9, 16 17 and 24 25
//   lane of four   0     1     2     3    │  0    …          behind: lane 0 has 0 … 7, lane 1 has 8 … 15, …
//
// No thread waits for another warp. Epilogues that compute one element at a time take the way through shared memory
// (common/drain.cuh).
#pragma once

#include "common/wgmma.cuh"

namespace rk {

// What a thread has of row `half` (0, or 1 for the row eight below) of 32 columns from From on, for a tile whose place
// is known only when the program runs.
template <class T, int From = 0>
RT_DEVICE void pick_columns(const typename T::Acc& acc, int from, int half, typename T::Sum (&some)[8]) {
  if (from == From) {
    RT_UNROLL
    for (int i = 0; i < 8; ++i) {
      const int at = From / 2 + i / 2 * 4 + i % 2;
      some[i] = half == 0 ? acc[at] : acc[at + 2];
    }
  } else if constexpr (From + 32 < T::BN) {
    pick_columns<T, From + 32>(acc, from, half, some);
  }
}

// The first column, among 32, of pack number n that lane q of four has when they have traded.
template <int P>
RT_DEVICE int traded_column(int q, int n) {
  static_assert(P == 4 || P == 8, "as many blocks of eight columns are traded as lanes share them");
  return P == 8 ? 8 * q : 16 * n + 8 * (q % 2) + 4 * (q / 2);
}

// Lane q of four trades: `some` has two neighbours of each of four blocks, `packs` gets 8 / P packs of P neighbours.
template <int P, class Sum>
RT_DEVICE void trade_columns(const rt::Task& t, const Sum (&some)[8], int q, Sum (&packs)[8 / P][P]) {
  constexpr int kBlocks = P / 2;  // blocks that are traded, among as many lanes
  RT_UNROLL
  for (int n = 0; n < 8 / P; ++n) {
    Pack<Sum, 2> x[kBlocks];
    RT_UNROLL
    for (int i = 0; i < kBlocks; ++i) x[i] = {{some[2 * (n * kBlocks + i)], some[2 * (n * kBlocks + i) + 1]}};
    RT_UNROLL
    for (int mask = 1; mask < kBlocks; mask *= 2) {
      const bool upper = (q & mask) != 0;  // keeps the upper ones, and sends the lower ones
      RT_UNROLL
      for (int i = 0; i < kBlocks; ++i) {
        if ((i & mask) != 0) continue;
        const Pack<Sum, 2> got = rt::shfl_xor(t, upper ? x[i] : x[i + mask], mask);
        x[i] = upper ? got : x[i];
        x[i + mask] = upper ? x[i + mask] : got;
      }
    }
    RT_UNROLL
    for (int i = 0; i < P; ++i) packs[n][i] = x[i / 2].v[i % 2];
  }
}

// Stores columns of the thread's rows, 32 at a time, and of wide tiles one of its two rows at a time, since the sums of
// the columns that come later leave few registers. Operands of the next turn are on their way meanwhile.
template <class T, class Epi>
class LaneDrain {
  static constexpr int P = Epi::kPack, kPacks = 8 / P;
  static constexpr int kHalves = T::BN > 192 ? 1 : 2;  // rows of a turn
  using Out = typename Epi::Out;
  struct Operands {
    typename Epi::Column columns[kPacks];
    typename Epi::Row rows[kHalves][kPacks];
  };

 public:
  RT_DEVICE LaneDrain(const rt::Task& t, const rt::Operand3& out, const typename Epi::Args& epi, const TilePlace& place)
      : t_(t),
        at_(t.tid),
        epi_(epi),
        place_(place),
        row_(place.i1 + at_.m + at_.g),
        last1_(place.end1 - 1),
        last2_(place.end2 - P),
        to_(rt::place_of(t.template ptr<Out>(out.ref) + element(out, place.i0, row_, column(0, 0)))),
        down_(static_cast<int>(out.s1)) {}

  // Stores columns `from` to `end` of the tile, as far as they are in the result.
  RT_DEVICE void store(const typename T::Acc& acc, int from, int end) {
    if (end > place_.end2 - place_.i2) end = place_.end2 - place_.i2;
    if (from >= end) return;
    int half = 0;
    Operands next = load(from, half);
    RK_UNROLL(1)
    while (from < end) {
      const Operands now = next;
      const int from_now = from, half_now = half;
      from += kHalves == 2 ? 32 : 32 * half;
      half = kHalves == 2 ? 0 : 1 - half;
      if (from < end) next = load(from, half);
      RT_UNROLL
      for (int h = 0; h < kHalves; ++h) store_row(acc, from_now, half_now + h, now.columns, now.rows[h]);
    }
  }

 private:
  // Packs outside the result have the operands of a neighbour.
  RT_DEVICE Operands load(int from, int half) const {
    Operands o;
    RT_UNROLL
    for (int n = 0; n < kPacks; ++n) {
      const int i2 = column(from, n), near2 = i2 < last2_ ? i2 : last2_;
      o.columns[n] = Epi::load_column(t_, epi_, place_.i0, 0, near2);
      RT_UNROLL
      for (int h = 0; h < kHalves; ++h) {
        const int i1 = row_ + 8 * (half + h);
        o.rows[h][n] = Epi::load_row(t_, epi_, place_.i0, i1 < last1_ ? i1 : last1_, near2);
      }
    }
    return o;
  }

  RT_DEVICE void store_row(const typename T::Acc& acc, int from, int half,
                           const typename Epi::Column (&columns)[kPacks],
                           const typename Epi::Row (&rows)[kPacks]) const {
    typename T::Sum some[8], packs[kPacks][P];
    pick_columns<T>(acc, from, half, some);
    trade_columns<P>(t_, some, at_.q, packs);
    const int i1 = row_ + 8 * half;
    RT_UNROLL
    for (int n = 0; n < kPacks; ++n) {
      typename Epi::In in[P];
      RT_UNROLL
      for (int i = 0; i < P; ++i) in[i] = static_cast<typename Epi::In>(packs[n][i]);
      const Pack<Out, P> results = Epi::apply_pack(epi_, columns[n], rows[n], in);
      const int i2 = column(from, n);
      const int64_t to = rt::mad_wide(from + 16 * n, sizeof(Out), rt::mad_wide(half * down_, 8 * sizeof(Out), to_));
      if (i1 <= last1_ && i2 <= last2_) *rt::at_place<Pack<Out, P>>(to) = results;
    }
  }

  RT_DEVICE int column(int from, int n) const { return place_.i2 + from + traded_column<P>(at_.q, n); }

  const rt::Task& t_;
  typename T::At at_;
  const typename Epi::Args& epi_;
  TilePlace place_;
  int row_, last1_, last2_;
  int64_t to_;  // the place of the thread's first pack, a number, so that stores through it change no argument
  int down_;    // from a row to the next
};

}  // namespace rk
