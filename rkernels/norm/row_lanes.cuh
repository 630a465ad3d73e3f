// Rows that neighbouring threads share, in registers: which quads of which rows a thread has, and their statistics.
//
// LANES threads share a row and have PER quads of it each; a block has as many rows at a time as that makes, times
// ROWS. Statistics take one walk over the lanes: each step joins the sums, and the squared distances from the mean, of
// two halves.
#pragma once

#include "common/math.cuh"
#include "common/tile.cuh"
#include "rt/device/device.cuh"

namespace rk {

// Four elements.
using RowQuad = Pack<float, 4>;

template <class T>
RT_DEVICE RowQuad load_quad(const T* p) {
  const Pack<T, 4> held = *reinterpret_cast<const Pack<T, 4>*>(p);
  RowQuad x;
  RT_UNROLL
  for (int i = 0; i < 4; ++i) x.v[i] = float(held.v[i]);
  return x;
}

template <class T>
RT_DEVICE void store_quad(T* p, const RowQuad& x) {
  Pack<T, 4> out;
  RT_UNROLL
  for (int i = 0; i < 4; ++i) out.v[i] = T(x.v[i]);
  *reinterpret_cast<Pack<T, 4>*>(p) = out;
}

// EVEN says that all lanes have PER quads.
template <int LANES, int PER, int ROWS, bool EVEN, bool BIAS>
struct RowLanes {
  static constexpr int kThreads = 256, kGroups = kThreads / LANES;
  static constexpr int kTogether = kGroups * ROWS;  // rows that a block has at a time
  static constexpr int kWarps = LANES > 32 ? LANES / 32 : 1, kWidth = LANES < 32 ? LANES : 32;

  // What a warp has of its part of a row, for the other warps.
  struct Part {
    float sum, mean, squares, count;  // squares of distances from the mean
  };
  static constexpr int kParts = kThreads / 32 * ROWS;
  static constexpr int kShared = kWarps > 1 ? 2 * kParts* static_cast<int>(sizeof(Part)) : 0;

  struct Moments {
    float mean, inverse;  // of the standard deviation
  };

  // Scale and bias of a thread's quads.
  struct Factors {
    RowQuad scale[PER], bias[BIAS ? PER : 1];

    RT_DEVICE Factors(const RowLanes& rows, const RowQuad* scales, const RowQuad* biases) {
      RT_UNROLL
      for (int u = 0; u < PER; ++u) {
        const int q = rows.near(u);
        scale[u] = rt::ld_const(scales + q);
        if constexpr (BIAS) bias[u] = rt::ld_const(biases + q);
      }
    }
    RT_DEVICE RowQuad apply(const RowQuad& x, const Moments& m, int u) const {
      RowQuad y;
      RT_UNROLL
      for (int e = 0; e < 4; ++e) {
        y.v[e] = (x.v[e] - m.mean) * m.inverse * scale[u].v[e];
        if constexpr (BIAS) y.v[e] += bias[u].v[e];
      }
      return y;
    }
  };

  const rt::Task& t;
  const int end, quads;  // the first row that does not exist, and those of a row
  const float inverse_n;
  const int lane, group;
  float count, inverse_count;  // of the elements of a row that the thread's warp has

  RT_DEVICE RowLanes(const rt::Task& t, int end, int n)
      : t(t),
        end(end),
        quads(n / 4),
        inverse_n(1.0f / static_cast<float>(n)),
        lane(t.tid % LANES),
        group(t.tid / LANES),
        count(4 * PER * kWidth) {
    if constexpr (!EVEN) {
      int mine = 0;
      RT_UNROLL
      for (int u = 0; u < PER; ++u) {
        const int left = quads - (LANES * u + lane / kWidth * kWidth);
        mine += left < 0 ? 0 : left < kWidth ? left : kWidth;
      }
      count = static_cast<float>(4 * mine);
    }
    inverse_count = 1.0f / (EVEN || count > 0 ? count : 1.0f);
  }

  // Quad u of the thread, or the last one of the row instead of one that does not exist.
  RT_DEVICE int near(int u) const { return EVEN || lane + LANES * u < quads ? lane + LANES * u : quads - 1; }

