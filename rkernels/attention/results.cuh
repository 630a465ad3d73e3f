// How tiles of attention end: the sums of warps that share rows are joined, and rows are stored through the epilogue.
#pragma once

#include "attention/head_blocks.cuh"
#include "attention/softmax.cuh"
#include "common/types.cuh"

namespace rk {

// Where a thread stores packs of neighbours through the epilogue: in one column of a head, from row to row. `batch` is
// the number of the head among all heads of all batch entries.
template <class Epi>
class HeadColumn {
  using Out = typename Epi::Out;

 public:
  template <class Args>
  RT_DEVICE HeadColumn(const rt::Task& t, const Args& a, int batch, int query, int col)
      : query_(query), step_(static_cast<int>(a.out.s1)) {
    const HeadPlace place(a.joined, batch, a.columns);
    i0_ = place.i0, i2_ = place.first + col;
    to_ = rt::place_of(t.template ptr<Out>(a.out.ref) + element(a.out, i0_, query, i2_));
    if constexpr (Epi::kPack > 1) column_ = Epi::load_column(t, a.epi, i0_, 0, i2_);
  }

  // Stores a pack of sums, or of results if they are no float32, and goes on by Step rows.
  template <int Step, class Args, class Number>
  RT_DEVICE void store(const rt::Task& t, const Args& a, const Pack<Number, Epi::kPack>& x) {
    if constexpr (!std::is_same_v<Number, float>) {
      *rt::at_place<Pack<Out, Epi::kPack>>(to_) = x;
    } else if constexpr (Epi::kPack == 1) {
      *rt::at_place<Out>(to_) = Epi::apply(t, a.epi, static_cast<typename Epi::In>(x.v[0]), i0_, query_, i2_);
    } else {
      *rt::at_place<Pack<Out, Epi::kPack>>(to_) =
          Epi::apply_pack(a.epi, column_, Epi::load_row(t, a.epi, i0_, query_, i2_), x.v);
    }
    query_ += Step;
    to_ = rt::mad_wide(step_, Step * static_cast<int>(sizeof(Out)), to_);
  }

 private:
  // What an epilogue without packs knows of a column.
  struct Nothing {};
  template <class E, bool Packs>
  struct ColumnOf {
    using type = Nothing;
  };
  template <class E>
  struct ColumnOf<E, true> {
    using type = typename E::Column;
  };

