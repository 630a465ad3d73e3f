// out[b][q] = softmax(scale·Q[b][q]·Kᵀ[b] + mask[b][q])·V[b] on tensor cores, without the scores ever being in memory.
//
// An rTask has BQ rows of queries. It goes through the keys in stages that are copied to shared memory; while a stage
// is computed, the next one is on its way. A warp has WQ rows and KT keys of every stage. KG warps share the same rows
// and take different keys, each with a running softmax of its own; in the end their sums are joined:
//
//                  stage 0         stage 1
//   rows \ keys    KT  KT  …       KT  KT  …
//   WQ             w0  w2          w0  w2         w: warp of the block; here BQ/WQ = 2
//   WQ             w1  w3          w1  w3
//
// The probabilities of a warp stay in registers between the two products (products.cuh).
#pragma once

#include <cmath>

#include "attention/products.cuh"

namespace rk {

// T is the element type of Q, K and V, which is multiplied as it is: float32 as tf32. DM is the head size (of Q, K and
// V alike) rounded up to 32, 64, 128 or 256. Products is 1, or for float32 3 (its own accuracy). Without Masked there
// is no mask. With Part the rTask has only a part of the keys, and leaves its sums for attention_sum. Mode is kLoadVec4
// or kLoadByCol.
template <class T, int BQ, int DM, int KG, int KT, int WQ, int Products, int Masked, int Part, int Mode, class Epi>
struct AttentionMma {
  using Shape = AttentionShape<BQ, DM, KG, KT, WQ>;
  using Place = typename Shape::Place;
  using Scores = typename Shape::Scores;
  using Multiply = AttentionProducts<T, Shape, Products>;
  static constexpr int kThreads = Shape::kThreads, kKeys = Shape::kKeys, kStages = 2;
  static constexpr int MI = Shape::MI, NI = Shape::NI, CI = Shape::CI;
  static constexpr int LD = Multiply::LD, LDC = DM + 8;  // of operands and of sums in shared memory
  static constexpr int kQueries = Multiply::kPlanes * BQ * LD, kStage = kKeys * LD;
  static constexpr int kRing = (kQueries + 2 * kStages * kStage) * sizeof(T), kSums = 4 * KG * BQ * LDC;  // bytes
  static constexpr int kBody = kRing > kSums ? kRing : kSums;
  static constexpr int kShared = kBody + 4 * 2 * KG * BQ;
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
  };

  // What a lane keeps for its rows, g and g + 8 of each fragment: the running maximum, its share of the sum of weights,
  // and its elements of the weighted sum of V. Maxima are those of scores · log2(e), so that weights are powers of 2.
  struct State {
    float max[MI][2], sum[MI][2];
    typename Shape::Sums out;

    RT_DEVICE State() {
      RT_UNROLL
      for (int i = 0; i < MI; ++i) {
        max[i][0] = max[i][1] = minus_infinity();
        sum[i][0] = sum[i][1] = 0.0f;
        RT_UNROLL
        for (int c = 0; c < CI; ++c) out[i][c][0] = out[i][c][1] = out[i][c][2] = out[i][c][3] = 0.0f;
      }
    }
  };

  // What a lane knows of its rows and of all keys. It is a copy of what it needs of the arguments: compilers read these
  // again behind each asynchronous copy, which may change them as far as they can know.
  struct Rows {
    int query[MI][2];
    const float* mask[Masked ? MI : 1][2];  // the rows of the mask, null for rows that do not exist
    int mask_col, end, before, behind;

