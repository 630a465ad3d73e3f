// The rows of A that gemv_mma.cuh multiplies lines of weights by, in shared memory: each value in P parts of 16 bits,
// for a span of k at a time, and beside them what values that share a scale add up to.
#pragma once

#include "common/tile.cuh"
#include "common/words.cuh"
#include "gemm/weight_lines.cuh"
#include "rt/device/device.cuh"

namespace rk {

// The parameters are those of GemvLines (gemv_mma.cuh).
template <int MB, int P, int WK, int U, int KS, int V, int Norm, int Words, class X, class F, class Pro>
struct LineRows {
  using E = typename F::Element;
  static constexpr int kThreads = 256;
  static constexpr int kLine = kMmaDepth * F::kSteps;  // values of k of a line
  static constexpr int kSlice = WK * U * kLine;        // values of k
  // The right fragments' columns: each part has those of all rows, at least two, so that a lane's sums are of one part.
  static constexpr int kRows = MB < 2 ? 2 : MB;
  static constexpr int kFragments = (P * kRows + 7) / 8;
  // Shared memory: the parts [pair of steps][part][row][quarter of a fragment's depth] of 16 bytes, and the sums of
  // values that share a scale [group of steps][row].
  static constexpr int kPair = P * MB * 64, kParts = KS / 32 * kPair;
  static constexpr int kTotals = 4 * KS / (kMmaDepth * F::kGroup) * kRows;
  static constexpr int kStaged = kParts + kTotals;
  static_assert(KS % kSlice == 0, "a span is whole slices");
  static constexpr bool kPolls = Words % 2 != 0;
  static_assert(!kPolls || MB == 1, "words are of one row");

  // Where a lane stands: it has the columns g and g + 8 of its warp's tile, the values 4t to 4t + 3 of each step, and
  // the sums of the rows 2t and 2t + 1 of each right fragment.
  struct Place {
    int tid, lane, warp, wk, wc, g, t;
    RT_DEVICE explicit Place(int id)
        : tid(id), lane(id % 32), warp(id / 32), wk(warp % WK), wc(warp / WK), g(lane / 4), t(lane % 4) {}
  };

  // How the rows lie in memory, or one row in words. A span has `span` values of k, and there are `depth` in all.
  struct Matrix {
    const X* x;
    const uint64_t* words;
    int64_t am, ak;
    int rows, depth, span;
  };

  // Where they are staged, and the sums of their squares [row][warp].
  struct Staged {
    char* parts;
    float *totals, *squares;
  };

  // Writes the parts of 8 values of row m, from k of the span on, and returns what they add up to.
  static RT_DEVICE float store_parts(const Staged& s, int m, int k, float (&x)[8]) {
    char* to = s.parts + k / 32 * kPair + m * 64 + k % 16 / 4 * 16 + k / 16 % 2 * 8;
    float total = 0;
    RT_UNROLL
    for (int i = 0; i < 8; ++i) total += x[i], x[i] *= F::kFactor;
    RT_UNROLL
    for (int p = 0; p < P; ++p) {
      Pack<E, 4> part[2];
      RT_UNROLL
      for (int i = 0; i < 8; ++i) {
        const E rounded(x[i]);
        part[i / 4].v[i % 4] = rounded;
        if (p + 1 < P) {
          const float rest = x[i] - float(rounded);
          x[i] = rest == rest ? rest : 0.0f;  // nothing is left of what is infinite
        }
      }
      RT_UNROLL
      for (int i = 0; i < 2; ++i) *reinterpret_cast<Pack<E, 4>*>(to + p * MB * 64 + i * 16) = part[i];
    }
    return total;
  }

  // What a thread brings of a row for a span: runs of 8 values. Where all warps share the k of their columns, each
  // brings the values that it multiplies itself, and they need not wait for each other.
  static constexpr bool kOwn = WK == 8;
  static constexpr int kTurn = 8 * kThreads, kMost = P == 1 ? 4 : 2, kWant = ceil_div(KS, kTurn);
  static constexpr int kRuns = kWant < kMost ? kWant : kMost;
  using Runs = Pack<X, V>[kRuns][8 / V];

  // The first value of k of a thread's run number r in a span.
  static RT_DEVICE int run(const Place& at, int r) {
    if constexpr (!kOwn) return 8 * at.tid + r * kTurn;
    constexpr int kEach = U * kLine, kAcross = kEach / 8;  // of a warp in a slice
    const int n = at.lane + 32 * r;
    return (n / kAcross * WK + at.wk) * kEach + n % kAcross * 8;
  }

  // How many values of row m there are in a span.
  static RT_DEVICE int present(const Matrix& a, int m, int span) {
    const int left = a.depth - span * a.span;
    return m >= a.rows ? 0 : left < a.span ? left : a.span;
  }