  int query_, step_, i0_, i2_;
  int64_t to_;  // a number, so that compilers see at every store that it goes to global memory and changes no argument
  typename ColumnOf<Epi, (Epi::kPack > 1)>::type column_;
};

// Stores BQ rows of DM columns by Threads threads, number `first` of the tile and those behind it, as far as there are
// such. `batch` is the number of the tile's first head. take(row, col) gives the pack of one of the BQ rows, of which
// AtOnce are taken before they are stored. With Together a tile has rows for so many queries of each of several heads,
// but may have fewer queries.
template <int BQ, int DM, int Threads, int AtOnce, int Together, class Epi, class Args, class Take>
RT_DEVICE void store_heads(const rt::Task& t, const Args& a, const HeadTile& tile, int batch, int first, int tid,
                           Take take) {
  constexpr int kPack = Epi::kPack, kAcross = DM / kPack < Threads ? DM / kPack : Threads, kDown = Threads / kAcross;
  static_assert(Threads % kAcross == 0, "threads cover whole rows");
  RK_UNROLL(1)
  for (int col = tid % kAcross * kPack; col < a.columns; col += kAcross * kPack) {
    int row = tid / kAcross;
    if constexpr (Together) {
      RK_UNROLL(1)
      for (int i = 0; i < BQ; i += Together) {
        const int head = (first + i) / Together;
        if (head >= tile.heads) break;
        HeadColumn<Epi> to(t, a, batch + head, tile.q0 + row, col);
        RK_UNROLL(AtOnce)
        for (int query = row; query < tile.queries; query += kDown) {
          to.template store<kDown>(t, a, take(i + query, col));
        }
      }
      continue;
    }
    RK_UNROLL(1)
    while (row < BQ) {  // head after head
      const HeadRow r(a.rows, first + row);
      if (!r.inside(tile)) break;
      HeadColumn<Epi> to(t, a, batch + r.head, tile.q0 + r.query, col);
      const int end = least(BQ, row - r.query + tile.queries);
      RK_UNROLL(AtOnce)
      for (; row < end; row += kDown) to.template store<kDown>(t, a, take(row, col));
    }
  }
}

// Of BQ rows, which a team of Threads threads has in KG groups of warps. A group has the sums of its keys for all rows.
// There may be 8 rows, the first ones of each fragment. Together is that of store_heads(). With Own nobody else uses
// the team's shared memory when its last product has ended. With Late rows are multiplied when they are stored: each
// thread finds out by what for itself, and no barrier stands between that and the sums, which pays for few rows. With
// Part the results are sums for attention_sum.
template <int BQ, int DM, int KG, int Threads, int Together, int Own, int Late, int Part, class Epi>
struct AttentionResults {
  static constexpr int LDC = DM + 8;                                         // of sums in shared memory, in floats
  static constexpr int kHalves = BQ < 16 ? 1 : 2;                            // of a fragment's rows that count
  static constexpr int kSums = 4 * KG * BQ * LDC, kStats = 4 * 2 * KG * BQ;  // bytes
  using Out = typename Epi::Out;
  // Whether sums of one group of warps are only rounded, to 16 bits. Then they are rounded before they go through
  // shared memory, where they take no more room than the queries did.
  static constexpr bool kRounded =
      Own && KG == 1 && Part == 0 && Epi::kLength == 0 && sizeof(Out) == 2 && Epi::kPack == 8;

  static constexpr bool kLate = Late && KG > 1 && Part == 0;

  // Where a thread stands: its number in the team, its group, its first row of the team's, and its place in fragments.
  struct Place {
    int tid, group, row, q;
  };

  // Joins the sums and stores the results. The team's rows begin with row `first` of the tile. `sums` and `stats` are
  // shared memory of the team; the former may be in use by others until the next barrier, which is what sync() is, but
  // not if results are kRounded.
  template <int MI, class State, class Args, class Sync>
  static RT_DEVICE void finish(const rt::Task& t, const Args& a, const HeadTile& tile, int first, const Place& at,
                               float factor, State& s, float* sums, float* stats, Sync sync) {
    float by[MI][2];
    RT_UNROLL
    for (int i = 0; i < MI; ++i) {
      RT_UNROLL
      for (int h = 0; h < kHalves; ++h) {
        float sum = s.sum[i][h];
        sum += rt::shfl_xor(t, sum, 1);
        sum += rt::shfl_xor(t, sum, 2);
        const int row = row_of(at, i, h);
        if constexpr (KG == 1) {
          by[i][h] = alone(t, a, tile, first + row, at.q == 0, s.base[i][h] * factor, sum);
        } else if (at.q == 0) {
          stats[row] = s.base[i][h] * factor, stats[KG * BQ + row] = sum;
        }
      }
    }
    if constexpr (kRounded) {
      Out* results = reinterpret_cast<Out*>(sums);
      if (by[0][0] == kNothing || by[0][1] == kNothing) {
        put_rounded<true>(s.out[0], by[0], at.row, at.q, results);
      } else {
        put_rounded<false>(s.out[0], by[0], at.row, at.q, results);
      }
      sync();
      return store_rounded(t, a, tile, first, at.tid, results);
    }
    sync();
    if constexpr (KG > 1 && !kLate) {
      RK_UNROLL(1)
      for (int row = at.tid; row < BQ; row += Threads) join_groups(t, a, tile, first + row, stats + row);
      sync();
    }
    RT_UNROLL
    for (int i = 0; i < MI; ++i) {
      RT_UNROLL
      for (int h = 0; h < kHalves; ++h)
        put_row(s.out[i], 2 * h,
                KG == 1 ? by[i][h]
                : kLate ? 1.0f
                        : stats[row_of(at, i, h)],
                sums + row_of(at, i, h) * LDC + 2 * at.q);
    }
    sync();
    store_rows(t, a, tile, first, at.tid, sums, stats);
  }