    RT_DEVICE Rows(const rt::Task& t, const Args& a, const HeadTile& tile, const Place& at, int end_of_keys)
        : mask_col(static_cast<int>(a.mask.col)), end(end_of_keys), before(a.before), behind(a.behind) {
      RT_UNROLL
      for (int i = 0; i < 2 * MI; ++i) {
        const HeadRow r(a.rows, at.row + 8 * i + at.g);
        query[i / 2][i % 2] = tile.q0 + r.query;
        if constexpr (Masked != 0) {
          const float* m =
              a.mask.template head<float>(t, tile.b0, tile.b1, tile.b2 + r.head) + (tile.q0 + r.query) * a.mask.row;
          mask[i / 2][i % 2] = r.inside(tile) ? m : nullptr;
        }
      }
    }
  };

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    const HeadTile tile(a.rows, rtask);
    const Place at(t.tid);
    T* sq = reinterpret_cast<T*>(t.smem);
    T* sk = sq + kQueries;
    T* sv = sk + kStages * kStage;
    // The keys that some row of the tile attends to, of this split.
    const int first = most(tile.split * a.split_keys, tile.q0 + a.before);
    const int end = least(least((tile.split + 1) * a.split_keys, a.keys), tile.q0 + tile.queries + a.behind);
    const int stages = end > first ? ceil_div(end - first, kKeys) : 0;

