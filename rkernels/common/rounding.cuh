// Rounding to integers of 8 bits, as QuantizeLinear does, in instructions of which a GPU has many: conversions between
// floats and integers are a quarter as fast as additions.
#pragma once

#include <cmath>

#include "common/types.cuh"

namespace rk {
namespace fn {

// Behind the addition of 1.5·2^23 the lowest bits of a float of at most 2^22 are those of the nearest whole number.
inline constexpr float kWhole = 12582912.0f;

// Cast(Round(x) + zero) to integers of 8 bits, where zero is a whole number. NaN becomes 0; of the unsigned type that
// is the lowest number, which fmaxf gives for NaN.
template <class R>
RK_ANY R RoundTo(float x, float zero) {
  static_assert(sizeof(R) == 1);
  const float y = fminf(fmaxf(x, float(kLowest<R>) - zero), float(kHighest<R>) - zero);
  const R rounded = R(bit_cast<int32_t>(y + kWhole) + int32_t(zero));
  return std::is_unsigned_v<R> || x == x ? rounded : R(0);
}

// Round(x), at least low and at most high, which are whole numbers; low for NaN.
template <class R>
RK_ANY float RoundBetween(float x, float low, float high) {
  return fminf(fmaxf(x, low), high) + kWhole - kWhole;
}
// The same, nan for NaN.
template <class R>
RK_ANY float RoundBetween(float x, float low, float high, float nan) {
  return x == x ? RoundBetween<R>(x, low, high) : nan;
}

}  // namespace fn
}  // namespace rk
