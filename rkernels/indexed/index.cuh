// Indices given at run time: negative ones count from the end; what is out of range is brought back to
// the nearest place that exists, so that no input makes a kernel leave its buffers.
#pragma once

#include "common/types.cuh"
#include "rt/device/device.cuh"

namespace rk {

template <class I>
RT_DEVICE int place_of(I index, int extent) {
  int64_t i = int64_t(index);
  if (i < 0) i += extent;
  if (i >= extent) i = extent - 1;
  return i < 0 ? 0 : int(i);
}

}  // namespace rk
