// The lists of nms.cuh as one: batch, class and index of each box that was selected.
#pragma once

#include "indexed/count.cuh"

namespace rk {

struct NMSJoin : Count {
  struct Args {
    rt::Ref taken, counts;
    int32_t lists, limit;
    Div classes;
    rt::Ref count;
    Strided<2> y;
    int32_t dims[2];  // of y
  };

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int) {
    int used = 0;
    RK_NO_UNROLL
    for (int list = 0; list < a.lists; ++list) {
      const int n = t.ptr<const int32_t>(a.counts)[list];
      const int batch = a.classes.quotient(list);
      const int64_t numbers[2] = {batch, list - batch * int(a.classes.d)};
      RK_NO_UNROLL
      for (int i = t.tid; i < n; i += kThreads) {
        const int row = used + i;
        const int at[3][2] = {{row, 0}, {row, 1}, {row, 2}};
        store<int64_t>(t, a.y, at[0], numbers[0]);
        store<int64_t>(t, a.y, at[1], numbers[1]);
        store<int64_t>(t, a.y, at[2], t.ptr<const int32_t>(a.taken)[int64_t(list) * a.limit + i]);
      }
      used += n;
    }
    finish<0>(t, a.y, a.dims, a.count, used);
  }
};

}  // namespace rk
