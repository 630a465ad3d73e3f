// out[b][q] = softmax(scale·Q[b][q]·Kᵀ[b] + mask[b][q])·V[b] in float32, for few rows of queries: one token that
// attends to those before it. The time of such attention is that of reading K and V, once for all heads that share
// them. So nothing is staged, and no thread waits for another before the end.
//
// An rTask has all keys of a tile of rows, or a part of them. Lanes form teams as wide as a row of K is in loads of 16
// bytes. A team takes one key after another, several at a time so that their loads are on the way together, and keeps a
// running softmax of its own. In the end the sums of all teams are joined:
//
//   head size 64, 16 bits     lanes 0 … 7    8 … 15   16 … 23  24 … 31
//   team                      0              1        2        3         of warp 0; 32 teams in all
//   keys                      0, 32, 64 …    1, 33 …  2, 34 …  3, 35 …
//
// The keys and values of new tokens may lie apart from those of the tokens before (Appended): then the cache of a
// decoder is read where its caller left it, or, where the program keeps it, as the run before has left it. With a
// rotary embedding, row x of the queries and of the new keys becomes
// x·cos + (-x_high, x_low)·sin when it is loaded; each lane loads the element of the other half as well.
#pragma once

#include <cmath>

#include "attention/appended.cuh"

namespace rk {

// Q is the element type of the queries, T that of K and V. A tile has up to R rows. DM is the head size rounded up to
// 32, 64, 128 or 256. Without Masked there is no mask. With Part the rTask leaves its sums for attention_sum. If
// Appended is not 0, the last keys and values lie apart; if it is 2, they and the queries are embedded, and Q is T; if
// it is 3, a list says for each key from which batch entry it and its value are taken. If Early is 1, the others are
// inputs of the model, and are asked for before the rTask's inputs have come; if it is 2, they are states, which the
// program has kept since the run before. The prologues ProQ, ProK and ProV only convert: a zero stays one.
template <class Q, class T, int R, int DM, int Masked, int Part, int Appended, int Early, class Epi, class ProQ,
          class ProK, class ProV>
struct AttentionFew : BeginsEarly<Early> {
  static constexpr int kThreads = 256, kWarps = kThreads / 32;
  static constexpr int kPer = kPerLoad<T>;
  static constexpr int kTeam = DM / kPer < 32 ? DM / kPer : 32;  // lanes of a team
  static constexpr int kLoads = DM / (kTeam * kPer);             // of a lane for a row of K or V
  static constexpr int kOwn = kLoads * kPer;                     // columns of a lane
  static constexpr int kTeams = kThreads / kTeam;
  static constexpr int kAtOnce = kOwn <= 4 ? 4 : 2;  // keys of a team on the way together
  static constexpr int LD = DM + 2;                  // a row of sums, its maximum and its sum of weights
  static constexpr int kShared = 4 * kWarps * R * LD;
  static constexpr float kLog2e = 1.44269504088896340736f;

  struct Args {
    HeadMatrix q, k, v, mask;
    rt::Operand3 out;  // see HeadPlace; parts are [split·batch][query][column], two columns wider
    HeadRows rows;
    Div joined;
    int32_t batch;             // all heads of all batch entries
    int32_t keys, split_keys;  // of all splits, of one
    int32_t depth, columns;    // of Q and K, of V
    // A query attends to keys from its own number plus `before` to its own number plus `behind`.
    int32_t before, behind;
    int32_t nan_to_zero;
    float scale;
    typename Epi::Args epi;
    typename ProQ::Args pro_q;
    typename ProK::Args pro_k;
    typename ProV::Args pro_v;
    AppendedRows<Appended> appended;
  };

  // What the lanes of a team keep for the rows: the running maximum and the sum of weights, which all of them have,
  // and each lane's columns of the weighted sum of V. Maxima are those of scores · log2(e), so that weights are powers
  // of 2.
  struct State {
    float max[R], sum[R], out[R][kOwn];
  };
  // What a lane reads of some rows of a matrix.
  using Line = Pack<T, kPer>[kAtOnce][kLoads];
  struct Lines {
    Line k, v;
  };
  // Where a list says which rows are read, those of a turn are on their way while the turn before is added up.
  static constexpr bool kAhead = Appended == 3;

  using Entries = KeyEntries<Appended, kAtOnce>;  // of a team's keys of a turn

  // K or V of a tile: the rows in front, and those that are appended.
  struct Rows {
    const T *from, *behind;
    int row, row_behind;    // element strides
    int past;               // rows in front
    int step, step_behind;  // element strides of listed batch entries

