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
#include "attention/results.cuh"

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
  using Softmax = RunningSoftmax<Shape::MI, Shape::NI, Shape::CI, Masked>;
  static constexpr int kThreads = Shape::kThreads, kKeys = Shape::kKeys, kStages = 2;
  static constexpr int MI = Shape::MI, NI = Shape::NI;
  using Results = AttentionResults<BQ, DM, KG, kThreads, 0, 0, BQ <= 16 && sizeof(T) == 2, Part, Epi>;
  static constexpr int LD = Multiply::LD;  // of operands in shared memory
  static constexpr int kQueries = Multiply::kPlanes * BQ * LD, kStage = kKeys * LD;
  static constexpr int kRing = (kQueries + 2 * kStages * kStage) * sizeof(T);  // bytes
  static constexpr int kBody = kRing > Results::kSums ? kRing : Results::kSums;
  static constexpr int kShared = kBody + Results::kStats;

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
    const typename Softmax::Rows rows(t, a, tile, at.row + at.g, end);
    const int depth = a.depth;
    const float factor = a.scale * kLog2e;
    typename Softmax::State s;
    // Before the first stage is a turn that only brings it. The queries come together with its keys.
    RK_UNROLL(1)
    for (int i = -1; i < stages; ++i) {
      const int key = first + i * kKeys + at.key, left = rows.end - key;
      Scores x;  // begin as the mask
      if (i >= 0) {
        Softmax::load_mask(rows, key + 2 * at.q, x);
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
        Softmax::hide(rows, tile, key, key + 2 * at.q, x);
        typename Softmax::Factors keep;
        Softmax::weigh(t, 1.0f, x, s, keep);
        Softmax::rescale(keep, s.out);
      }
      rt::cp_async_wait<2>();
      t.sync();
      if (left > 0) Multiply::accumulate(at, sv + stage, x, s.out);
    }
    rt::cp_async_wait<0>();
    float* sums = reinterpret_cast<float*>(t.smem);
    Results::template finish<MI>(t, a, tile, 0, {t.tid, at.group, at.row + at.g, at.q}, 1.0f, s, sums, sums + kBody / 4,
                                 [&] { t.sync(); });
  }

 private:
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
};

}  // namespace rk
