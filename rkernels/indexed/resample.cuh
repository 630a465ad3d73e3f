// Resize by interpolation along up to three axes: sums of elements weighted by constant tables.
#pragma once

#include "common/math.cuh"
#include "common/tiles.cuh"
#include "rt/device/device.cuh"

namespace rk {

template <class T>
struct Resample {
  using F = Real<T>;
  // For each place along an axis, taps source places and their weights. taps = 0: the axis stays as it
  // is. A first source place of -1: the result is the extrapolation value.
  struct Axis {
    int32_t taps;
    rt::Ref index, weight;
  };
  struct Args {
    Tiles<5> tiles;  // [N][C] and the three axes
    Strided<5> src, dst;
    Axis axes[3];
    float extrapolation;
  };
  static constexpr int kThreads = 256;
  static constexpr int kShared = 0;

  struct Taps {
    const int32_t* index;
    const F* weight;
    int n, place;

    RT_DEVICE Taps(const rt::Task& t, const Axis& a, int at) : n(a.taps > 0 ? a.taps : 1), place(at) {
      index = a.taps > 0 ? t.ptr<const int32_t>(a.index) + at * a.taps : nullptr;
      weight = a.taps > 0 ? t.ptr<const F>(a.weight) + at * a.taps : nullptr;
    }
    RT_DEVICE int from(int k) const { return index ? rt::ld_const(index + k) : place; }
    RT_DEVICE F by(int k) const { return weight ? rt::ld_const(weight + k) : F(1); }
  };

  RT_DEVICE static F sample(const rt::Task& t, const Args& a, const int (&at)[5]) {
    const Taps x(t, a.axes[0], at[2]), y(t, a.axes[1], at[3]), z(t, a.axes[2], at[4]);
    if (x.from(0) < 0 || y.from(0) < 0 || z.from(0) < 0) return F(a.extrapolation);
    const T* src = t.ptr<const T>(a.src.ref) + at[0] * a.src.s[0] + at[1] * a.src.s[1];
    F sum = F(0);
    RK_NO_UNROLL
    for (int k = 0; k < z.n; ++k) {
      F plane = F(0);
      RK_NO_UNROLL
      for (int j = 0; j < y.n; ++j) {
        const T* row = src + y.from(j) * a.src.s[3] + z.from(k) * a.src.s[4];
        F line = F(0);
        RK_NO_UNROLL
        for (int i = 0; i < x.n; ++i) line += x.by(i) * F(Calc<T>(row[x.from(i) * a.src.s[2]]));
        plane += y.by(j) * line;
      }
      sum += z.by(k) * plane;
    }
    return sum;
  }

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    const auto tile = a.tiles.tile(rtask);
    RK_NO_UNROLL
    for (int e = t.tid; e < tile.size; e += kThreads) {
      const Coordinates<5> c(a.tiles, tile, e);
      store<T>(t, a.dst, c.at, fn::Cast<T>(sample(t, a, c.at)));
    }
  }
};

}  // namespace rk
