// GridSample: output [batch][channel][place] is read from planes of up to three axes, between their
// elements, at places that a grid names.
#pragma once

#include "common/math.cuh"
#include "common/modes.cuh"
#include "common/tiles.cuh"
#include "rt/device/device.cuh"

namespace rk {

// The elements along one axis that are read for a place, and their weights. An element whose `from` is -1 counts as
// zero.
template <int K, class F>
struct GridTaps {
  int from[K];
  F weight[K];
};

// P is the type of coordinates. Which neighbour is the nearest one depends on every rounding, so each operation is
// rounded by itself.
template <class P>
struct GridAxis {
  int extent, align, padding;

  RT_DEVICE P low() const { return align ? P(0) : P(-0.5); }
  RT_DEVICE P high() const { return align ? P(extent - 1) : P(extent) - P(0.5); }

  // The place of a normalised coordinate. Infinities and NaN become places far outside.
  RT_DEVICE P place(P at) const {
    const P far = P(1 << 30);
    P x = align ? (at + P(1)) / P(2) * P(extent - 1) : ((at + P(1)) * P(extent) - P(1)) / P(2);
    if (!(x > -far)) x = -far;
    return x > far ? far : x;
  }

  RT_DEVICE P reflected(P x) const {
    const P lo = low(), hi = high(), span = hi - lo;
    if (!(span > P(0))) return lo;
    if (x >= lo && x <= hi) return x;
    const bool below = x < lo;
    const P from = below ? lo - x : x - hi;
    const P times = fn::real::floor(from / span);
    const P rest = from - times * span;
    const bool even = times - P(2) * fn::real::floor(times / P(2)) == P(0);
    return even == below ? lo + rest : hi - rest;
  }

  RT_DEVICE P inside(P x) const {
    if (padding == kGridZeros || (x >= low() && x <= high())) return x;
    if (padding == kGridReflection) return reflected(x);
    return x < P(0) ? P(0) : P(extent - 1);
  }

  RT_DEVICE int pixel(int i) const {
    if (i >= 0 && i < extent) return i;
    if (padding == kGridZeros) return -1;
    if (padding == kGridReflection) i = int(reflected(P(i)));
    return i < 0 ? 0 : i >= extent ? extent - 1 : i;
  }
};

// Keys' cubic with a = -3/4, for the distance x.
template <class F>
RT_DEVICE F grid_cubic(F x) {
  const F a = F(-0.75);
  if (x < F(0)) x = -x;
  if (x <= F(1)) return ((a + F(2)) * x - (a + F(3))) * x * x + F(1);
  if (x < F(2)) return ((a * x - F(5) * a) * x + F(8) * a) * x - F(4) * a;
  return F(0);
}

// MODE is a GridMode.
template <int S, int MODE, class T, class G>
struct GridSample {
  using F = Real<T>;
  using P = Real<G>;
  static constexpr int kTaps = MODE == kGridNearest ? 1 : 2 * MODE;
  struct Args {
    Tiles<3> tiles;     // [batch][channel][place]
    rt::Ref src, grid;  // dense
    Strided<3> dst;
    int32_t extent[3];  // of a plane's axes; the first ones are 1 when there are fewer
    int32_t align, padding;
  };
  static constexpr int kThreads = 256;
  static constexpr int kShared = 0;

  RT_DEVICE static GridTaps<kTaps, F> taps(const Args& a, int extent, P at) {
    const GridAxis<P> axis{extent, a.align, a.padding};
    P x = axis.place(at);
    if constexpr (MODE == kGridNearest) x = fn::real::rint(x);
    x = axis.inside(x);
    const P base = fn::real::floor(x);
    const int first = int(base);
    GridTaps<kTaps, F> r;
    RT_UNROLL
    for (int k = 0; k < kTaps; ++k) {
      const int shift = MODE == kGridCubic ? k - 1 : k;
      r.from[k] = axis.pixel(first + shift);
      r.weight[k] = F(1);
      if constexpr (MODE == kGridLinear) r.weight[k] = k == 0 ? F(1) - F(x - base) : F(x - base);
      if constexpr (MODE == kGridCubic) r.weight[k] = grid_cubic<F>(F(x - base) - F(shift));
    }
    return r;
  }

  RT_DEVICE static T sample(const Args& a, const T* plane, const G* grid) {
    // A grid point names the last axis first. Missing axes have one element, which is read once.
    const auto x = taps(a, a.extent[2], P(Calc<G>(grid[0])));
    const auto y = taps(a, a.extent[1], S > 1 ? P(Calc<G>(grid[S > 1 ? 1 : 0])) : P(0));
    const auto z = taps(a, a.extent[0], S > 2 ? P(Calc<G>(grid[S > 2 ? 2 : 0])) : P(0));
    constexpr int ny = S > 1 ? kTaps : 1, nz = S > 2 ? kTaps : 1;
    if constexpr (MODE == kGridNearest) {
      const int py = S > 1 ? y.from[0] : 0, pz = S > 2 ? z.from[0] : 0;
      if (x.from[0] < 0 || py < 0 || pz < 0) return T();
      return plane[(pz * a.extent[1] + py) * a.extent[2] + x.from[0]];
    } else {
      F sum = F(0);
      RK_NO_UNROLL
      for (int i = 0; i < nz; ++i) {
        const int pz = S > 2 ? z.from[i] : 0;
        if (pz < 0) continue;
        RT_UNROLL
        for (int j = 0; j < ny; ++j) {
          const int py = S > 1 ? y.from[j] : 0;
          if (py < 0) continue;
          F line = F(0);
          RT_UNROLL
          for (int k = 0; k < kTaps; ++k) {
            if (x.from[k] >= 0) {
              line += x.weight[k] * F(Calc<T>(plane[(pz * a.extent[1] + py) * a.extent[2] + x.from[k]]));
            }
          }
          if constexpr (S > 1) line *= y.weight[j];
          if constexpr (S > 2) line *= z.weight[i];
          sum += line;
        }
      }
      return T(sum);
    }
  }

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    const auto tile = a.tiles.tile(rtask);
    const T* src = t.ptr<const T>(a.src);
    const G* grid = t.ptr<const G>(a.grid);
    const int plane = a.extent[0] * a.extent[1] * a.extent[2];
    RK_NO_UNROLL
    for (int e = t.tid; e < tile.size; e += kThreads) {
      const Coordinates<3> c(a.tiles, tile, e);
      const T* from = src + (int64_t(c.at[0]) * a.tiles.dims[1] + c.at[1]) * plane;
      store<T>(t, a.dst, c.at, sample(a, from, grid + (int64_t(c.at[0]) * a.tiles.dims[2] + c.at[2]) * S));
    }
  }
};

}  // namespace rk
