// A number that follows from the extents of a run, for operators that compute with it.
#pragma once

#include "rt/device/device.cuh"

namespace rk {

struct Extent {
  struct Args {
    rt::Ref to;  // one int64
    int32_t n;   // the host writes it before the run
  };
  static constexpr int kThreads = 32;
  static constexpr int kShared = 0;

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int) {
    if (t.tid == 0) *t.ptr<int64_t>(a.to) = a.n;
  }
};

}  // namespace rk
