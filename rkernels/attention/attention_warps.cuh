// out[b][q] = softmax(scale·Q[b][q]·Kᵀ[b] + mask[b][q])·V[b] on tensor cores, for a few rows of queries that share many
// keys of 16 bits: one token of a batch, with heads that share keys and values. The time of such attention is that of
// reading K and V, so what counts is that copies are on their way all the time.
//
// An rTask has one tile of rows after another. Each of its KG warps brings keys and values of its own, 16 at a time,
// into a ring that only itself reads, and so waits for no other warp until the sums of a tile are joined. It sends for
// those of the next tile as soon as it has room for them; by then it may still be busy with the tile before:
//
//   keys              0 … 15   16 … 31   …   112 … 127   128 … 143   …
//   warp              0        1             7           0                with KG = 8
//
//   sent for          K0 V0 K1       V1       K2       V2       K3       V3        two stages of one tile, then
//   computed                   Q·K0     W0·V0    Q·K1     W1·V1   (join)  Q·K2     those of the next one
#pragma once

#include "attention/products.cuh"
#include "attention/results.cuh"

namespace rk {

// T is the element type of Q, K and V, which are read in whole loads. A tile has up to BQ rows, 8 or 16. DM is the
// head size (of Q, K and V alike) rounded up to 32, 64 or 128. Without Masked there is no mask. With Part the rTask has
// only a part of the keys, and leaves its sums for attention_sum.
template <class T, int BQ, int DM, int KG, int Masked, int Part, class Epi>
struct AttentionWarps {
  static constexpr int kThreads = 32 * KG, KT = 16, kStep = KG * KT;  // keys of a warp's stage, of all warps
  using Shape = AttentionShape<16, DM, 1, KT, 16>;                    // of a warp
  using Multiply = AttentionProducts<T, Shape, 1>;
  using Softmax = RunningSoftmax<Shape::MI, Shape::NI, Shape::CI, Masked>;
  using Scores = typename Softmax::Scores;
  using Results = AttentionResults<BQ, DM, KG, kThreads, 0, 0, 1, Part, Epi>;
  static constexpr int LD = Multiply::LD, kHalf = KT * LD, kStages = 2;  // keys or values of a stage, in elements
  static constexpr int kOwn = 2 * kStages * kHalf;                       // the ring of a warp
  static constexpr int kRings = KG * kOwn * static_cast<int>(sizeof(T)), kBody = kRings + Results::kSums;
  // The sums of a tile lie beside the rings, and every other tile has other statistics: so nobody has to wait until
  // all have stored their results.
  static constexpr int kShared = kBody + 2 * Results::kStats;

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
    int32_t run;  // tiles of an rTask
  };

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    const int warp = rt::settled(t.tid / 32), lane = t.tid % 32, run = a.run, tile0 = rtask * run;
    const T* ring = reinterpret_cast<const T*>(t.smem) + warp * kOwn;
    float* sums = reinterpret_cast<float*>(t.smem + kRings);
    Feed feed(a, tile0, warp, lane, reinterpret_cast<T*>(t.smem) + warp * kOwn);
    RK_UNROLL(1)
    for (int i = 0; i < 2 * kStages - 1; ++i) i % 2 ? feed.send_values() : feed.send_keys(t, a);
    Queries q;
    const typename Shape::Place at(lane);
    const float factor = a.scale * kLog2e;
    int place = 0;
    typename Softmax::State s;
    // In a turn the sums of the tile before are joined, while the queries of the next one are on their way.
    RK_UNROLL(1)
    for (int i = 0;; ++i) {
      if (i < run) q.load(t, a, HeadTile(a.rows, tile0 + i), lane);
      if (i > 0) {
        Results::template finish<1>(t, a, HeadTile(a.rows, tile0 + i - 1), 0, {t.tid, warp, at.g, at.q}, 1.0f, s, sums,
                                    sums + (Results::kSums + i % 2 * Results::kStats) / 4, [&] { t.sync(); });
      }
      if (i == run) break;
      const HeadTile tile(a.rows, tile0 + i);
      const Keys keys(a, tile);
      const typename Softmax::Rows rows(t, a, tile, at.g, keys.end);
      s = typename Softmax::State();
      int key = keys.first + warp * KT;
      RK_UNROLL(1)
      for (int left = keys.stages; left > 0; --left, key += kStep) {
        const T* stage = ring + place;
        const bool there = key < keys.end;
        Scores x;
        Softmax::load_mask(rows, key + 2 * at.q, x);
        await(t);
        feed.send_values();
        if (there) {
          q.multiply(at, stage, factor, x);
          Softmax::hide(rows, tile, key, key + 2 * at.q, x);
          typename Softmax::Factors keep;
          Softmax::weigh(t, 1.0f, x, s, keep);
          Softmax::rescale(keep, s.out);
        }
        await(t);
        feed.send_keys(t, a);
        if (there) Multiply::accumulate(at, stage + kHalf, x, s.out);
        place = kOwn / 2 - place;
      }
    }
    rt::cp_async_wait<0>();
  }

 private:
  // The keys of a tile, of this split, that some row attends to, and how many stages of all warps they are.
  struct Keys {
    int first, end, stages;

    RT_DEVICE Keys(const Args& a, const HeadTile& tile)
        : first(most(tile.split * a.split_keys, tile.q0 + a.before)),
          end(least(least((tile.split + 1) * a.split_keys, a.keys), tile.q0 + tile.queries + a.behind)),
          stages(end > first ? ceil_div(end - first, kStep) : 0) {}
  };

  // Waits for the keys or the values that a warp takes next, behind which those of two groups may be on their way. What
  // its lanes have read before is free then.
  static RT_DEVICE void await(const rt::Task& t) {
    rt::cp_async_wait<2 * kStages - 2>();
    rt::sync_warp(t);
  }

  // Sends for the keys and values of a warp, of one tile of the rTask behind the other, in turn: keys of a stage, its
  // values, keys of the next stage. Behind the last one it sends for nothing.
  class Feed {
    static constexpr int kRun = kPerLoad<T>, kAcross = DM / kRun,
                         kDown = 32 / kAcross;  // elements, lanes of a row, rows

   public:
    RT_DEVICE Feed(const Args& a, int tile, int warp, int lane, T* ring)
        : ring_(ring + lane / kAcross * LD + lane % kAcross * kRun),
          tile_(tile),
          end_(tile + a.run),
          row_(warp * KT + lane / kAcross),
          col_(lane % kAcross * kRun),
          row_k_(static_cast<int>(a.k.row)),
          row_v_(static_cast<int>(a.v.row)),
          in_k_(col_ < a.depth),
          in_v_(col_ < a.columns) {}

    RT_DEVICE void send_keys(const rt::Task& t, const Args& a) {
      while (stages_ == 0 && tile_ < end_) begin(t, a);
      if (stages_ > 0) bring(ring_ + to_, k_, row_k_, in_k_ ? left_ : 0);
      rt::cp_async_commit();
    }
    RT_DEVICE void send_values() {
      if (stages_ > 0) {
        bring(ring_ + to_ + kHalf, v_, row_v_, in_v_ ? left_ : 0);
        k_ = ahead(k_, kStep, row_k_), v_ = ahead(v_, kStep, row_v_), left_ -= kStep;
        --stages_;
      }
      rt::cp_async_commit();
      to_ = kOwn / 2 - to_;
    }

   private:
    RT_DEVICE void begin(const rt::Task& t, const Args& a) {
      const HeadTile tile(a.rows, tile_++);
      const Keys keys(a, tile);
      const int row = keys.first + row_;
      k_ = a.k.template head<T>(t, tile.b0, tile.b1, tile.b2) + place(row, row_k_, col_);
      v_ = a.v.template head<T>(t, tile.b0, tile.b1, tile.b2) + place(row, row_v_, col_);
      stages_ = keys.stages, left_ = keys.end - row;
    }
    // Brings the lane's parts of KT rows, of which `left` are left from its first one on, and zeros behind them.
    static RT_DEVICE void bring(T* to, const T* from, int row, int left) {
      RT_UNROLL
      for (int i = 0; i < KT; i += kDown) {
        rt::cp_async_or_zero<16>(to + i * LD, from, i < left);
        from = ahead(from, kDown, row);
      }
    }

    T* ring_;
    int tile_, end_, row_, col_, row_k_, row_v_;
    bool in_k_, in_v_;
    int to_ = 0, stages_ = 0, left_ = 0;
    const T *k_ = nullptr, *v_ = nullptr;  // the lane's first run of what comes next
  };

  // The rows of queries as fragments of a left operand. What does not exist is zero.
  struct Queries {
    uint32_t of[DM / 16][4];

    RT_DEVICE void load(const rt::Task& t, const Args& a, const HeadTile& tile, int lane) {
      const T* head = a.q.template head<T>(t, tile.b0, tile.b1, tile.b2);
      RT_UNROLL
      for (int h = 0; h < 2; ++h) {
        const HeadRow r(a.rows, lane / 4 + 8 * h);
        const bool there = 8 * h < BQ && r.inside(tile);
        const T* row = head + place(r.head, a.q.s2, place(tile.q0 + r.query, a.q.row, lane % 4 * 2));
        RT_UNROLL
        for (int d = 0; d < DM / 8; ++d) {
          of[d / 2][d % 2 * 2 + h] =
              rt::load_or_zero(reinterpret_cast<const uint32_t*>(row + 8 * d), there && 8 * d < a.depth);
        }
      }
    }

    // Adds the scaled products with the keys of a stage to x.
    RT_DEVICE void multiply(const typename Shape::Place& at, const T* sk, float factor, Scores& x) const {
      const T* row = sk + (at.lane / 16 * 8 + at.lane % 8) * LD + at.lane / 8 % 2 * 8;
      Scores products = {};
      RT_UNROLL
      for (int d = 0; d < DM / 16; ++d) {
        uint32_t k[4];
        rt::load_fragments(k, row + 16 * d);
        const uint32_t first[2] = {k[0], k[1]}, second[2] = {k[2], k[3]};
        HalfProducts<T>::multiply(products[0][0], of[d], first);
        HalfProducts<T>::multiply(products[0][1], of[d], second);
      }
      RT_UNROLL
      for (int j = 0; j < Shape::NI; ++j) {
        RT_UNROLL
        for (int e = 0; e < 4; ++e) x[0][j][e] += products[0][j][e] * factor;
      }
    }
  };
};

}  // namespace rk
