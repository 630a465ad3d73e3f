// WriteRows: rows [a][b][i][c] become rows [a][b][first + i][c] of the output, which has the place of a state; VEC
// elements at a time along c.
#pragma once

#include "common/tiles.cuh"
#include "rt/device/device.cuh"

namespace rk {

template <int VEC, class T>
struct WriteRows {
  struct Args {
    Tiles<4> tiles;  // of rows; c counts packs of VEC
    Strided<4> rows;
    Strided<4> dst;
    int32_t first;
  };
  static constexpr int kThreads = 256;
  static constexpr int kShared = 0;

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    const auto tile = a.tiles.tile(rtask);
    RK_NO_UNROLL
    for (int e = t.tid; e < tile.size; e += kThreads) {
      const Coordinates<4> c(a.tiles, tile, e);
      const int to[4] = {c.at[0], c.at[1], a.first + c.at[2], c.at[3]};
      store_pack<T, VEC>(t, a.dst, to, load_pack<T, VEC>(t, a.rows, c.at));
    }
  }
};

}  // namespace rk
