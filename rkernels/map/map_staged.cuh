// Elementwise computation over runs of elements along the last dim. An rTask's operands are in the import area when it
// starts, and its results are given away as they are computed. While the operands come, each thread finds out where its
// results go. In direct steps (rt/exec/mode_direct.cuh) each thread polls the words of its own operands, and stores its
// results as words.
#pragma once

#include "common/math.cuh"
#include "common/tile.cuh"
#include "rt/device/device.cuh"

namespace rk {

template <int THREADS, class Body>
struct MapStaged {
  static constexpr int kOperands = Body::kOperands, kResults = Body::kResults;
  static constexpr int kDirect = 4;

  struct Args {
    int32_t columns, chunk;                       // of the last dim; elements an rTask takes of it, one a thread
    Div chunks;                                   // of the last dim
    int32_t in[kOperands > 0 ? kOperands : 1];    // import area: the first element of each operand
    int32_t step[kOperands > 0 ? kOperands : 1];  // from one element to the next
    typename Body::Args body;
  };
  static constexpr int kThreads = THREADS;
  static constexpr int kShared = 0;

  static constexpr bool kFreeWarp = THREADS < 256;  // with more threads the last warp may have elements

  struct Resident {
    rt::Outlet out[kResults];
    bool mine;
  };
  RT_DEVICE static void load(const rt::Task&, const Args&, int, Resident&) {}

  RT_DEVICE static void prepare(const rt::Task& t, const Args& a, int rtask, Resident& r) {
    r.mine = t.tid < count(a, rtask);
    if (!r.mine) return;
    RT_UNROLL
    for (int k = 0; k < kResults; ++k) r.out[k] = t.outlet(k * a.chunk + t.tid);
  }

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int, Resident& r) {
    if (!r.mine) return;
    float x[kOperands > 0 ? kOperands : 1], y[kResults];
    RT_UNROLL
    for (int k = 0; k < kOperands; ++k) x[k] = t.in[a.in[k] + t.tid * a.step[k]];
    Body::apply(a.body, x, y);
    RT_UNROLL
    for (int k = 0; k < kResults; ++k) t.give(r.out[k], k * a.chunk + t.tid, y[k]);
  }

  // A direct step has one import of tagged words for each operand, and one export for each result. Threads without an
  // element look at the words of the last one.
  struct Place {
    const uint64_t* from[kOperands > 0 ? kOperands : 1];
    uint64_t* to[kResults];
    typename Body::Args body;
    int count;
  };

  RT_DEVICE static void find(int tid, uint64_t* tagged, const rt::Move* moves, const Args& a, int rtask, Place& p) {
    p.count = count(a, rtask);
    const int e = tid < p.count ? tid : p.count - 1;
    RT_UNROLL
    for (int k = 0; k < kOperands; ++k) p.from[k] = word(tagged, moves[k], e * a.step[k]);
    RT_UNROLL
    for (int k = 0; k < kResults; ++k) p.to[k] = word(tagged, moves[kOperands + k], e);
    p.body = a.body;
  }
  RT_DEVICE static void apply(const Place& p, const float (&x)[kOperands], float (&y)[kResults]) {
    Body::apply(p.body, x, y);
  }

 private:
  // Elements of an rTask.
  static RT_DEVICE int count(const Args& a, int rtask) {
    int row = rtask;
    const int left = a.columns - take_digit(row, a.chunks) * a.chunk;
    return left < a.chunk ? left : a.chunk;
  }
  static RT_DEVICE uint64_t* word(uint64_t* tagged, const rt::Move& m, int e) {
    return tagged + rt::mad_wide(e, static_cast<int>(m.step), static_cast<int64_t>(m.at));
  }
};

}  // namespace rk
