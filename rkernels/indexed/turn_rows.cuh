// TurnRows: what a turn of a loop takes of a sequence, or adds to it. Rows [a][i][b] of src become rows of dst;
// where they begin in one of the two depends on the turn. VEC elements at a time along b.
#pragma once

#include "common/tiles.cuh"
#include "rt/device/device.cuh"

namespace rk {

template <int VEC, class T>
struct TurnRows {
  struct Args {
    Tiles<3> tiles;  // of the rows of one turn; b counts packs of VEC
    Strided<3> src;
    Strided<3> dst;
    int32_t src_first, src_step;  // the first row in turn n is src_first + n·src_step
    int32_t dst_first, dst_step;
  };
  static constexpr int kThreads = 256;
  static constexpr int kShared = 0;

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    const auto tile = a.tiles.tile(rtask);
    const int from = a.src_first + int(t.turn) * a.src_step;
    const int to = a.dst_first + int(t.turn) * a.dst_step;
    RK_NO_UNROLL
    for (int e = t.tid; e < tile.span; e += kThreads) {
      const Coordinates<3> c(a.tiles, tile, e);
      if (!c.inside(tile)) continue;
      const int src[3] = {c.at[0], from + c.at[1], c.at[2]};
      const int dst[3] = {c.at[0], to + c.at[1], c.at[2]};
      store_pack<T, VEC>(t, a.dst, dst, load_pack<T, VEC>(t, a.src, src));
    }
  }
};

}  // namespace rk
