// Moves elements: for each dim, a table of constants says which source place belongs to an output place. For Pad, and
// for Resize to nearest neighbours.
#pragma once

#include "common/tiles.cuh"
#include "rt/device/device.cuh"

namespace rk {

template <int RANK, class T>
struct Remap {
  struct Args {
    Tiles<RANK> tiles;
    Strided<RANK> src, dst;
    rt::Ref table[RANK];  // int32 source places by output place, -1 for the fill value
    uint32_t tables;      // bit d: dim d has a table, otherwise places are equal
    rt::Ref fill;
  };
  static constexpr int kThreads = 256;
  static constexpr int kShared = 0;

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    const auto tile = a.tiles.tile(rtask);
    RK_NO_UNROLL
    for (int e = t.tid; e < tile.size; e += kThreads) {
      const Coordinates<RANK> c(a.tiles, tile, e);
      int from[RANK];
      bool inside = true;
      RT_UNROLL
      for (int d = 0; d < RANK; ++d) {
        from[d] = c.at[d];
        if (a.tables >> d & 1u) from[d] = rt::ld_const(t.ptr<const int32_t>(a.table[d]) + c.at[d]);
        inside = inside && from[d] >= 0;
      }
      store<T>(t, a.dst, c.at, inside ? load<T>(t, a.src, from) : *t.ptr<const T>(a.fill));
    }
  }
};

}  // namespace rk
