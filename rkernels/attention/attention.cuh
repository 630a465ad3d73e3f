// out[b][q] = softmax(scale·Q[b][q]·Kᵀ[b] + mask[b][q])·V[b] in float32. An rTask computes BQ query rows of one batch
// entry (a head). It goes through all keys, 32 at a time, with a running softmax: sums are relative to the largest
// score so far, and are rescaled when a larger one comes.
#pragma once

#include <cmath>

#include "attention/heads.cuh"

namespace rk {

// DM is the head size (of Q, K and V alike) rounded up to 32, 64, 128 or 256. Mode is kLoadVec4 or kLoadByCol.
template <int BQ, int DM, int Mode, class Epi>
struct Attention {
  static constexpr int kThreads = 256;
  static constexpr int kKeys = 32;      // keys of a tile, one for each lane
  static constexpr int kRows = BQ / 8;  // query rows of a warp
  static constexpr int LD = DM + 4;     // of Q and K in shared memory, padded against bank conflicts
  static constexpr int kVec = DM / 32 < 4 ? DM / 32 : 4;
  static constexpr int kRuns = DM / 32 / kVec;  // how many runs of kVec output columns a lane has
  static constexpr int kFloats = BQ * LD + kKeys * LD + kKeys * DM + BQ * kKeys;
  static constexpr int kShared = 4 * kFloats;

  struct Args {
    HeadMatrix q, k, v, mask;
    rt::Operand3 out;  // see HeadPlace
    int32_t queries, keys, depth, columns;
    Div tiles;           // of queries
    Div batch1, batch2;  // batch = (b0·batch1 + b1)·batch2 + b2
    Div joined;
    int32_t before, behind;  // query i attends to the keys from i + before to i + behind
    int32_t has_mask, nan_to_zero;
    float scale;
    typename Epi::Args epi;
  };

  // What a warp keeps for its rows: the running maximum, the sum of the weights, and the output columns of each lane.
  struct State {
    float max[kRows], sum[kRows], out[kRows][kRuns * kVec];
  };

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    int b0 = rtask;
    const int tile = take_digit(b0, a.tiles), batch = b0;
    const int b2 = take_digit(b0, a.batch2), b1 = take_digit(b0, a.batch1);
    const int q0 = tile * BQ, warp = t.tid / 32, lane = t.tid % 32;
    float* sq = reinterpret_cast<float*>(t.smem);
    float* sk = sq + BQ * LD;
    float* sv = sk + kKeys * LD;
    float* sp = sv + kKeys * DM + warp * kRows * kKeys;  // the warp's own
    const float* k = a.k.template head<float>(t, b0, b1, b2);
    const float* v = a.v.template head<float>(t, b0, b1, b2);
    const float* mask = a.has_mask ? a.mask.template head<float>(t, b0, b1, b2) : nullptr;

    const NoPrologue::Args none{};
    StridedLoader<kThreads, BQ, DM, LD, true, Mode, NoPrologue>{
        a.q.template head<float>(t, b0, b1, b2) + q0 * a.q.row, a.q.row, a.q.col, a.queries - q0, a.depth, t.tid, none}
        .issue(sq);
    // To the loaders the keys are the dim k of a product: each issue() brings the tiles of K and V for the next 32
    // keys.
    StridedLoader<kThreads, kKeys, DM, LD, false, Mode, NoPrologue> load_k{k,       a.k.row, a.k.col, a.keys,
                                                                           a.depth, t.tid,   none};
    StridedLoader<kThreads, kKeys, DM, DM, false, Mode, NoPrologue> load_v{v,         a.v.row, a.v.col, a.keys,
                                                                           a.columns, t.tid,   none};
    load_k.issue(sk);
    rt::cp_async_commit();
    load_v.issue(sv);
    rt::cp_async_commit();

    State s;
    RT_UNROLL
    for (int r = 0; r < kRows; ++r) {
      s.max[r] = minus_infinity(), s.sum[r] = 0.0f;
      RT_UNROLL
      for (int c = 0; c < kRuns * kVec; ++c) s.out[r][c] = 0.0f;
    }
    const int tiles = ceil_div(a.keys, kKeys);
    RK_UNROLL(1)
    for (int i = 0; i < tiles; ++i) {
      rt::cp_async_wait<1>();
      t.sync();
      float score[kRows];
      scores(sq + warp * kRows * LD, sk + lane * LD, a.depth, score);
      const int key = i * kKeys + lane;
      RT_UNROLL
      for (int r = 0; r < kRows; ++r) {
        const int q = q0 + warp * kRows + r;
        score[r] *= a.scale;
        if (mask && key < a.keys && q < a.queries) score[r] += mask[q * a.mask.row + key * a.mask.col];
        if (key >= a.keys || key - q < a.before || key - q > a.behind) score[r] = minus_infinity();
      }
      t.sync();
      if (i + 1 < tiles) load_k.issue(sk);
      rt::cp_async_commit();
      weigh(t, score, s, sp, lane);
      rt::cp_async_wait<1>();
      t.sync();
      accumulate(sp, sv + lane * kVec, s);
      t.sync();
      if (i + 1 < tiles) load_v.issue(sv);
      rt::cp_async_commit();
    }
    rt::cp_async_wait<0>();
    finish(t, a, batch, q0 + warp * kRows, lane, s);
  }

