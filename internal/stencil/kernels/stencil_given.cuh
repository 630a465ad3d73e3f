// A kernel of the tests: the stencil with operands that the executor brings, and results given away by
// number.
#pragma once

#include "rt/device/device.cuh"

namespace rk {

template <int THREADS, int TILE, class Epi>
struct StencilGiven {
  struct Args {
    rt::Ref coef;
    int32_t n;
    typename Epi::Args epi;
  };
  static constexpr int kThreads = THREADS;
  static constexpr int kShared = 0;

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    const float* coef = t.ptr<float>(a.coef);
    const float* tile = t.in + TILE;  // between those of the neighbours
    const int first = rtask * TILE;
    for (int i = t.tid; i < TILE; i += kThreads) {
      const float x = 0.25f * tile[i - 1] + 0.5f * tile[i] * rt::ld_const(&coef[first + i]) + 0.25f * tile[i + 1];
      t.put(i, Epi::apply(t, a.epi, x, 0, 0, first + i));
    }
  }
};

}  // namespace rk
