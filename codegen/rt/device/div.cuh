// Division by a number that is known before the program runs.
#pragma once

#include <cstdint>

#include "rt/device/backend.cuh"

namespace rt {

// Division by d for 0 ≤ n < 2^31: n / d = (high(n·mul) + n) >> shift. The compiler of models computes mul and shift.
struct Div {
  uint32_t d, mul, shift;

  RT_DEVICE int quotient(int n) const {
    const uint32_t high = uint32_t((uint64_t(uint32_t(n)) * mul) >> 32);
    return int((high + uint32_t(n)) >> shift);
  }
};

}  // namespace rt
