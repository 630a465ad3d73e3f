// Joins what the rTasks of attention_mma leave that have a part of the keys each. Part s of row (b, q) has the
// weighted sum of V in its first columns, and behind it the maximum of the scores, in powers of 2, to which the weights
// are relative, and the sum of the weights:
//
//   out[b][q] = Σ_s 2^(max_s - max)·part[s·batch + b][q] / Σ_s 2^(max_s - max)·sum_s,   max = the largest max_s
#pragma once

#include <cmath>

#include "attention/heads.cuh"
#include "common/tiles.cuh"

namespace rk {

template <class Epi>
struct AttentionSum {
  static constexpr int kThreads = 256, kShared = 0;

  struct Args {
    Tiles<3> tiles;  // of the output
    rt::Operand3 part, out;
    int32_t splits, batch;
    Div joined;   // see HeadPlace
    Div columns;  // of a head
    int32_t nan_to_zero;
    typename Epi::Args epi;
  };

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    const auto tile = a.tiles.tile(rtask);
    const int step = static_cast<int>(a.part.s0) * a.batch;
    RK_UNROLL(1)
    for (int e = t.tid; e < tile.span; e += kThreads) {
      const Coordinates<3> c(a.tiles, tile, e);
      if (!c.inside(tile)) continue;
      const int head = a.columns.quotient(c.at[2]), columns = static_cast<int>(a.columns.d);
      const int batch = c.at[0] * static_cast<int>(a.joined.d) + head, col = c.at[2] - head * columns;
      const float* row = t.template ptr<const float>(a.part.ref) + element(a.part, batch, c.at[1], 0);
      float max = minus_infinity(), x = 0.0f, sum = 0.0f;
      RK_UNROLL(1)
      for (int s = 0; s < a.splits; s += kAtOnce) {
        Part parts[kAtOnce];
        load(row, step, col, columns, a.splits - s, parts);
        row = ahead(row, kAtOnce, step);
        add(parts, max, x, sum);
      }
      const bool zero = a.nan_to_zero && !(sum > 0.0f);
      store<Epi>(t, a.out, a.epi, zero ? 0.0f : x / sum, c.at[0], c.at[1], c.at[2]);
    }
  }

 private:
  static constexpr int kAtOnce = 8;  // parts that are on the way together
  // An element of a part, the maximum of its row, and the row's sum of weights.
  struct Part {
    float x, max, sum;
  };

  // The parts of a row, as far as there are so many left.
  static RT_DEVICE void load(const float* row, int step, int col, int columns, int left, Part (&parts)[kAtOnce]) {
    RT_UNROLL
    for (int i = 0; i < kAtOnce; ++i) {
      parts[i] = {0.0f, minus_infinity(), 0.0f};
      if (i >= left) continue;
      const float* part = ahead(row, i, step);
      parts[i] = {part[col], part[columns], part[columns + 1]};
    }
  }

  // Adds parts to the sums, which are relative to the largest maximum so far.
  static RT_DEVICE void add(const Part (&parts)[kAtOnce], float& max, float& x, float& sum) {
    float top = max;
    RT_UNROLL
    for (int i = 0; i < kAtOnce; ++i) top = fmaxf(top, parts[i].max);
    const float base = top == minus_infinity() ? 0.0f : top, keep = rt::exp2(max - base);
    max = top, x *= keep, sum *= keep;
    RT_UNROLL
    for (int i = 0; i < kAtOnce; ++i) {
      const float by = rt::exp2(parts[i].max - base);
      x += by * parts[i].x, sum += by * parts[i].sum;
    }
  }
};

}  // namespace rk