 private:
  // score[r] = Q[r]·K of the lane's key.
  static RT_DEVICE void scores(const float* q, const float* k, int depth, float (&score)[kRows]) {
    RT_UNROLL
    for (int r = 0; r < kRows; ++r) score[r] = 0.0f;
    RK_UNROLL(2)
    for (int d = 0; d < depth; d += 4) {
      const float4v b = *reinterpret_cast<const float4v*>(k + d);
      RT_UNROLL
      for (int r = 0; r < kRows; ++r) {
        const float4v x = *reinterpret_cast<const float4v*>(q + r * LD + d);
        score[r] += x.x * b.x;
        score[r] += x.y * b.y;
        score[r] += x.z * b.z;
        score[r] += x.w * b.w;
      }
    }
  }

  // Turns scores into weights relative to the new running maximum, and rescales what has been summed so far. A row
  // without any finite score keeps maximum -inf and sum 0, which finish() turns into NaN or 0.
  static RT_DEVICE void weigh(const rt::Task& t, const float (&score)[kRows], State& s, float* sp, int lane) {
    RT_UNROLL
    for (int r = 0; r < kRows; ++r) {
      float top = score[r];
      RT_UNROLL
      for (int d = 16; d > 0; d /= 2) top = fmaxf(top, rt::shfl_xor(t, top, d));
      top = fmaxf(top, s.max[r]);
      const float base = top == minus_infinity() ? 0.0f : top;
      const float keep = expf(s.max[r] - base), p = expf(score[r] - base);
      float sum = p;
      RT_UNROLL
      for (int d = 16; d > 0; d /= 2) sum += rt::shfl_xor(t, sum, d);
      s.max[r] = top;
      s.sum[r] = s.sum[r] * keep + sum;
      RT_UNROLL
      for (int c = 0; c < kRuns * kVec; ++c) s.out[r][c] *= keep;
      sp[r * kKeys + lane] = p;
    }
    rt::sync_warp(t);
  }

  // out += weights · V of the tile.
  static RT_DEVICE void accumulate(const float* sp, const float* v, State& s) {
    RK_UNROLL(1)
    for (int j = 0; j < kKeys; j += 4) {
      float p[kRows][4];
      RT_UNROLL
      for (int r = 0; r < kRows; ++r) load_run<4>(p[r], sp + r * kKeys + j);
      RT_UNROLL
      for (int jj = 0; jj < 4; ++jj) {
        RT_UNROLL
        for (int c = 0; c < kRuns; ++c) {
          float x[kVec];
          load_run<kVec>(x, v + (j + jj) * DM + c * 32 * kVec);
          RT_UNROLL
          for (int r = 0; r < kRows; ++r) {
            RT_UNROLL
            for (int e = 0; e < kVec; ++e) s.out[r][c * kVec + e] += p[r][jj] * x[e];
          }
        }
      }
    }
  }

  static RT_DEVICE void finish(const rt::Task& t, const Args& a, int batch, int q0, int lane, const State& s) {
    const HeadPlace to(a.joined, batch, a.columns);
    RT_UNROLL
    for (int r = 0; r < kRows; ++r) {
      if (q0 + r >= a.queries) continue;
      const bool nothing = a.keys == 0 || (a.nan_to_zero && !(s.sum[r] > 0.0f));
      const float scale = nothing ? 0.0f : 1.0f / s.sum[r];
      RT_UNROLL
      for (int c = 0; c < kRuns * kVec; ++c) {
        const int col = c / kVec * 32 * kVec + lane * kVec + c % kVec;
        const float x = scale == 0.0f ? 0.0f : s.out[r][c] * scale;
        if (col < a.columns) store<Epi>(t, a.out, a.epi, x, to.i0, q0 + r, to.first + col);
      }
    }
  }
};

}  // namespace rk
