// TurnState: what a turn of a loop begins with. In the first turn that is an operand, in others what the turn
// before has left. VEC elements at a time along the last dim.
#pragma once

#include "common/tiles.cuh"
#include "rt/device/device.cuh"

namespace rk {

template <int VEC, class T>
struct TurnState {
  struct Args {
    Tiles<3> tiles;  // the last dim counts packs of VEC
    Strided<3> initial;
    Strided<3> before;  // not read in the first turn, in which nothing has been left there
    Strided<3> dst;
  };
  static constexpr int kThreads = 256;
  static constexpr int kShared = 0;

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    const auto tile = a.tiles.tile(rtask);
    RK_NO_UNROLL
    for (int e = t.tid; e < tile.size; e += kThreads) {
      const Coordinates<3> c(a.tiles, tile, e);
      store_pack<T, VEC>(t, a.dst, c.at,
                         t.turn == 0 ? load_pack<T, VEC>(t, a.initial, c.at) : load_pack<T, VEC>(t, a.before, c.at));
    }
  }
};

}  // namespace rk
