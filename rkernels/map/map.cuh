// Elementwise computation over a strided iteration space. Body, generated from expression trees, finds where operands
// and results of one place (or of consecutive ones) are, loads the operands, and computes and stores. A thread loads
// what several places need before it stores the first result, and knows where that is before the rTask's inputs are
// there.
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
  static constexpr bool kEarly = true;

  // Places that a thread loads the operands of at once: all that fits 64 registers.
  static constexpr int kEach = static_cast<int>(sizeof(typename Body::Found) + sizeof(typename Body::Loaded)) / 4;
  static constexpr int kBatch = kEach <= 16 ? 4 : kEach <= 32 ? 2 : 1;

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    const auto tile = a.tiles.tile(rtask);
    bool waits = true;
    RK_NO_UNROLL
    for (int e = t.tid; waits || e < tile.span; e += kBatch * kThreads, waits = false) {
      int at[kBatch][RANK];
      bool exists[kBatch];
      typename Body::Found found[kBatch];
      RT_UNROLL
      for (int b = 0; b < kBatch; ++b) {
        const Coordinates<RANK> c(a.tiles, tile, e + b * kThreads);
        exists[b] = e + b * kThreads < tile.span && c.inside(tile);
        RT_UNROLL
        for (int d = 0; d < RANK; ++d) at[b][d] = c.at[d];
        found[b] = Body::find(t, a.body, at[b], exists[b]);
      }
      if (waits) t.wait_for_inputs();
      typename Body::Loaded loaded[kBatch];
      RT_UNROLL
      for (int b = 0; b < kBatch; ++b) loaded[b] = Body::load(found[b], exists[b]);
      RT_UNROLL
      for (int b = 0; b < kBatch; ++b) {
        if (exists[b]) Body::apply(a.body, found[b], loaded[b], at[b]);
      }
    }
  }
};

}  // namespace rk
