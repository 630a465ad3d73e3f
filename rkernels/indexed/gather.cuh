// Gather: output [a][i][b] is data [a][index i][b]; VEC elements at a time along b.
#pragma once

#include "common/tiles.cuh"
#include "indexed/index.cuh"
#include "rt/device/device.cuh"

namespace rk {

template <int VEC, class T, class I>
struct Gather {
  struct Args {
    Tiles<3> tiles;  // b counts packs of VEC
    Strided<3> src;  // s[1] is data's stride along the axis
    Strided<3> dst;
    Strided<1> index;
    int32_t extent;  // of data's axis
  };
  static constexpr int kThreads = 256;
  static constexpr int kShared = 0;

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    const auto tile = a.tiles.tile(rtask);
    RK_NO_UNROLL
    for (int e = t.tid; e < tile.size; e += kThreads) {
      const Coordinates<3> c(a.tiles, tile, e);
      const int index_at[1] = {c.at[1]};
      const int from[3] = {c.at[0], place_of(load<I>(t, a.index, index_at), a.extent), c.at[2]};
      store_pack<T, VEC>(t, a.dst, c.at, load_pack<T, VEC>(t, a.src, from));
    }
  }
};

}  // namespace rk
