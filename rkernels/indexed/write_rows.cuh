// WriteRows: rows [a][i][b] become rows [a][first + i][b] of the output, which has the place of a state; VEC elements
// at a time along b.
#pragma once

#include "common/tiles.cuh"
#include "rt/device/device.cuh"

namespace rk {

template <int VEC, class T>
struct WriteRows {
  struct Args {
    Tiles<3> tiles;  // of rows; b counts packs of VEC
    Strided<3> rows;
    Strided<3> dst;
    int32_t first;
  };
  static constexpr int kThreads = 256;
  static constexpr int kShared = 0;

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    const auto tile = a.tiles.tile(rtask);
    RK_NO_UNROLL
    for (int e = t.tid; e < tile.size; e += kThreads) {
      const Coordinates<3> c(a.tiles, tile, e);
      const int to[3] = {c.at[0], a.first + c.at[1], c.at[2]};
      store_pack<T, VEC>(t, a.dst, to, load_pack<T, VEC>(t, a.rows, c.at));
    }
  }
};

}  // namespace rk