    const NoPrologue::Args none{};
    const T* k = a.k.template head<T>(t, tile.b0, tile.b1, tile.b2) + first * a.k.row;
    const T* v = a.v.template head<T>(t, tile.b0, tile.b1, tile.b2) + first * a.v.row;
    // To the loaders the keys are the dim k of a product: each issue() brings those of the next stage.
    using Loader = StridedLoader<kThreads, kKeys, DM, LD, false, Mode, NoPrologue, T>;
    Loader load_k{k, a.k.row, a.k.col, end - first, a.depth, t.tid, none};
    Loader load_v{v, a.v.row, a.v.col, end - first, a.columns, t.tid, none};
    using Queries = QueryLoader<T, kThreads, BQ, DM, LD, Mode>;
    Queries::issue(t.tid, a.q.template head<T>(t, tile.b0, tile.b1, tile.b2) + tile.q0 * a.q.row, a.q, a.rows, tile,
                   a.depth, sq);
    const Rows rows(t, a, tile, at, end);
    const int depth = a.depth;
    const float factor = a.scale * kLog2e;
    State s;
    // Before the first stage is a turn that only brings it. The queries come together with its keys.
    RK_UNROLL(1)
    for (int i = -1; i < stages; ++i) {
      const int key = first + i * kKeys + at.key, left = rows.end - key;
      Scores x;
      if (i >= 0) {
        start_scores(rows, key + 2 * at.q, x);
        rt::cp_async_wait<1>();
        t.sync();
      }
      const int next = (i + 1) % kStages * kStage;
      if (i + 1 < stages) load_k.issue(sk + next);
      rt::cp_async_commit();
      if (i + 1 < stages) load_v.issue(sv + next);
      rt::cp_async_commit();
      if (i < 0) {
        rt::cp_async_wait<1>();
        Multiply::template prepare<Queries>(t.tid, factor, sq);
        continue;
      }
      const int stage = i % kStages * kStage;
      if (left > 0) {
        score(at, sq, sk + stage, depth, factor, x);
        if (!all_seen(rows, tile, key)) hide(rows, key + 2 * at.q, x);
        weigh(t, x, s);
      }
      rt::cp_async_wait<2>();
      t.sync();
      if (left > 0) Multiply::accumulate(at, sv + stage, x, s.out);
    }
    rt::cp_async_wait<0>();
    finish(t, a, tile, at, s);
  }

 private:
  // Scores begin as the mask. `key` is that of the lane's first element. Finite numbers stay finite.
  static RT_DEVICE void start_scores(const Rows& rows, int key, Scores& x) {
    RT_UNROLL
    for (int i = 0; i < MI; ++i) {
      RT_UNROLL
      for (int j = 0; j < NI; ++j) {
        RT_UNROLL
        for (int e = 0; e < 4; ++e) {
          x[i][j][e] = 0.0f;
          if constexpr (Masked != 0) {
            const float* row = rows.mask[i][e / 2];
            const int at = 8 * j + e % 2;
            const float m =
                row && key + at < rows.end ? *ahead(row + place(key, rows.mask_col), at, rows.mask_col) : 0.0f;
            x[i][j][e] = m == minus_infinity() ? m : fmaxf(m * kLog2e, -3.402823466e38f);
          }
        }
      }
    }
  }

  // Adds the scaled products to x.
  static RT_DEVICE void score(const Place& at, const T* sq, const T* sk, int depth, float factor, Scores& x) {
    if constexpr (!Multiply::kScaleScores) return Multiply::add_scores(at, sq, sk, depth, x);
    Scores products = {};
    Multiply::add_scores(at, sq, sk, depth, products);
    RT_UNROLL
    for (int i = 0; i < MI; ++i) {
      RT_UNROLL
      for (int j = 0; j < NI; ++j) {
        RT_UNROLL
        for (int e = 0; e < 4; ++e) x[i][j][e] += products[i][j][e] * factor;
      }
    }
  }

  // Whether all queries of the tile attend to all of the warp's keys, which begin with `key`.
  static RT_DEVICE bool all_seen(const Rows& rows, const HeadTile& tile, int key) {
    return key + KT <= rows.end && key - (tile.q0 + tile.queries - 1) >= rows.before &&
           key + KT - 1 - tile.q0 <= rows.behind;
  }

  // Keys behind the end, and those that a query does not attend to, get no weight.
  static RT_DEVICE void hide(const Rows& rows, int key, Scores& x) {
    RT_UNROLL
    for (int i = 0; i < 2 * MI; ++i) {
      const int query = rows.query[i / 2][i % 2];
      const int from = query + rows.before, to = least(rows.end - 1, query + rows.behind);
      RT_UNROLL
      for (int j = 0; j < NI; ++j) {
        RT_UNROLL
        for (int e = 0; e < 2; ++e) {
          const int at = key + 8 * j + e;
          if (at < from || at > to) x[i / 2][j][i % 2 * 2 + e] = minus_infinity();
        }
      }
    }
  }

  // Turns scores into weights relative to the new running maximum, and rescales what has been summed so far. A row
  // without any finite score keeps maximum -inf and sum 0, which finish() turns into NaN or 0.
  static RT_DEVICE void weigh(const rt::Task& t, Scores& x, State& s) {
    RT_UNROLL
    for (int i = 0; i < MI; ++i) {
      RT_UNROLL
      for (int h = 0; h < 2; ++h) {
        float top = s.max[i][h];
        RT_UNROLL
        for (int j = 0; j < NI; ++j) top = fmaxf(top, fmaxf(x[i][j][2 * h], x[i][j][2 * h + 1]));
        top = fmaxf(top, rt::shfl_xor(t, top, 1));
        top = fmaxf(top, rt::shfl_xor(t, top, 2));
        const float base = top == minus_infinity() ? 0.0f : top;
        const float keep = rt::exp2(s.max[i][h] - base);
        s.max[i][h] = top;
        float sum = 0.0f;
        RT_UNROLL
        for (int j = 0; j < NI; ++j) {
          RT_UNROLL
          for (int e = 2 * h; e < 2 * h + 2; ++e) {
            x[i][j][e] = rt::exp2(x[i][j][e] - base);
            sum += x[i][j][e];
          }
        }
        s.sum[i][h] = s.sum[i][h] * keep + sum;
        RT_UNROLL
        for (int c = 0; c < CI; ++c) s.out[i][c][2 * h] *= keep, s.out[i][c][2 * h + 1] *= keep;
      }
    }
  }

  // Joins the sums of the warps that share rows, and stores the results.
  static RT_DEVICE void finish(const rt::Task& t, const Args& a, const HeadTile& tile, const Place& at, State& s) {
    float* sums = reinterpret_cast<float*>(t.smem);
    float* stats = sums + kBody / 4;  // [group][row]: maxima, and behind them sums
    RT_UNROLL
    for (int i = 0; i < MI; ++i) {
      RT_UNROLL
      for (int h = 0; h < 2; ++h) {
        float sum = s.sum[i][h];
        sum += rt::shfl_xor(t, sum, 1);
        sum += rt::shfl_xor(t, sum, 2);
        const int row = at.group * BQ + at.row + 16 * i + 8 * h + at.g;
        if (at.q == 0) stats[row] = s.max[i][h], stats[KG * BQ + row] = sum;
      }
    }
    t.sync();
    if (t.tid < BQ) join_groups(t, a, tile, t.tid, stats + t.tid);
    t.sync();
    RT_UNROLL
    for (int i = 0; i < MI; ++i) {
      RT_UNROLL
      for (int h = 0; h < 2; ++h) {
        const int row = at.group * BQ + at.row + 16 * i + 8 * h + at.g;
        const float by = stats[row];
        float* p = sums + row * LDC + 2 * at.q;
        RT_UNROLL
        for (int c = 0; c < CI; ++c) {
          *reinterpret_cast<Pack<float, 2>*>(p + 8 * c) =
              Pack<float, 2>{{s.out[i][c][2 * h] * by, s.out[i][c][2 * h + 1] * by}};
        }
      }
    }
    t.sync();
    store_rows(t, a, tile, sums, stats);
  }

  // A factor for rows that become 0 whatever their sums are: those that nan_to_zero is for.
  static constexpr float kNothing = -1.0f;

  // Puts into stats[g·BQ] what the sums of group g of a row are multiplied with.
  static RT_DEVICE void join_groups(const rt::Task& t, const Args& a, const HeadTile& tile, int row, float* stats) {
    float max = stats[0], sum = 0.0f;
    RT_UNROLL
    for (int g = 1; g < KG; ++g) max = fmaxf(max, stats[g * BQ]);
    const float base = max == minus_infinity() ? 0.0f : max;
    float by[KG];
    RT_UNROLL
    for (int g = 0; g < KG; ++g) {
      by[g] = rt::exp2(stats[g * BQ] - base);
      sum += by[g] * stats[(KG + g) * BQ];
    }
    if constexpr (Part != 0) {
      const HeadRow r(a.rows, row);
      if (r.inside(tile)) {
        const int i0 = tile.batch(a.rows) + tile.split * a.batch + r.head, i1 = tile.q0 + r.query;
        store<Epi>(t, a.out, a.epi, max, i0, i1, a.columns);
        store<Epi>(t, a.out, a.epi, sum, i0, i1, a.columns + 1);
      }
    }
    const bool nothing = !Part && a.nan_to_zero && !(sum > 0.0f);
    const float inverse = Part ? 1.0f : 1.0f / sum;
    RT_UNROLL
    for (int g = 0; g < KG; ++g) stats[g * BQ] = nothing ? kNothing : by[g] * inverse;
  }

  // Stores the rows through the epilogue, in packs if it computes such. Columns of a head are whole packs then.
  static RT_DEVICE void store_rows(const rt::Task& t, const Args& a, const HeadTile& tile, const float* sums,
                                   const float* stats) {
    constexpr int kPack = Epi::kPack, kAcross = DM / kPack;
    using Sum = Pack<float, kPack>;
    const int batch = tile.batch(a.rows) + tile.split * a.batch;
    RK_UNROLL(1)
    for (int e = t.tid; e < BQ * kAcross; e += kThreads) {
      const int row = e / kAcross, col = e % kAcross * kPack;
      const HeadRow r(a.rows, row);
      if (!r.inside(tile)) break;
      if (col >= a.columns) continue;
      Sum x = {};
      RT_UNROLL
      for (int g = 0; g < KG; ++g) {
        const Sum more = *reinterpret_cast<const Sum*>(sums + (g * BQ + row) * LDC + col);
        RT_UNROLL
        for (int i = 0; i < kPack; ++i) x.v[i] += more.v[i];
      }
      if (stats[row] == kNothing) x = Sum{};
      const HeadPlace to(a.joined, batch + r.head, a.columns);
      store_pack(t, a, x, to.i0, tile.q0 + r.query, to.first + col);
    }
  }

  static RT_DEVICE void store_pack(const rt::Task& t, const Args& a, const Pack<float, Epi::kPack>& x, int i0, int i1,
                                   int i2) {
    if constexpr (Epi::kPack == 1) {
      store<Epi>(t, a.out, a.epi, x.v[0], i0, i1, i2);
    } else {
      using Out = typename Epi::Out;
      const auto column = Epi::load_column(t, a.epi, i0, i1, i2);
      Out* to = t.template ptr<Out>(a.out.ref) + element(a.out, i0, i1, i2);
      *reinterpret_cast<Pack<Out, Epi::kPack>*>(to) =
          Epi::apply_pack(a.epi, column, Epi::load_row(t, a.epi, i0, i1, i2), x.v);
    }
  }
};

}  // namespace rk
