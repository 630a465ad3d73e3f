// Statistics of rows that stand in shared memory as boxes of 128 bytes a row, in any order of 16 bytes: those by which
// a product divides its results, as if its rows had been normalised before. A warp group has 64 rows, and each warp the
// 16 rows whose sums of products it holds. Eight lanes read a row of a box:
//
//   lanes 0 … 7   row 0    lanes 8 … 15   row 1    …    row 3, and then rows 4 … 7, 8 … 11 and 12 … 15
//
// The mean is not taken off the rows: a product's columns have been centred for that (graphopt, absorb-norms).
#pragma once

#include "common/arithmetic.cuh"
#include "rt/device/mma.cuh"

namespace rk {

template <class E>
class RowStatistics {
  static constexpr int kPer = 16 / static_cast<int>(sizeof(E)), kRows = 4;

 public:
  RT_DEVICE void clear() {
    RT_UNROLL
    for (int i = 0; i < kRows; ++i) sum_[i] = square_[i] = 0;
  }

  // Adds a box, whose first row of the thread's group is at the given place.
  RT_DEVICE void add(const char* box, int tid) {
    const char* from = box + (tid % 128 / 32 * 16 + tid % 32 / 8) * 128 + tid % 8 * 16;
    RT_UNROLL
    for (int i = 0; i < kRows; ++i) {
      const Pack<E, kPer> values = *reinterpret_cast<const Pack<E, kPer>*>(from + i * 4 * 128);
      RT_UNROLL
      for (int k = 0; k < kPer; ++k) {
        const float x = static_cast<float>(values.v[k]);
        sum_[i] += x, square_[i] += x * x;
      }
    }
  }

  // Adds up what the lanes have of their rows.
  RT_DEVICE void join(const rt::Task& t) {
    RT_UNROLL
    for (int mask = 1; mask < 8; mask *= 2) {
      RT_UNROLL
      for (int i = 0; i < kRows; ++i) {
        sum_[i] += rt::shfl_xor(t, sum_[i], mask), square_[i] += rt::shfl_xor(t, square_[i], mask);
      }
    }
  }

  // Puts the sums down for 64 rows, two numbers each, for others of KG groups that have parts of the same rows.
  RT_DEVICE void put(float* rows, int tid) const {
    if (tid % 8 != 0) return;
    RT_UNROLL
    for (int i = 0; i < kRows; ++i) {
      float* row = rows + 2 * (tid % 128 / 32 * 16 + tid % 32 / 8 + 4 * i);
      row[0] = sum_[i], row[1] = square_[i];
    }
  }
  // Adds what another group has put down.
  RT_DEVICE void take(const float* rows, int tid) {
    RT_UNROLL
    for (int i = 0; i < kRows; ++i) {
      const float* row = rows + 2 * (tid % 128 / 32 * 16 + tid % 32 / 8 + 4 * i);
      sum_[i] += row[0], square_[i] += row[1];
    }
  }

  // 1 / sqrt(mean of the squares + epsilon) of rows lane / 4 and lane / 4 + 8 of the thread's warp, where the squares
  // are those of the distances from the mean if Centred. `share` is that of an element in a mean.
  template <bool Centred>
  RT_DEVICE void inverse(const rt::Task& t, float share, float epsilon, float (&out)[2]) const {
    float each[kRows];
    RT_UNROLL
    for (int i = 0; i < kRows; ++i) {
      const float mean = Centred ? sum_[i] * share : 0.0f, square = square_[i] * share - mean * mean;
      each[i] = fn::real::rsqrt((square > 0 ? square : 0.0f) + epsilon);
    }
    const int row = t.tid % 32 / 4, lane = row % 4 * 8;
    RT_UNROLL
    for (int h = 0; h < 2; ++h) {
      const float low = rt::shfl(t, each[2 * h], lane), high = rt::shfl(t, each[2 * h + 1], lane);
      out[h] = row < 4 ? low : high;
    }
  }

 private:
  float sum_[kRows], square_[kRows];
};

}  // namespace rk
