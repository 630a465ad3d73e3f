// The number of the turn of a loop, for operators that compute with it.
#pragma once

#include "rt/device/device.cuh"

namespace rk {

struct Turn {
  struct Args {
    rt::Ref to;  // one int64
  };
  static constexpr int kThreads = 32;
  static constexpr int kShared = 0;

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int) {
    if (t.tid == 0) *t.ptr<int64_t>(a.to) = t.turn;
  }
};

}  // namespace rk
