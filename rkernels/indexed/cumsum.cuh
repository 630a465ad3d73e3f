// Cumulative sums, or products with PRODUCT, along the middle axis of a cube [outer][n][inner]. With ACROSS each thread
// goes along a line of its own; otherwise all threads scan one line together, kTile elements at a time.
#pragma once

#include "common/math.cuh"
#include "common/tiles.cuh"
#include "rt/device/device.cuh"

namespace rk {

template <bool ACROSS, bool PRODUCT, class T>
struct CumSum {
  struct Args {
    Tiles<2> tiles;  // of the lines [outer][inner]
    Strided<3> src, dst;
    int32_t n, exclusive, reverse;
  };
  // Floats are combined in double: their rounding errors would add up along the line.
  using Acc = std::conditional_t<is_float<T>, double, Calc<T>>;
  static constexpr int kThreads = 256;
  static constexpr int kEach = 4;  // consecutive elements of a thread
  static constexpr int kTile = kThreads * kEach;
  static constexpr int kShared = ACROSS ? 0 : kThreads / 32 * 8;

  struct Line {
    const T* src;
    T* dst;
    int src_step, dst_step;
  };

  RT_DEVICE static Line line(const rt::Task& t, const Args& a, int outer, int inner) {
    const int first[3] = {outer, a.reverse ? a.n - 1 : 0, inner};
    return {t.ptr<const T>(a.src.ref) + a.src.offset(first), t.ptr<T>(a.dst.ref) + a.dst.offset(first),
            a.reverse ? -a.src.s[1] : a.src.s[1], a.reverse ? -a.dst.s[1] : a.dst.s[1]};
  }

  RT_DEVICE static Acc plus(Acc a, Acc b) {
    if constexpr (PRODUCT) {
      return fn::Mul<Acc>(a, b);
    } else {
      return fn::Add<Acc>(a, b);
    }
  }
  RT_DEVICE static Acc nothing() { return Acc(PRODUCT ? 1 : 0); }

  RT_DEVICE static void walk(const Args& a, const Line& l) {
    Acc sum = nothing();
    for (int k = 0; k < a.n; ++k) {
      const Acc next = plus(sum, Acc(Calc<T>(l.src[k * l.src_step])));
      l.dst[k * l.dst_step] = fn::Cast<T>(a.exclusive ? sum : next);
      sum = next;
    }
  }

  // Returns the sum of v over the threads before this one; *whole becomes the sum over all threads.
  RT_DEVICE static Acc before(const rt::Task& t, Acc v, Acc* whole) {
    Acc* totals = reinterpret_cast<Acc*>(t.smem);
    const int lane = t.tid % 32, warp = t.tid / 32;
    Acc sum = v;
    RT_UNROLL
    for (int d = 1; d < 32; d *= 2) {
      const Acc other = rt::shfl(t, sum, lane >= d ? lane - d : lane);
      if (lane >= d) sum = plus(sum, other);
    }
    const Acc left = rt::shfl(t, sum, lane > 0 ? lane - 1 : 0);
    if (lane == 31) totals[warp] = sum;
    t.sync();
    Acc base = nothing(), all = nothing();
    for (int w = 0; w < kThreads / 32; ++w) {
      if (w == warp) base = all;
      all = plus(all, totals[w]);
    }
    t.sync();
    *whole = all;
    return lane > 0 ? plus(base, left) : base;
  }

  RT_DEVICE static void scan(const rt::Task& t, const Args& a, const Line& l) {
    Acc carry = nothing();
    RK_NO_UNROLL
    for (int first = 0; first < a.n; first += kTile) {
      const int mine = first + t.tid * kEach;
      Acc x[kEach], sum = nothing();
      RT_UNROLL
      for (int i = 0; i < kEach; ++i) {
        x[i] = mine + i < a.n ? Acc(Calc<T>(l.src[(mine + i) * l.src_step])) : nothing();
        sum = plus(sum, x[i]);
      }
      Acc whole;
      Acc run = plus(carry, before(t, sum, &whole));
      RT_UNROLL
      for (int i = 0; i < kEach; ++i) {
        const Acc next = plus(run, x[i]);
        if (mine + i < a.n) l.dst[(mine + i) * l.dst_step] = fn::Cast<T>(a.exclusive ? run : next);
        run = next;
      }
      carry = plus(carry, whole);
    }
  }

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    const auto tile = a.tiles.tile(rtask);
    RK_NO_UNROLL
    for (int e = ACROSS ? t.tid : 0; e < tile.size; e += ACROSS ? kThreads : 1) {
      const Coordinates<2> c(a.tiles, tile, e);
      const Line l = line(t, a, c.at[0], c.at[1]);
      if constexpr (ACROSS) {
        walk(a, l);
      } else {
        scan(t, a, l);
      }
    }
  }
};

}  // namespace rk
