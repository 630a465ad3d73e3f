// GatherND: output [batch][tuple][place in slice] is a slice of dense data at an index tuple.
#pragma once

#include "common/tiles.cuh"
#include "indexed/index.cuh"
#include "rt/device/device.cuh"

namespace rk {

constexpr int kMaxTuple = 8;

// Index tuples of dense tensors.
struct Tuples {
  int32_t size;  // indices in a tuple
  int32_t extent[kMaxTuple], step[kMaxTuple];

  RT_DEVICE int place(const int64_t* tuple) const {
    int p = 0;
    for (int k = 0; k < size; ++k) p += place_of(tuple[k], extent[k]) * step[k];
    return p;
  }
};

template <class T>
struct GatherNd {
  struct Args {
    Tiles<3> tiles;
    rt::Ref src, index;
    Strided<3> dst;
    Tuples tuples;
    int32_t batch_step;  // elements of data in a batch
  };
  static constexpr int kThreads = 256;
  static constexpr int kShared = 0;

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    const auto tile = a.tiles.tile(rtask);
    const T* src = t.ptr<const T>(a.src);
    const int64_t* index = t.ptr<const int64_t>(a.index);
    RK_NO_UNROLL
    for (int e = t.tid; e < tile.size; e += kThreads) {
      const Coordinates<3> c(a.tiles, tile, e);
      const int64_t* tuple = index + (int64_t(c.at[0]) * a.tiles.dims[1] + c.at[1]) * a.tuples.size;
      store<T>(t, a.dst, c.at, src[c.at[0] * a.batch_step + a.tuples.place(tuple) + c.at[2]]);
    }
  }
};

}  // namespace rk