  // Sends for runs of row m from number `first` on. All of the V values that a load brings exist, or none. Words are
  // waited for; where a row has ended, for its first ones.
  static RT_DEVICE void fetch(const rt::Task& t, const Matrix& a, const Place& at, int span, int m, int first,
                              Runs& held) {
    const int64_t ak = V > 1 ? 1 : a.ak;
    const int left = present(a, m, span);
    if constexpr (kPolls) {
      const uint64_t* from[kRuns];
      Pack<X, 8> runs[kRuns];
      RT_UNROLL
      for (int r = 0; r < kRuns; ++r) {
        const int k = run(at, first + r);
        from[r] = a.words + (k < left ? (span * a.span + k) / kPerWord<X> : 0);
      }
      take_runs(t, from, runs);
      RT_UNROLL
      for (int r = 0; r < kRuns; ++r) {
        RT_UNROLL
        for (int i = 0; i < 8; ++i) held[r][i / V].v[i % V] = run(at, first + r) < left ? runs[r].v[i] : X{};
      }
      return;
    }
    const X* row = a.x + m * a.am + place(span * a.span, ak);
    RT_UNROLL
    for (int r = 0; r < kRuns; ++r) {
      RT_UNROLL
      for (int i = 0; i < 8; i += V) {
        const int k = run(at, first + r) + i;
        held[r][i / V] = Pack<X, V>{};
        if (k < left) held[r][i / V] = *reinterpret_cast<const Pack<X, V>*>(row + k * ak);
      }
    }
  }

  // Brings the runs of row m to shared memory, zeros where A ends. Adds up their squares.
  static RT_DEVICE void put(const rt::Task& t, const typename Pro::Args& pro, const Matrix& a, const Staged& s,
                            const Place& at, int span, int m, int first, const Runs& held, float& square) {
    const int left = present(a, m, span);
    RT_UNROLL
    for (int r = 0; r < kRuns; ++r) {
      const int k = run(at, first + r);
      float v[8];
      RT_UNROLL
      for (int i = 0; i < 8; ++i) {
        v[i] = Pro::kIdentity || k + i < left ? float(Pro::apply(pro, held[r][i / V].v[i % V])) : 0.0f;
        if constexpr (Norm) square += v[i] * v[i];
      }
      float total = 0;
      if (k < a.span) total = store_parts(s, m, k, v);
      RT_UNROLL
      for (int d = 1; d < 2 * F::kGroup; d *= 2) total += rt::shfl_xor(t, total, d);
      if (k < a.span && at.lane % (2 * F::kGroup) == 0) s.totals[k / (kMmaDepth * F::kGroup) * kRows + m] = total;
    }
  }

  // Brings a span of all rows to shared memory. `held` are the first runs of row 0, which are on their way.
  static RT_DEVICE void stage(const rt::Task& t, const typename Pro::Args& pro, const Matrix& a, const Staged& s,
                              const Place& at, int span, Runs& held) {
    RK_UNROLL(1)
    for (int m = 0; m < MB; ++m) {
      float square = 0;
      RK_UNROLL(1)
      for (int first = 0; first * kTurn < a.span; first += kRuns) {
        if (m > 0 || first > 0) fetch(t, a, at, span, m, first, held);
        put(t, pro, a, s, at, span, m, first, held, square);
      }
      if constexpr (Norm) {
        RT_UNROLL
        for (int d = 16; d > 0; d /= 2) square += rt::shfl_xor(t, square, d);
        if (at.lane == 0) s.squares[m * 8 + at.warp] = span > 0 ? s.squares[m * 8 + at.warp] + square : square;
      }
    }
  }

  // Waits until all who share staged values have come here.
  static RT_DEVICE void meet(const rt::Task& t) {
    if constexpr (kOwn) {
      rt::sync_warp(t);
    } else {
      t.sync();
    }
  }

  // A lane's share of A for a line: its right fragments, zeros in columns that no part has, and the totals.
  struct Right {
    WeightLine in[F::kSteps / 2][kFragments];
    Pack<float, 2> totals[F::kSteps / F::kGroup][kFragments];

    // Takes them for the line whose first value of the span is k.
    RT_DEVICE void take(const Staged& s, const Place& at, int k) {
      RT_UNROLL
      for (int f = 0; f < kFragments; ++f) {
        const int column = 8 * f + at.g, p = column / kRows, m = column % kRows, row = 8 * f + 2 * at.t;
        RT_UNROLL
        for (int i = 0; i < F::kSteps / 2; ++i) {
          in[i][f] = WeightLine{};
          const char* parts = s.parts + (k / 32 + i) * kPair + at.t * 16 + (p * MB + m) * 64;
          if (p < P && m < MB) in[i][f] = *reinterpret_cast<const WeightLine*>(parts);
        }
        RT_UNROLL
        for (int i = 0; i < F::kSteps / F::kGroup; ++i) {
          totals[i][f] = Pack<float, 2>{};
          const float* of = s.totals + (k / (kMmaDepth * F::kGroup) + i) * kRows + row;
          if (row < kRows) totals[i][f] = *reinterpret_cast<const Pack<float, 2>*>(of);
        }
      }
    }
  };
};

}  // namespace rk
