// Elementwise computation over runs of elements along the last dim: an rTask's operands are in the
// import area when it starts, its results are given away as they are made.
#pragma once

#include "common/math.cuh"
#include "common/tile.cuh"
#include "rt/device.cuh"

namespace rk {

template <int THREADS, class Body>
struct MapStaged {
  struct Args {
    int32_t columns, chunk;  // of the last dim; elements an rTask takes of it
    Div chunks;              // of the last dim
    typename Body::Args body;
  };
  static constexpr int kThreads = THREADS;
  static constexpr int kShared = 0;

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    int row = rtask;
    const int first = take_digit(row, a.chunks) * a.chunk;
    const int count = a.columns - first < a.chunk ? a.columns - first : a.chunk;
    RK_UNROLL(1)
    for (int e = t.tid; e < count; e += kThreads) Body::apply(t, a.body, e);
  }
};

}  // namespace rk
