// Numbers of 32 bits that are ordered as the elements of a type of at most 32 bits are.
#pragma once

#include "common/math.cuh"

namespace rk {

// The rank of x among all elements of its type: the larger x, the larger its rank, or, unless `largest`, the
// smaller. 0 and -0 have the same rank. NaN has the highest rank, or the lowest one if it is to come last.
template <class T>
RK_ANY uint32_t rank_of(Calc<T> x, bool largest, bool nan_first) {
  static_assert(sizeof(T) <= 4);
  uint32_t up;
  if constexpr (is_float<T>) {
    if (!(x == x)) return nan_first ? 0xffffffffu : 0;
    const uint32_t bits = x == Calc<T>(0) ? 0 : rk::bit_cast<uint32_t>(float(x));
    up = bits >> 31 ? ~bits : bits | 0x80000000u;
  } else {
    up = uint32_t(x) ^ (std::is_signed_v<T> ? 0x80000000u : 0u);
  }
  return largest ? up : ~up;
}

}  // namespace rk
