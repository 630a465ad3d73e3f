// Append: output [a][i][b] is x [a][i][b] as long as x goes on in this run, and behind that rows [a][i - first][b]; VEC
// elements at a time along b.
#pragma once

#include "common/tiles.cuh"
#include "rt/device/device.cuh"

namespace rk {

template <int VEC, class T>
struct Append {
  struct Args {
    Tiles<3> tiles;  // of the output; b counts packs of VEC
    Strided<3> x;
    Strided<3> rows;
    Strided<3> dst;
    int32_t first;  // how long x is
    int32_t most;   // how long rows can be
  };
  static constexpr int kThreads = 256;
  static constexpr int kShared = 0;

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    const auto tile = a.tiles.tile(rtask);
    RK_NO_UNROLL
    for (int e = t.tid; e < tile.size; e += kThreads) {
      const Coordinates<3> c(a.tiles, tile, e);
      const int behind = c.at[1] - a.first;
      if (behind < 0) {
        store_pack<T, VEC>(t, a.dst, c.at, load_pack<T, VEC>(t, a.x, c.at));
      } else if (behind < a.most) {
        const int from[3] = {c.at[0], behind, c.at[2]};
        store_pack<T, VEC>(t, a.dst, c.at, load_pack<T, VEC>(t, a.rows, from));
      }
    }
  }
};

}  // namespace rk