    RT_DEVICE Rows(const rt::Task& t, const Args& a, const HeadMatrix& m, const HeadTile& tile)
        : from(m.template head<T>(t, tile.b0, tile.b1, tile.b2)), behind(from), row(static_cast<int>(m.row)) {
      if constexpr (Appended != 0) {
        const HeadMatrix& other = &m == &a.k ? a.appended.k : a.appended.v;
        behind = other.template head<T>(t, tile.b0, tile.b1, tile.b2);
        row_behind = static_cast<int>(other.row), past = a.keys - a.appended.count;
        if constexpr (Appended == 3) {
          step = &m == &a.k ? a.appended.k_step : a.appended.v_step;
          step_behind = &m == &a.k ? a.appended.new_k_step : a.appended.new_v_step;
        }
      }
    }
    // The lane's columns of those of rows key, key + kTeams … that are in front; zeros for others.
    RT_DEVICE void load(const Entries& entries, int key, int end, int columns, int lane, Line& line) const {
      RT_UNROLL
      for (int u = 0; u < kAtOnce; ++u) {
        const int i = key + u * kTeams;
        const T* first = from;
        if constexpr (Appended == 3) first = ahead(first, entries.at[u], step);
        RT_UNROLL
        for (int c = 0; c < kLoads; ++c) {
          const int col = column(lane, c * kPer);
          line[u][c] = Pack<T, kPer>{};
          if (i < (Appended != 0 ? least(end, past) : end) && col < columns) take(first, i, row, col, line[u][c]);
        }
      }
    }
    // And of those that are appended.
    RT_DEVICE void load_behind(const Entries& entries, int key, int end, int columns, int lane, Line& line) const {
      if (key + (kAtOnce - 1) * kTeams < past) return;
      RT_UNROLL
      for (int u = 0; u < kAtOnce; ++u) {
        const int i = key + u * kTeams;
        const T* first = behind;
        if constexpr (Appended == 3) first = ahead(first, entries.at[u], step_behind);
        RT_UNROLL
        for (int c = 0; c < kLoads; ++c) {
          const int col = column(lane, c * kPer);
          if (i >= past && i < end && col < columns) take(first, i - past, row_behind, col, line[u][c]);
        }
      }
    }

   private:
    static RT_DEVICE void take(const T* first, int i, int step, int col, Pack<T, kPer>& to) {
      to = *reinterpret_cast<const Pack<T, kPer>*>(ahead(first, i, step) + col);
    }
  };

  // The lane's column number i; those of one load follow each other.
  static RT_DEVICE int column(int lane, int i) { return (i / kPer * kTeam + lane % kTeam) * kPer + i % kPer; }

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    const HeadTile tile(a.rows, rtask);
    const int lane = t.tid % 32;
    // The keys that some row of the tile attends to, of this split.
    const int first = most(tile.split * a.split_keys, tile.q0 + a.before);
    const int end = least(least((tile.split + 1) * a.split_keys, a.keys), tile.q0 + tile.queries + a.behind);
    const Rows k(t, a, a.k, tile), v(t, a, a.v, tile);
    // All teams of a warp make the same number of turns, since they exchange their sums together. The first keys and
    // values are on their way before the queries are there.
    const int turn = kTeams * kAtOnce, turns = ceil_div(end - first, turn);
    int key = first + t.tid / kTeam;
    Lines lines;
    if constexpr (Early == 1) t.wait_for_model();
    const auto load = [&](int key, const Entries& entries, bool first, Lines& to) {
      k.load(entries, key, end, a.depth, lane, to.k);
      v.load(entries, key, end, a.columns, lane, to.v);
      if constexpr (Early != 0) {
        if (first) t.wait_for_inputs();
      }
      if constexpr (Appended != 0) {
        k.load_behind(entries, key, end, a.depth, lane, to.k);
        v.load_behind(entries, key, end, a.columns, lane, to.v);
      }
    };
    Entries entries(t, a, tile, key, kTeams, end);
    load(key, entries, true, lines);
    if constexpr (kAhead) entries = Entries(t, a, tile, key + turn, kTeams, end);
    float q[R][kOwn];
    load_queries(t, a, tile, lane, q);
    State s;
    RT_UNROLL
    for (int r = 0; r < R; ++r) {
      s.max[r] = minus_infinity(), s.sum[r] = 0.0f;
      RT_UNROLL
      for (int i = 0; i < kOwn; ++i) s.out[r][i] = 0.0f;
    }
    RK_UNROLL(1)
    for (int i = 0; i < turns; ++i, key += turn) {
      Lines next;
      if constexpr (kAhead) {
        if (i + 1 < turns) {
          load(key + turn, entries, false, next);
          entries = Entries(t, a, tile, key + 2 * turn, kTeams, end);
        }
      } else if (i > 0) {
        load(key, entries, false, lines);
      }
      if constexpr (Appended == 2) embed_new(t, a, tile, key, end, lane, lines.k);
      float x[R][kAtOnce];
      scores(t, a, tile, q, lines.k, key, end, x);
      add(a, x, lines.v, s);
      if constexpr (kAhead) {
        if (i + 1 < turns) lines = next;
      }
    }
    join_teams(t, s);
    finish(t, a, tile, s);
  }

