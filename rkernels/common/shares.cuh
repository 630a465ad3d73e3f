// Sums of units that several threads share.
#pragma once

#include "common/tile.cuh"
#include "rt/device/device.cuh"

namespace rk {

// How threads share what is added up for units, of which each thread has four: thread number share · quads + quad has
// its share of the quad's.
struct Shares {
  static constexpr int kMost = 16;  // the most threads that share a unit
  using Quad = Pack<float, 4>;

  int quads, count, share, step;  // step: from a quad of the thread to its next one

  RT_DEVICE Shares(const rt::Task& t, const Div& quads_of_units, int threads)
      : quads(static_cast<int>(quads_of_units.d)), share(quads_of_units.quotient(t.tid)) {
    const int most = quads_of_units.quotient(threads);
    count = most < kMost ? most : kMost;
    step = count * quads;
  }
  // How many of so many are the thread's or are behind its first one.
  RT_DEVICE int left(int all) const { return share < count ? all - share : 0; }

  // The sum of a unit, after each thread has put what it has into sums. Four shares are on their way at a time.
  RT_DEVICE float sum(const float* sums, int unit) const {
    const float* from = sums + unit;
    float s = 0.0f;
    RK_UNROLL(1)
    for (int left = count; left > 0; left -= 4, from += 16 * quads) {
      RT_UNROLL
      for (int i = 0; i < 4; ++i) s += i < left ? from[i * 4 * quads] : 0.0f;
    }
    return s;
  }

  // Adds the product of a quad of weights with a mean.
  static RT_DEVICE void add(Quad& s, const Quad& w, float mean) {
    RT_UNROLL
    for (int i = 0; i < 4; ++i) s.v[i] += w.v[i] * mean;
  }

  // Stores all units of a part, of which each thread has s. In shared memory, sums has four floats for each thread.
  RT_DEVICE void store(const rt::Task& t, const Quad& s, float* sums, float* part, int threads) const {
    reinterpret_cast<Quad*>(sums)[t.tid] = s;
    t.sync();
    RK_UNROLL(1)
    for (int u = t.tid; u < 4 * quads; u += threads) part[u] = sum(sums, u);
  }
};

}  // namespace rk
