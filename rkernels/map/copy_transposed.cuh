// A copy whose source and destination are consecutive along different dims: through a square tile in
// shared memory, so that both sides move whole lines.
#pragma once

#include "common/narrow.cuh"

#include "common/tiles.cuh"
#include "rt/device/device.cuh"

namespace rk {

// SIZE is sizeof(T). The source is consecutive along dim RANK-2, the destination along dim RANK-1;
// tiles are TILE × TILE in these two dims.
template <int RANK, int TILE, int SIZE, class T>
struct CopyTransposed {
  static_assert(SIZE == sizeof(T));
  struct Args {
    Tiles<RANK> tiles;
    Strided<RANK> src, dst;
  };
  static constexpr int kThreads = 256;
  static constexpr int kPitch = TILE + 1;  // keeps the lanes of a warp in different banks
  static constexpr int kShared = TILE * kPitch * SIZE;

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    const auto tile = a.tiles.tile(rtask);
    const int rows = tile.n[RANK - 2], columns = tile.n[RANK - 1];
    T* s = reinterpret_cast<T*>(t.smem);
    const T* src = t.ptr<const T>(a.src.ref) + a.src.offset(tile.lo);
    T* dst = t.ptr<T>(a.dst.ref) + a.dst.offset(tile.lo);
    const int src_column = a.src.s[RANK - 1], dst_row = a.dst.s[RANK - 2];
    for (int e = t.tid; e < TILE * TILE; e += kThreads) {
      const int r = e % TILE, c = e / TILE;
      if (r < rows && c < columns) s[r * kPitch + c] = src[c * src_column + r];
    }
    t.sync();
    for (int e = t.tid; e < TILE * TILE; e += kThreads) {
      const int r = e / TILE, c = e % TILE;
      if (r < rows && c < columns) dst[r * dst_row + c] = s[r * kPitch + c];
    }
  }
};

}  // namespace rk
