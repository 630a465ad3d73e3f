// A kernel of the tests: y = 2x + w, for a tile. FLAW says what is wrong with it.
#pragma once

#include "rt/device/device.cuh"

namespace rk {

enum Flaw { kNone, kWrong, kHangs, kFaults, kDoesNotBuild };

template <int TILE, int FLAW>
struct Scale {
  struct Args {
    rt::Ref x, w, y;
    int32_t n;
  };
  static constexpr int kThreads = 32;
  static constexpr int kShared = 0;
  static_assert(FLAW != kDoesNotBuild, "as planted");

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    const float* x = t.ptr<float>(a.x);
    const float* w = t.ptr<float>(a.w);
    float* y = t.ptr<float>(a.y);
    if (FLAW == kHangs && rtask == 1) {
      while (*const_cast<const volatile float*>(x) >= -1e30f) {
      }
    }
    if (FLAW == kFaults && rtask == 1) *reinterpret_cast<volatile float*>(uintptr_t{64}) = x[0];
    const int end = (rtask + 1) * TILE < a.n ? (rtask + 1) * TILE : a.n;
    for (int i = rtask * TILE + t.tid; i < end; i += kThreads) {
      y[i] = (FLAW == kWrong && i == a.n - 1 ? 3.0f : 2.0f) * x[i] + rt::ld_const(&w[i]);
    }
  }
};

}  // namespace rk