 private:
  template <int N>
  using Turn = RotaryTurn<T, N>;

  // The lane's columns of the queries, multiplied by the scale; zeros where there are none. There the first query is
  // loaded again: so no load waits for a condition, and all rows are on their way together.
  static RT_DEVICE void load_queries(const rt::Task& t, const Args& a, const HeadTile& tile, int lane,
                                     float (&q)[R][kOwn]) {
    constexpr int kVec = 4;
    const Q* base = a.q.template head<Q>(t, tile.b0, tile.b1, tile.b2) + tile.q0 * a.q.row;
    RT_UNROLL
    for (int i = 0; i < kOwn; i += kVec) {
      const int col = column(lane, i);
      Pack<Q, kVec> held[R];
      Turn<kVec> turns[R];
      RT_UNROLL
      for (int r = 0; r < R; ++r) {
        const HeadRow row(a.rows, r);
        const bool there = row.inside(tile) && col < a.depth;
        const int from = there ? col : 0, query = there ? row.query : 0;
        const Q* first = base + (there ? row.head * a.q.s2 + query * a.q.row : 0);
        held[r] = *reinterpret_cast<const Pack<Q, kVec>*>(first + from);
        if constexpr (Appended == 2) turns[r].load(t, a, tile, first, tile.q0 + query, from);
      }
      RT_UNROLL
      for (int r = 0; r < R; ++r) {
        const bool there = HeadRow(a.rows, r).inside(tile) && col < a.depth;
        if constexpr (Appended == 2) turns[r].apply(a, col, held[r]);
        RT_UNROLL
        for (int e = 0; e < kVec; ++e) {
          q[r][i + e] = there ? float(ProQ::apply(a.pro_q, held[r].v[e])) * (a.scale * kLog2e) : 0.0f;
        }
      }
    }
  }

  // Embeds those of a team's keys of this turn that are new.
  static RT_DEVICE void embed_new(const rt::Task& t, const Args& a, const HeadTile& tile, int key, int end, int lane,
                                  Line& line) {
    const int past = a.keys - a.appended.count;
    if (key + (kAtOnce - 1) * kTeams < past) return;
    const HeadMatrix& m = a.appended.k;
    const T* k = m.template head<T>(t, tile.b0, tile.b1, tile.b2);
    RT_UNROLL
    for (int u = 0; u < kAtOnce; ++u) {
      const int i = key + u * kTeams - past;
      RT_UNROLL
      for (int c = 0; c < kLoads; ++c) {
        const int col = column(lane, c * kPer);
        if (i >= 0 && i + past < end && col < a.depth) {
          Turn<kPer> turn;
          turn.load(t, a, tile, k + place(i, m.row), i, col);
          turn.apply(a, col, line[u][c]);
        }
      }
    }
  }

  // The scores of all rows and of the team's keys of this turn, times log2(e).
  static RT_DEVICE void scores(const rt::Task& t, const Args& a, const HeadTile& tile, const float (&q)[R][kOwn],
                               const Line& line, int key, int end, float (&x)[R][kAtOnce]) {
    RT_UNROLL
    for (int r = 0; r < R; ++r) {
      RT_UNROLL
      for (int u = 0; u < kAtOnce; ++u) {
        x[r][u] = 0.0f;
        RT_UNROLL
        for (int i = 0; i < kOwn; ++i) {
          x[r][u] += q[r][i] * float(ProK::apply(a.pro_k, line[u][i / kPer].v[i % kPer]));
        }
      }
    }
    RK_UNROLL(1)
    for (int d = kTeam / 2; d > 0; d /= 2) {
      RT_UNROLL
      for (int r = 0; r < R; ++r) {
        RT_UNROLL
        for (int u = 0; u < kAtOnce; ++u) x[r][u] += rt::shfl_xor(t, x[r][u], d);
      }
    }
    RT_UNROLL
    for (int r = 0; r < R; ++r) {
      const HeadRow row(a.rows, r);
      const int query = tile.q0 + row.query;
      const float* mask = nullptr;
      if constexpr (Masked != 0) {
        if (row.inside(tile)) {
          mask = a.mask.template head<float>(t, tile.b0, tile.b1, tile.b2 + row.head) + query * a.mask.row;
        }
      }
      RT_UNROLL
      for (int u = 0; u < kAtOnce; ++u) {
        const int at = key + u * kTeams;
        if (Masked && mask && at < end) x[r][u] += masked(mask[at * a.mask.col]);
        if (at >= end || at - query < a.before || at - query > a.behind) x[r][u] = minus_infinity();
      }
    }
  }