  // Calls use for all quads that a thread has of the rows from `at` on: with their numbers in the thread, whether they
  // exist, their row and their place in it. What does not exist repeats the last one.
  template <class Use>
  RT_DEVICE void each(int at, Use&& use) const {
    RT_UNROLL
    for (int r = 0; r < ROWS; ++r) {
      RT_UNROLL
      for (int u = 0; u < PER; ++u) {
        const int i = at + group + r * kGroups;
        const bool ok = (kThreads % LANES == 0 || group < kGroups) && i < end;
        use(r, u, ok && (EVEN || lane + LANES * u < quads), ok ? i : end - 1, near(u));
      }
    }
  }

  // The moments of the rows whose quads are x. All threads of the block call it together; turn is 0 and 1 by turns.
  RT_DEVICE void moments(int turn, const RowQuad (&x)[ROWS][PER], float epsilon, Moments (&m)[ROWS]) const {
    float sum[ROWS], squares[ROWS];
    add_up(x, sum, squares);
    if constexpr (kWarps > 1) join(turn, sum, squares);
    RT_UNROLL
    for (int r = 0; r < ROWS; ++r) {
      m[r] = Moments{sum[r] * inverse_n, fn::real::rsqrt(squares[r] * inverse_n + epsilon)};
    }
  }

 private:
  // The sums of what the thread's warp has of each row, and the squares of the distances from its mean.
  RT_DEVICE void add_up(const RowQuad (&x)[ROWS][PER], float (&sum)[ROWS], float (&squares)[ROWS]) const {
    RT_UNROLL
    for (int r = 0; r < ROWS; ++r) {
      sum[r] = squares[r] = 0;
      RT_UNROLL
      for (int u = 0; u < PER; ++u) {
        const float(&v)[4] = x[r][u].v;
        if (EVEN || lane + LANES * u < quads) sum[r] += (v[0] + v[1]) + (v[2] + v[3]);
      }
    }
    if constexpr (!EVEN) {
      RT_UNROLL
      for (int mask = 1; mask < kWidth; mask *= 2) {
        RT_UNROLL
        for (int r = 0; r < ROWS; ++r) sum[r] += rt::shfl_xor(t, sum[r], mask);
      }
    }
    RT_UNROLL
    for (int r = 0; r < ROWS; ++r) {
      const float mean = sum[r] * (EVEN ? 0.25f / PER : inverse_count);
      RT_UNROLL
      for (int u = 0; u < PER; ++u) {
        float d[4];
        RT_UNROLL
        for (int e = 0; e < 4; ++e) d[e] = x[r][u].v[e] - mean;
        if (EVEN || lane + LANES * u < quads) squares[r] += (d[0] * d[0] + d[1] * d[1]) + (d[2] * d[2] + d[3] * d[3]);
      }
    }
    RT_UNROLL
    for (int mask = 1; mask < kWidth; mask *= 2) {
      RT_UNROLL
      for (int r = 0; r < ROWS; ++r) {
        float more = rt::shfl_xor(t, squares[r], mask);
        if constexpr (EVEN) {  // both halves have 4·PER·mask elements
          const float other = rt::shfl_xor(t, sum[r], mask), apart = other - sum[r];
          more += apart * apart * (0.125f / static_cast<float>(PER * mask));
          sum[r] += other;
        }
        squares[r] += more;
      }
    }
  }

  // Those of whole rows out of those of warps. Two turns use different places, so that one barrier is enough.
  RT_DEVICE void join(int turn, float (&sum)[ROWS], float (&squares)[ROWS]) const {
    Part* parts = reinterpret_cast<Part*>(t.smem) + turn * kParts;
    if (t.tid % 32 == 0) {
      RT_UNROLL
      for (int r = 0; r < ROWS; ++r) {
        parts[r * (kThreads / 32) + t.tid / 32] = Part{sum[r], sum[r] * inverse_count, squares[r], count};
      }
    }
    t.sync();
    const Part* mine = parts + (kThreads % LANES == 0 || group < kGroups ? group : 0) * kWarps;
    RT_UNROLL
    for (int r = 0; r < ROWS; ++r, mine += kThreads / 32) {
      Part p[kWarps];
      sum[r] = squares[r] = 0;
      RT_UNROLL
      for (int i = 0; i < kWarps; ++i) p[i] = mine[i], sum[r] += p[i].sum;
      const float mean = sum[r] * inverse_n;
      RT_UNROLL
      for (int i = 0; i < kWarps; ++i) {
        const float d = p[i].mean - mean;
        squares[r] += p[i].squares + p[i].count * d * d;
      }
    }
  }
};

}  // namespace rk
