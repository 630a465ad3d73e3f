// GatherElements: every output element has an index of its own for the axis.
#pragma once

#include "common/tiles.cuh"
#include "indexed/index.cuh"
#include "rt/device/device.cuh"

namespace rk {

template <int RANK, class T, class I>
struct GatherElements {
  struct Args {
    Tiles<RANK> tiles;
    Strided<RANK> src;  // with stride 0 along the axis
    Strided<RANK> dst, index;
    int32_t extent, step;  // of data's axis
  };
  static constexpr int kThreads = 256;
  static constexpr int kShared = 0;

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    const auto tile = a.tiles.tile(rtask);
    RK_NO_UNROLL
    for (int e = t.tid; e < tile.size; e += kThreads) {
      const Coordinates<RANK> c(a.tiles, tile, e);
      const int place = place_of(load<I>(t, a.index, c.at), a.extent);
      store<T>(t, a.dst, c.at, t.ptr<const T>(a.src.ref)[a.src.offset(c.at) + place * a.step]);
    }
  }
};

}  // namespace rk