  // A number of the mask times log2(e). Finite numbers stay finite: masks may have the lowest float32 for -inf.
  static RT_DEVICE float masked(float m) { return m == minus_infinity() ? m : fmaxf(m * kLog2e, -3.402823466e+38f); }

  // Adds the rows of V of a turn. A row of queries without any finite score keeps maximum -inf and sum 0.
  static RT_DEVICE void add(const Args& a, const float (&x)[R][kAtOnce], const Line& line, State& s) {
    RT_UNROLL
    for (int r = 0; r < R; ++r) {
      float top = s.max[r];
      RT_UNROLL
      for (int u = 0; u < kAtOnce; ++u) top = fmaxf(top, x[r][u]);
      const float base = top == minus_infinity() ? 0.0f : top, keep = rt::exp2(s.max[r] - base);
      s.max[r] = top, s.sum[r] *= keep;
      RT_UNROLL
      for (int i = 0; i < kOwn; ++i) s.out[r][i] *= keep;
      RT_UNROLL
      for (int u = 0; u < kAtOnce; ++u) {
        const float p = rt::exp2(x[r][u] - base);
        s.sum[r] += p;
        RT_UNROLL
        for (int i = 0; i < kOwn; ++i) {
          s.out[r][i] += p * float(ProV::apply(a.pro_v, line[u][i / kPer].v[i % kPer]));
        }
      }
    }
  }

  // Joins the sums of the teams of a warp; all of them have the result.
  static RT_DEVICE void join_teams(const rt::Task& t, State& s) {
    RK_UNROLL(1)
    for (int d = kTeam; d < 32; d *= 2) {
      RT_UNROLL
      for (int r = 0; r < R; ++r) {
        const float other = rt::shfl_xor(t, s.max[r], d), top = fmaxf(s.max[r], other);
        const float base = top == minus_infinity() ? 0.0f : top, keep = rt::exp2(s.max[r] - base);
        s.max[r] = top, s.sum[r] *= keep;
        s.sum[r] += rt::shfl_xor(t, s.sum[r], d);
        RT_UNROLL
        for (int i = 0; i < kOwn; ++i) {
          s.out[r][i] *= keep;
          s.out[r][i] += rt::shfl_xor(t, s.out[r][i], d);
        }
      }
    }
  }

  // Joins the sums of the warps through shared memory, [warp][row][column], and stores the results.
  static RT_DEVICE void finish(const rt::Task& t, const Args& a, const HeadTile& tile, const State& s) {
    float* sums = reinterpret_cast<float*>(t.smem);
    const int lane = t.tid % 32;
    if (lane < kTeam) {
      RT_UNROLL
      for (int r = 0; r < R; ++r) {
        float* row = sums + (t.tid / 32 * R + r) * LD;
        RT_UNROLL
        for (int i = 0; i < kOwn; ++i) row[column(lane, i)] = s.out[r][i];
        if (lane == 0) row[DM] = s.max[r], row[DM + 1] = s.sum[r];
      }
    }
    t.sync();
    const int batch = tile.batch(a.rows) + tile.split * a.batch;
    RK_UNROLL(1)
    for (int e = t.tid; e < R * DM; e += kThreads) {
      const int r = e / DM, col = e % DM;
      const HeadRow row(a.rows, r);
      if (!row.inside(tile) || col >= a.columns) continue;
      const float* from = sums + r * LD;
      float max = from[DM];
      RT_UNROLL
      for (int w = 1; w < kWarps; ++w) max = fmaxf(max, from[w * R * LD + DM]);
      const float base = max == minus_infinity() ? 0.0f : max;
      float x = 0.0f, sum = 0.0f;
      RK_UNROLL(4)
      for (int w = 0; w < kWarps; ++w) {
        const float* of = from + w * R * LD;
        const float by = rt::exp2(of[DM] - base);
        x += by * of[col], sum += by * of[DM + 1];
      }
      if (a.keys == 0) max = 0.0f, sum = 1.0f;  // a sum of nothing is 0, and not 0 / 0 (results.cuh)
      const HeadPlace to(a.joined, batch + row.head, a.columns);
      const int query = tile.q0 + row.query;
      if constexpr (Part != 0) {
        if (col == 0) {
          store<Epi>(t, a.out, a.epi, max, to.i0, query, a.columns);
          store<Epi>(t, a.out, a.epi, sum, to.i0, query, a.columns + 1);
        }
      } else {
        x = a.nan_to_zero && !(sum > 0.0f) ? 0.0f : x / sum;
      }
      store<Epi>(t, a.out, a.epi, x, to.i0, query, to.first + col);
    }
  }
};

}  // namespace rk
