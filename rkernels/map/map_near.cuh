// Elementwise computation over rows of the last dim, for vEUs in clusters. In near steps (rt/exec/mode_near.cuh) each
// thread takes two elements of each operand from the vEU's slots, and stores two results into the slots of other vEUs.
// In other steps operands are in the import area, and results are given away one by one.
#pragma once

#include "common/math.cuh"
#include "common/tile.cuh"
#include "rt/device/device.cuh"

namespace rk {

template <int THREADS, class Body>
struct MapNear {
  static constexpr int kOperands = Body::kOperands;
  static constexpr bool kNear = true;

  struct Args {
    int32_t columns, chunk;                  // of the last dim; elements an rTask takes of it
    Div chunks;                              // of the last dim
    int32_t in[kOperands], step[kOperands];  // import area: an operand's first element, and on to the next
    typename Body::Args body;
  };
  static constexpr int kThreads = THREADS;  // the last 64 have no elements in near steps
  static constexpr int kShared = 0;

  struct Resident {};
  RT_DEVICE static void load(const rt::Task&, const Args&, int, Resident&) {}
  RT_DEVICE static void prepare(const rt::Task&, const Args&, int, Resident&) {}

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask, Resident&) {
    const int n = count(a, rtask);
    RT_NO_UNROLL
    for (int e = t.tid; e < n; e += kThreads) {
      float x[kOperands], y[1];
      RT_UNROLL
      for (int k = 0; k < kOperands; ++k) x[k] = t.in[a.in[k] + e * a.step[k]];
      Body::apply(a.body, x, y);
      t.put(e, y[0]);
    }
  }

  // Elements of an rTask.
  RT_DEVICE static int count(const Args& a, int rtask) {
    int row = rtask;
    const int left = a.columns - take_digit(row, a.chunks) * a.chunk;
    return left < a.chunk ? left : a.chunk;
  }
  RT_DEVICE static float apply(const Args& a, const float (&x)[kOperands]) {
    float y[1];
    Body::apply(a.body, x, y);
    return y[0];
  }
};

}  // namespace rk