 private:
  // A factor for rows that become 0 whatever their sums are: those that nan_to_zero is for.
  static constexpr float kNothing = -1.0f;

  static RT_DEVICE int row_of(const Place& at, int i, int h) { return at.group * BQ + at.row + 16 * i + 8 * h; }

  // Puts a lane's elements e and e + 1 of a row's fragments into shared memory, multiplied by a factor. Rows that
  // become 0 do so whatever their sums are.
  static RT_DEVICE void put_row(const float (&out)[DM / 8][4], int e, float by, float* to) {
    if (KG == 1 && by == kNothing) {
      RT_UNROLL
      for (int c = 0; c < DM / 8; ++c) *reinterpret_cast<Pack<float, 2>*>(to + 8 * c) = Pack<float, 2>{};
      return;
    }
    RT_UNROLL
    for (int c = 0; c < DM / 8; ++c) {
      *reinterpret_cast<Pack<float, 2>*>(to + 8 * c) = Pack<float, 2>{{out[c][e] * by, out[c][e + 1] * by}};
    }
  }

  // Puts a lane's results of two rows, `row` and eight below it, at places where lanes that put down several rows, or
  // take runs of one, meet in no bank. With Nothing one of the rows may become 0.
  using Blocks = HeadBlocks<BQ, DM, Threads>;
  template <bool Nothing>
  static RT_DEVICE void put_rounded(const float (&out)[DM / 8][4], const float (&by)[2], int row, int q, Out* results) {
    RT_UNROLL
    for (int c = 0; c < DM / 8; ++c) {
      Out* to = results + Blocks::place(row, c) + 2 * q;
      RT_UNROLL
      for (int h = 0; h < 2; ++h) {
        const uint32_t pair = narrow_pair<Out>(out[c][2 * h] * by[h], out[c][2 * h + 1] * by[h]);
        *reinterpret_cast<uint32_t*>(to + 8 * h * Blocks::kColumns) = Nothing && by[h] == kNothing ? 0 : pair;
      }
    }
  }
  template <class Args>
  static RT_DEVICE void store_rounded(const rt::Task& t, const Args& a, const HeadTile& tile, int first, int tid,
                                      const Out* results) {
    // A thread takes runs of rows that are Blocks::kDown apart, all of one column.
    const int row0 = tid / Blocks::kAcross, run = tid % Blocks::kAcross;
    const Out* first_run = results + Blocks::place(row0, run);
    const auto take = [&](int row, int) {
      const Out* from = first_run + (row - row0) * Blocks::kColumns;
      if constexpr (Blocks::kDown % 8 != 0) from = results + Blocks::place(row, run);
      return *reinterpret_cast<const Pack<Out, 8>*>(from);
    };
    store_heads<BQ, DM, Threads, 4, Together, Epi>(t, a, tile, tile.batch(a.rows) + tile.split * a.batch, first, tid,
                                                   take);
  }

  // What the sums of a row are multiplied with that one group has. One of the lanes that share the row is to tell.
  template <class Args>
  static RT_DEVICE float alone(const rt::Task& t, const Args& a, const HeadTile& tile, int row, bool tells, float max,
                               float sum) {
    without_keys(a, max, sum);
    if constexpr (Part != 0) {
      if (tells) store_stats(t, a, tile, row, max, sum);
      return 1.0f;
    }
    return a.nan_to_zero && !(sum > 0.0f) ? kNothing : 1.0f / sum;
  }

  // Where a run has no keys at all, rows are sums of nothing, which are 0, and not 0 / 0: their weights count as 1.
  template <class Args>
  static RT_DEVICE void without_keys(const Args& a, float& max, float& sum) {
    if (a.keys == 0) max = 0.0f, sum = 1.0f;
  }

