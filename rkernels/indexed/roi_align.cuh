// RoiAlign: output [region][channel][bin] is the mean or maximum of bilinear samples in a bin.
#pragma once

#include "common/math.cuh"
#include "common/tiles.cuh"
#include "indexed/index.cuh"
#include "rt/device/device.cuh"

namespace rk {

// Geometry is computed in double: how many samples a bin has must not depend on rounding.
template <class T>
struct RoiAlign {
  using F = Real<T>;
  struct Args {
    Tiles<3> tiles;
    rt::Ref src, rois, batch;  // dense: [batch][channel][plane], [region][4], [region]
    Strided<3> dst;
    int32_t regions;  // in the run
    int32_t batches, height, width, bins_h, bins_w;
    int32_t ratio;  // samples along a bin, 0 for as many as it covers elements
    int32_t half_pixel, maximum;
    float scale;
  };
  static constexpr int kThreads = 256;
  static constexpr int kShared = 0;

  // The elements below and above a place, and how far it lies from the first.
  struct Between {
    int low, high;
    F rest;

    RT_DEVICE Between(double x, int n) {
      if (x < 0) x = 0;
      low = int(x);
      high = low + 1;
      rest = F(x - double(low));
      if (low >= n - 1) {
        low = high = n - 1;
        rest = F(0);
      }
    }
  };

  struct Span {
    double from, step;
    int samples;

    RT_DEVICE Span(const Args& a, double lo, double hi, int bins) {
      const double shift = a.half_pixel ? 0.5 : 0.0;
      from = lo * double(a.scale) - shift;
      double length = hi * double(a.scale) - shift - from;
      if (!a.half_pixel && length < 1) length = 1;
      step = length / bins;
      samples = a.ratio;
      if (a.ratio == 0) {
        const double up = -fn::real::floor(-step);
        samples = up > 0 ? (up < 1e6 ? int(up) : 1000000) : 0;
      }
    }
    RT_DEVICE double place(int bin, int i) const { return from + bin * step + (i + 0.5) * step / samples; }
  };

  RT_DEVICE static F pool(const Args& a, const T* plane, const Span& v, const Span& h, int by, int bx) {
    F sum = F(0), best = F(0);
    bool any = false;
    const auto take = [&](F x) {
      sum += x;
      best = any && best > x ? best : x;
      any = true;
    };
    RK_NO_UNROLL
    for (int i = 0; i < v.samples; ++i) {
      const double y = v.place(by, i);
      RK_NO_UNROLL
      for (int k = 0; k < h.samples; ++k) {
        const double x = h.place(bx, k);
        if (!(y >= -1 && y <= a.height && x >= -1 && x <= a.width)) {
          take(F(0));
          continue;
        }
        const Between r(y, a.height), c(x, a.width);
        const T *low = plane + r.low * a.width, *high = plane + r.high * a.width;
        take((F(1) - r.rest) * (F(1) - c.rest) * F(Calc<T>(low[c.low])));
        take((F(1) - r.rest) * c.rest * F(Calc<T>(low[c.high])));
        take(r.rest * (F(1) - c.rest) * F(Calc<T>(high[c.low])));
        take(r.rest * c.rest * F(Calc<T>(high[c.high])));
      }
    }
    if (a.maximum) return best;
    const int count = v.samples * h.samples;
    return count > 0 ? sum / F(count) : F(0);
  }

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    const auto tile = a.tiles.tile(rtask);
    const T *src = t.ptr<const T>(a.src), *rois = t.ptr<const T>(a.rois);
    const int64_t* batch = t.ptr<const int64_t>(a.batch);
    RK_NO_UNROLL
    for (int e = t.tid; e < tile.size; e += kThreads) {
      const Coordinates<3> c(a.tiles, tile, e);
      if (c.at[0] >= a.regions) continue;
      const T* box = rois + c.at[0] * 4;
      const Span h(a, double(Calc<T>(box[0])), double(Calc<T>(box[2])), a.bins_w);
      const Span v(a, double(Calc<T>(box[1])), double(Calc<T>(box[3])), a.bins_h);
      const int n = place_of(batch[c.at[0]], a.batches);
      const T* plane = src + (int64_t(n) * a.tiles.dims[1] + c.at[1]) * (a.height * a.width);
      const int by = c.at[2] / a.bins_w;
      store<T>(t, a.dst, c.at, T(pool(a, plane, v, h, by, c.at[2] - by * a.bins_w)));
    }
  }
};

}  // namespace rk
