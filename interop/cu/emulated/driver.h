// What the parts of the emulated driver share.
#pragma once

#include "device.h"

namespace emulated {

inline thread_local bool current = false;  // whether the calling thread has a context

inline std::lock_guard<std::recursive_mutex> hold() {
  return std::lock_guard<std::recursive_mutex>(Device::one().mutex());
}

// Puts work on a stream that it can be carried out on as soon as it comes to it.
inline CUresult put(CUstream s, std::function<CUresult()> run) {
  if (!current) return CUDA_ERROR_INVALID_CONTEXT;
  Stream* stream = Device::one().stream(s);
  if (!stream) return CUDA_ERROR_INVALID_HANDLE;
  return Device::one().put(stream, Work{[] { return true; }, std::move(run)});
}

}  // namespace emulated
