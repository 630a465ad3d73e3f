// The softmax of attention over keys that come one stage after another: what a lane keeps of its rows, how scores
// become weights, and which of them are hidden. Lanes hold scores and sums as fragments D of matrix instructions
// (codegen/backend/primitives.cuh).
#pragma once

#include "attention/heads.cuh"
#include "rt/device/mma.cuh"

namespace rk {

constexpr float kLog2e = 1.44269504088896340736f;

// Of a warp, or of each warp of a warp group: MI fragments of rows, NI of the keys of a stage, CI of columns of the
// sum. Without Masked there is no mask.
template <int MI, int NI, int CI, int Masked>
struct RunningSoftmax {
  using Scores = float[MI][NI][4];  // of a lane: rows and keys
  using Sums = float[MI][CI][4];    // of a lane: rows and columns

  // What a lane keeps for its rows, g and g + 8 of each fragment: the base, its share of the sum of weights, and its
  // elements of the weighted sum of V. The base is a number near the largest score so far. Weights are relative to it.
  struct State {
    float base[MI][2], sum[MI][2];
    Sums out;

    RT_DEVICE State() {
      RT_UNROLL
      for (int i = 0; i < MI; ++i) {
        base[i][0] = base[i][1] = minus_infinity();
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

    // `row` is the lane's first row of the tile.
    template <class Args>
    RT_DEVICE Rows(const rt::Task& t, const Args& a, const HeadTile& tile, int row, int end_of_keys)
        : mask_col(static_cast<int>(a.mask.col)), end(end_of_keys), before(a.before), behind(a.behind) {
      RT_UNROLL
      for (int i = 0; i < 2 * MI; ++i) {
        const HeadRow r(a.rows, row + 8 * i);
        query[i / 2][i % 2] = tile.q0 + r.query;
        if constexpr (Masked != 0) {
          const float* m =
              a.mask.template head<float>(t, tile.b0, tile.b1, tile.b2 + r.head) + (tile.q0 + r.query) * a.mask.row;
          mask[i / 2][i % 2] = r.inside(tile) ? m : nullptr;
        }
      }
    }
  };

  // Brings the mask of keys that begin with `key`, the lane's first one, times log2(e); 0 without a mask. Finite
  // numbers stay finite.
  static RT_DEVICE void load_mask(const Rows& rows, int key, Scores& x) {
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

  // Whether all queries of the tile attend to all of the keys of a stage, which begin with `key`.
  static RT_DEVICE bool all_seen(const Rows& rows, const HeadTile& tile, int key) {
    constexpr int kKeys = 8 * NI;
    return key + kKeys <= rows.end && key - (tile.q0 + tile.queries - 1) >= rows.before &&
           key + kKeys - 1 - tile.q0 <= rows.behind;
  }

  // Keys that a query does not attend to, and those behind the end, get no weight. The stage's keys begin with `key`,
  // the lane's with `own`. Most stages have none at either end.
  static RT_DEVICE void hide(const Rows& rows, const HeadTile& tile, int key, int own, Scores& x) {
    constexpr int kKeys = 8 * NI;
    if (key - (tile.q0 + tile.queries - 1) < rows.before) {
      hide_if(x, [&](int i, int at) { return at < rows.query[i / 2][i % 2] + rows.before - own; });
    }
    if (key + kKeys > rows.end || key + kKeys - 1 - tile.q0 > rows.behind) {
      hide_if(x, [&](int i, int at) { return at > least(rows.end - 1, rows.query[i / 2][i % 2] + rows.behind) - own; });
    }
  }

  // What is to be done to the sums of a lane's rows: 1 where nothing is.
  using Factors = float[MI][2];

  // Turns scores into weights 2^(factor·(score - base)), for a factor that is not negative, and adds them up. The base
  // moves to the largest score only where weights would become greater than 2^kSlack, because then all that has been
  // summed must be rescaled: weighted sums of V by `keep`. The quotient of the sums is the same either way. A row
  // without any finite score keeps base -inf and sum 0, which AttentionResults turns into NaN or 0.
  static RT_DEVICE void weigh(const rt::Task& t, float factor, Scores& x, State& s, Factors& keep) {
    RT_UNROLL
    for (int i = 0; i < MI; ++i) {
      RT_UNROLL
      for (int h = 0; h < 2; ++h) {
        const float old = s.base[i][h];
        float top = old;
        RT_UNROLL
        for (int j = 0; j < NI; ++j) top = fmaxf(top, fmaxf(x[i][j][2 * h], x[i][j][2 * h + 1]));
        top = fmaxf(top, rt::shfl_xor(t, top, 1));
        top = fmaxf(top, rt::shfl_xor(t, top, 2));
        const bool stays = (top - old) * factor <= kSlack;
        const float base = stays ? old : top, shift = base == minus_infinity() ? 0.0f : base * factor;
        keep[i][h] = stays ? 1.0f : rt::exp2(old * factor - shift);
        s.base[i][h] = base, s.sum[i][h] *= keep[i][h];
        RT_UNROLL
        for (int j = 0; j < NI; ++j) {
          RT_UNROLL
          for (int e = 2 * h; e < 2 * h + 2; ++e) {
            x[i][j][e] = rt::exp2(x[i][j][e] * factor - shift);
            s.sum[i][h] += x[i][j][e];
          }
        }
      }
    }
  }

  // Rescales the weighted sums of V, where any lane of the warp has to.
  static RT_DEVICE void rescale(const Factors& keep, Sums& out) {
    RT_UNROLL
    for (int i = 0; i < MI; ++i) {
      if (rt::all_lanes(keep[i][0] == 1.0f && keep[i][1] == 1.0f)) continue;
      RT_UNROLL
      for (int c = 0; c < CI; ++c) {
        RT_UNROLL
        for (int e = 0; e < 4; ++e) out[i][c][e] *= keep[i][e / 2];
      }
    }
  }

 private:
  static constexpr float kSlack = 8.0f;

  // Hides the keys of which hidden(row, key) says so: the lane's rows 0 … 2·MI-1, and keys from its first one on.
  template <class Hidden>
  static RT_DEVICE void hide_if(Scores& x, Hidden hidden) {
    RT_UNROLL
    for (int i = 0; i < 2 * MI; ++i) {
      RT_UNROLL
      for (int j = 0; j < NI; ++j) {
        RT_UNROLL
        for (int e = 0; e < 2; ++e) {
          if (hidden(i, 8 * j + e)) x[i / 2][j][i % 2 * 2 + e] = minus_infinity();
        }
      }
    }
  }
};

}  // namespace rk
