// The least and the greatest element of parts of a tensor (range.cuh).
#pragma once

#include "quantize/range.cuh"

namespace rk {

// An rTask has `chunk` elements, of which a thread loads V at a time.
template <int V, class X>
struct DynamicRange {
  static constexpr int kThreads = RangeThreads::kThreads;
  static constexpr int kShared = RangeThreads::kSlots * sizeof(Range);

  struct Args {
    rt::Ref x, out;  // out is a Range for each rTask
    int64_t step;    // from one element to the next, 1 where V is more than that
    int32_t count, chunk;
  };

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    const X* x = t.ptr<const X>(a.x);
    const int first = rtask * a.chunk, end = a.count - first < a.chunk ? a.count : first + a.chunk;
    Range r = Range::none();
    RK_UNROLL(4)
    for (int i = first + t.tid * V; i < end; i += kThreads * V) {
      const Pack<X, V> v = *reinterpret_cast<const Pack<X, V>*>(x + place(i, a.step));
      RT_UNROLL
      for (int k = 0; k < V; ++k) r = Range::merge(r, {float(v.v[k]), float(v.v[k])});
    }
    r = RangeThreads(t.tid).all(t, reinterpret_cast<Range*>(t.smem), r, Range::merge);
    if (t.tid == 0) t.ptr<Range>(a.out)[rtask] = r;
  }
};

}  // namespace rk
