// A kernel of the tests: smooths a row with its neighbours, through shared memory.
#pragma once

#include "rt/device/device.cuh"

namespace rk {

template <int THREADS, int TILE, class Epi>
struct Stencil {
  struct Args {
    rt::Ref in, out, coef;
    int32_t n;
    typename Epi::Args epi;
  };
  static constexpr int kThreads = THREADS;
  static constexpr int kShared = 4 * (TILE + 2);

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    const float* in = t.ptr<float>(a.in);
    const float* coef = t.ptr<float>(a.coef);
    float* tile = reinterpret_cast<float*>(t.smem);
    const int first = rtask * TILE;
    for (int i = t.tid; i < TILE + 2; i += kThreads) {
      const int at = (first + i - 1 + a.n) % a.n;
      rt::cp_async4(&tile[i], &in[at]);
    }
    rt::cp_async_commit();
    rt::cp_async_wait<0>();
    t.sync();
    for (int i = t.tid; i < TILE; i += kThreads) {
      const float x = 0.25f * tile[i] + 0.5f * tile[i + 1] * rt::ld_const(&coef[first + i]) + 0.25f * tile[i + 2];
      t.ptr<float>(a.out)[first + i] = Epi::apply(t, a.epi, x, 0, 0, first + i);
    }
  }
};

}  // namespace rk
