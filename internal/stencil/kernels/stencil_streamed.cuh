// A kernel of the tests: the stencil with coefficients that come through the ring.
#pragma once

#include "rt/device/device.cuh"

namespace rk {

template <int THREADS, int TILE, class Epi>
struct StencilStreamed {
  struct Args {
    rt::Ref in, out, coef;
    int32_t n;
    typename Epi::Args epi;
  };
  static constexpr int kThreads = THREADS;
  static constexpr int kShared = 4 * (TILE + 2);
  static constexpr int kStreamStep = 128;

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    const float* in = t.inputs(t.ptr<float>(a.in));
    float* tile = reinterpret_cast<float*>(t.smem);
    const int first = rtask * TILE;
    for (int i = t.tid; i < TILE + 2; i += kThreads) tile[i] = in[(first + i - 1 + a.n) % a.n];
    t.sync();
    rt::Stream s = t.stream;
    const int most = s.chunk_bytes() / 4;
    for (int done = 0; done < TILE; done += most) {
      const float* coef = reinterpret_cast<const float*>(s.front());
      const int count = TILE - done < most ? TILE - done : most;
      for (int i = t.tid; i < count; i += kThreads) {
        const float* x = tile + done + i;
        const float y = 0.25f * x[0] + 0.5f * x[1] * coef[i] + 0.25f * x[2];
        t.ptr<float>(a.out)[first + done + i] = Epi::apply(t, a.epi, y, 0, 0, first + done + i);
      }
      s.pop();
    }
  }
};

}  // namespace rk