  // Stores the maximum and the sum of a row of parts.
  template <class Args>
  static RT_DEVICE void store_stats(const rt::Task& t, const Args& a, const HeadTile& tile, int row, float max,
                                    float sum) {
    const HeadRow r(a.rows, row);
    if (!r.inside(tile)) return;
    const int i0 = tile.batch(a.rows) + tile.split * a.batch + r.head, i1 = tile.q0 + r.query;
    store<Epi>(t, a.out, a.epi, max, i0, i1, a.columns);
    store<Epi>(t, a.out, a.epi, sum, i0, i1, a.columns + 1);
  }

  // Finds out what the sums of each group of a row are multiplied with, of whose statistics the first group's are
  // given, and whether the row becomes 0. `max` and `sum` are those of all groups.
  template <class Args>
  static RT_DEVICE bool weigh_groups(const Args& a, const float* stats, float (&by)[KG], float& max, float& sum) {
    max = stats[0], sum = 0.0f;
    RT_UNROLL
    for (int g = 1; g < KG; ++g) max = fmaxf(max, stats[g * BQ]);
    const float base = max == minus_infinity() ? 0.0f : max;
    RT_UNROLL
    for (int g = 0; g < KG; ++g) {
      by[g] = rt::exp2(stats[g * BQ] - base);
      sum += by[g] * stats[(KG + g) * BQ];
    }
    without_keys(a, max, sum);
    const float inverse = Part ? 1.0f : 1.0f / sum;
    RT_UNROLL
    for (int g = 0; g < KG; ++g) by[g] *= inverse;
    return !Part && a.nan_to_zero && !(sum > 0.0f);
  }

  // Puts into stats[g·BQ] what the sums of group g of a row are multiplied with.
  template <class Args>
  static RT_DEVICE void join_groups(const rt::Task& t, const Args& a, const HeadTile& tile, int row, float* stats) {
    float by[KG], max, sum;
    const bool nothing = weigh_groups(a, stats, by, max, sum);
    if constexpr (Part != 0) store_stats(t, a, tile, row, max, sum);
    RT_UNROLL
    for (int g = 0; g < KG; ++g) stats[g * BQ] = nothing ? kNothing : by[g];
  }

  // Stores the rows through the epilogue, in packs if it computes such. Columns of a head are whole packs then.
  template <class Args>
  static RT_DEVICE void store_rows(const rt::Task& t, const Args& a, const HeadTile& tile, int first, int tid,
                                   const float* sums, const float* stats) {
    constexpr int kAtOnce = KG == 1 && Epi::kLength <= 4 ? 4 : 1;
    using Sum = Pack<float, Epi::kPack>;
    const auto joined = [&](int row, int col) {
      const float* from = sums + row * LDC + col;
      Sum x = *reinterpret_cast<const Sum*>(from);
      if constexpr (kLate) {
        float by[KG], max, sum;
        const bool nothing = weigh_groups(a, stats + row, by, max, sum);
        RT_UNROLL
        for (int i = 0; i < Epi::kPack; ++i) x.v[i] *= by[0];
        RT_UNROLL
        for (int g = 1; g < KG; ++g) {
          const Sum more = *reinterpret_cast<const Sum*>(from + g * BQ * LDC);
          RT_UNROLL
          for (int i = 0; i < Epi::kPack; ++i) x.v[i] += by[g] * more.v[i];
        }
        if (nothing) x = Sum{};
      } else if constexpr (KG > 1) {
        RT_UNROLL
        for (int g = 1; g < KG; ++g) {
          const Sum more = *reinterpret_cast<const Sum*>(from + g * BQ * LDC);
          RT_UNROLL
          for (int i = 0; i < Epi::kPack; ++i) x.v[i] += more.v[i];
        }
        if (stats[row] == kNothing) x = Sum{};
      }
      return x;
    };
    store_heads<BQ, DM, Threads, kAtOnce, Together, Epi>(t, a, tile, tile.batch(a.rows) + tile.split * a.batch, first,
                                                         tid, joined);
  }
};

}  // namespace rk
