// What rKernels share that find elements and say how many there are: counted operators, of which only a run knows how
// many places of their results are used. The others are filled with zeros.
#pragma once

#include "common/tiles.cuh"
#include "rt/device/device.cuh"

namespace rk {

struct Count {
  static constexpr int kThreads = 256;
  static constexpr int kShared = kThreads / 32 * 4;

  // The sum of v over the threads before this one; *whole becomes the sum over all threads.
  RT_DEVICE static int before(const rt::Task& t, int v, int* whole) {
    int* totals = reinterpret_cast<int*>(t.smem);
    const int lane = t.tid % 32, warp = t.tid / 32;
    int sum = v;
    RT_UNROLL
    for (int d = 1; d < 32; d *= 2) {
      const int other = rt::shfl(t, sum, lane >= d ? lane - d : lane);
      if (lane >= d) sum += other;
    }
    if (lane == 31) totals[warp] = sum;
    t.sync();
    int base = 0, all = 0;
    for (int w = 0; w < kThreads / 32; ++w) {
      if (w == warp) base = all;
      all += totals[w];
    }
    t.sync();
    *whole = all;
    return base + sum - v;
  }

  // Fills the places of y from `used` on along dim DIM with zeros, and says how many are used.
  template <int DIM>
  RT_DEVICE static void finish(const rt::Task& t, const Strided<2>& y, const int32_t (&dims)[2], rt::Ref count,
                               int used) {
    if (t.tid == 0) *t.ptr<int64_t>(count) = used;
    const int others = dims[1 - DIM];
    RK_NO_UNROLL
    for (int i = used + t.tid; i < dims[DIM]; i += kThreads) {
      for (int k = 0; k < others; ++k) {
        const int at[2] = {DIM == 0 ? i : k, DIM == 0 ? k : i};
        store<int64_t>(t, y, at, 0);
      }
    }
  }
};

}  // namespace rk
