// The codes of DynamicQuantizeLinear (range.cuh).
#pragma once

#include "quantize/range.cuh"

namespace rk {

// An rTask joins the ranges of all parts, and quantises `chunk` elements, V of them at a time in a thread. The first
// one also stores the scale and the zero point, for whoever reads the codes.
template <int V, class X>
struct DynamicCodes {
  static constexpr int kThreads = RangeThreads::kThreads;
  static constexpr int kShared = RangeThreads::kSlots * sizeof(Range);

  struct Args {
    rt::Ref x, parts, codes, scale, zero;
    int64_t step, codes_step;  // from one element to the next, 1 where V is more than that
    int32_t count, chunk;
    int32_t ranges;  // how many parts there are
  };

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    const X* x = t.ptr<const X>(a.x);
    uint8_t* codes = t.ptr<uint8_t>(a.codes);
    const int first = rtask * a.chunk, end = a.count - first < a.chunk ? a.count : first + a.chunk;
    const DynamicScale s(joined_range(t, t.ptr<const Range>(a.parts), a.ranges, reinterpret_cast<Range*>(t.smem)));
    if (rtask == 0 && t.tid == 0) *t.ptr<float>(a.scale) = s.scale, *t.ptr<uint8_t>(a.zero) = s.zero;
    RK_UNROLL(2)
    for (int i = first + t.tid * V; i < end; i += kThreads * V) {
      const Pack<X, V> v = *reinterpret_cast<const Pack<X, V>*>(x + place(i, a.step));
      Pack<uint8_t, V> code;
      RT_UNROLL
      for (int k = 0; k < V; ++k) code.v[k] = s.code(float(v.v[k]));
      *reinterpret_cast<Pack<uint8_t, V>*>(codes + place(i, a.codes_step)) = code;
    }
  }
};

}  // namespace rk
