// The numbers from 0 to n - 1, where n is an operand.
#pragma once

#include "indexed/count.cuh"

namespace rk {

struct CountUp : Count {
  struct Args {
    rt::Ref n;
    rt::Ref count;
    Strided<2> y;     // one row
    int32_t dims[2];  // of y
  };

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int) {
    const int64_t wanted = *t.ptr<const int64_t>(a.n);
    const int used = wanted < 0 ? 0 : wanted < a.dims[1] ? int(wanted) : a.dims[1];
    RK_NO_UNROLL
    for (int i = t.tid; i < used; i += kThreads) {
      const int at[2] = {0, i};
      store<int64_t>(t, a.y, at, i);
    }
    finish<1>(t, a.y, a.dims, a.count, used);
  }
};

}  // namespace rk
