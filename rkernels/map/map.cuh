// Elementwise computation over a strided iteration space. Body, generated from expression trees, loads
// the operands of one place (or of VEC consecutive ones), computes and stores.
#pragma once

#include "common/math.cuh"
#include "common/tiles.cuh"
#include "rt/device/device.cuh"

namespace rk {

template <int RANK, class Body>
struct Map {
  struct Args {
    Tiles<RANK> tiles;
    typename Body::Args body;
  };
  static constexpr int kThreads = 256;
  static constexpr int kShared = 0;

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    const auto tile = a.tiles.tile(rtask);
    RK_NO_UNROLL
    for (int e = t.tid; e < tile.span; e += kThreads) {
      const Coordinates<RANK> c(a.tiles, tile, e);
      if (c.inside(tile)) Body::apply(t, a.body, c.at);
    }
  }
};

}  // namespace rk
