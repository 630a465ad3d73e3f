// Indices that are given at run time. Negative ones count from the end. An index that is out of range becomes the
// nearest one in range, so that no input makes a kernel read or write outside of its buffers.
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
