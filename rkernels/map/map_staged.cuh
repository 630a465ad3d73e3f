// Elementwise computation over runs of elements along the last dim: an rTask's operands are in the
// import area when it starts, its results are given away as they are made. While the operands come,
// every thread finds out where its own are and where its results go.
#pragma once

#include "common/math.cuh"
#include "common/tile.cuh"
#include "rt/device.cuh"

namespace rk {

template <int THREADS, class Body>
struct MapStaged {
  struct Args {
    int32_t columns, chunk;  // of the last dim; elements an rTask takes of it, one a thread
    Div chunks;              // of the last dim
    typename Body::Args body;
  };
  static constexpr int kThreads = THREADS;
  static constexpr int kShared = 0;
  static constexpr bool kFreeWarp = true;

  struct Resident {
    typename Body::Place place;
    bool mine;
  };

  RT_DEVICE static void load(const rt::Task&, const Args&, int, Resident&) {}

  RT_DEVICE static void prepare(const rt::Task& t, const Args& a, int rtask, Resident& r) {
    int row = rtask;
    const int first = take_digit(row, a.chunks) * a.chunk;
    r.mine = t.tid < a.chunk && first + t.tid < a.columns;
    if (r.mine) Body::find(t, a.body, t.tid, r.place);
  }

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int, Resident& r) {
    if (r.mine) Body::apply(t, a.body, t.tid, r.place);
  }
};

}  // namespace rk
