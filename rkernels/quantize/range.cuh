// DynamicQuantizeLinear: a tensor is stored in 8 bits with a scale and a zero point that follow from its least and its
// greatest element. No element can be quantised before all have been seen. So one launch makes the ranges of parts, and
// in the next one every rTask joins these ranges and quantises elements of its own:
//
//	x ─┬─▶ dynamic_range: ranges of parts ─▶ dynamic_codes: codes, and their scale and zero point
//	   └─────────────────────────────────────▲
#pragma once

#include "common/lines.cuh"
#include "common/math.cuh"
#include "common/operand.cuh"
#include "common/rounding.cuh"
#include "rt/device/device.cuh"

namespace rk {

// The least and the greatest of some numbers; NaN if one of them is.
struct Range {
  float low, high;

  static RK_ANY Range none() { return {fn::inf_f(), -fn::inf_f()}; }
  static RK_ANY Range merge(const Range& a, const Range& b) {
    return {fn::Min<float>(a.low, b.low), fn::Max<float>(a.high, b.high)};
  }
};

using RangeThreads = LineThreads<1, false>;

// What stands for 0 … 255 in a range: 0 is always among the numbers that codes stand for.
struct DynamicScale {
  float scale;
  uint8_t zero;

  RT_DEVICE explicit DynamicScale(const Range& r) {
    const float low = fn::Min<float>(r.low, 0.0f), high = fn::Max<float>(r.high, 0.0f);
    scale = fn::Div<float>(high - low, 255.0f);
    zero = fn::RoundTo<uint8_t>(fn::Div<float>(-low, scale), 0.0f);
  }
  RT_DEVICE uint8_t code(float x) const { return fn::RoundTo<uint8_t>(fn::Div<float>(x, scale), float(zero)); }
};

// The range of `count` parts, for all threads. scratch has room for RangeThreads::kSlots ranges.
RT_DEVICE Range joined_range(const rt::Task& t, const Range* parts, int count, Range* scratch) {
  Range r = Range::none();
  RT_UNROLL
  for (int i = t.tid; i < count; i += RangeThreads::kThreads) r = Range::merge(r, parts[i]);
  return RangeThreads(t.tid).all(t, scratch, r, Range::merge);
}

}  // namespace rk
