// Joins what rTasks of attention leave that have a part of the keys each. Part s of a row has the weighted sum of V in
// its first columns, and behind it the maximum of the scores, in powers of 2, to which the weights are relative, and
// the sum of the weights:
//
//   row = Σ_s 2^(max_s - max)·part_s / Σ_s 2^(max_s - max)·sum_s,   max = the largest max_s
#pragma once

#include <cmath>

#include "common/operand.cuh"
#include "common/types.cuh"
#include "rt/device/device.cuh"

namespace rk {

// V neighbours of a row. Loads bring two of them, if V is even: parts are aligned for that if their columns are even.
template <int V>
class JoinedParts {
 public:
  // Adds the parts of the row whose first part begins at `row`; parts are `step` apart. The neighbours begin at column
  // col.
  RT_DEVICE void add(const float* row, int step, int splits, int col, int columns) {
    RK_UNROLL(1)
    for (int s = 0; s < splits; s += kAtOnce) {
      Part parts[kAtOnce];
      RT_UNROLL
      for (int i = 0; i < kAtOnce; ++i) {
        // Behind the last part the first one is loaded again: so no load waits for a condition.
        const bool there = s + i < splits;
        parts[i].load(ahead(row, there ? i : 0, step), col, columns);
        if (!there) parts[i] = Part{{}, -__builtin_huge_valf(), 0.0f};
      }
      row = ahead(row, kAtOnce, step);
      add(parts);
    }
  }
  // Neighbour i of the row.
  RT_DEVICE float operator[](int i) const { return x_[i] / sum_; }
  // Whether all scores of the row were -∞.
  RT_DEVICE bool empty() const { return !(sum_ > 0.0f); }

 private:
  static constexpr int kAtOnce = V == 1 ? 8 : 4;  // parts that are on the way together
  static constexpr int kLoad = V % 2 == 0 ? 2 : 1;

  struct Part {
    Pack<float, kLoad> x[V / kLoad];
    float max, sum;
    RT_DEVICE void load(const float* part, int col, int columns) {
      RT_UNROLL
      for (int i = 0; i < V / kLoad; ++i) {
        x[i] = *reinterpret_cast<const Pack<float, kLoad>*>(part + col + i * kLoad);
      }
      max = part[columns], sum = part[columns + 1];
    }
  };

  // The sums are relative to the largest maximum so far.
  RT_DEVICE void add(const Part (&parts)[kAtOnce]) {
    float top = max_;
    RT_UNROLL
    for (int i = 0; i < kAtOnce; ++i) top = fmaxf(top, parts[i].max);
    const float base = top == -__builtin_huge_valf() ? 0.0f : top, keep = rt::exp2(max_ - base);
    max_ = top, sum_ *= keep;
    RT_UNROLL
    for (int v = 0; v < V; ++v) x_[v] *= keep;
    RT_UNROLL
    for (int i = 0; i < kAtOnce; ++i) {
      const float by = rt::exp2(parts[i].max - base);
      sum_ += by * parts[i].sum;
      RT_UNROLL
      for (int v = 0; v < V; ++v) x_[v] += by * parts[i].x[v / kLoad].v[v % kLoad];
    }
  }

  float max_ = -__builtin_huge_valf(), sum_ = 0.0f, x_[V] = {};
};

// The only row of a product's input, where it is a result of attention in parts. N is 0, or the number of its values,
// rounded up. All threads of an rTask join it together, in shared memory.
template <int N>
struct JoinedRow {
  static constexpr int kShared = 4 * N, kRun = 8;
  struct Args {
    rt::Ref part;
    int32_t step, splits;  // elements from part to part
    Div columns;           // of a head
    int32_t row;           // elements from head to head
    int32_t nan_to_zero;
  };

  RT_DEVICE static const float* join(const rt::Task& t, const Args& a, int k, float* to) {
    const float* part = t.template ptr<const float>(a.part);
    const int columns = static_cast<int>(a.columns.d);
    RK_UNROLL(1)
    for (int i = t.tid * kRun; i < k; i += t.threads * kRun) {
      const int head = a.columns.quotient(i);
      JoinedParts<kRun> sum;
      sum.add(part + head * a.row, a.step, a.splits, i - head * columns, columns);
      const bool zero = a.nan_to_zero && sum.empty();
      RT_UNROLL
      for (int v = 0; v < kRun; ++v) to[i + v] = zero ? 0.0f : sum[v];
    }
    t.sync();
    return to;
  }
};
template <>
struct JoinedRow<0> {
  static constexpr int kShared = 0;
  struct Args {};
};

}  // namespace rk
