// Asynchronous copies that fill with zeros where there is nothing to copy, without a branch.
#pragma once

#include <cstring>

#include "rt/device/device.cuh"

namespace rt {

// Like cp_async4 and cp_async16 if ok; otherwise the shared memory becomes zero and gmem is not read.
// PTX ISA, cp.async: a source size of 0 ignores the source address.
template <int Bytes>
RT_DEVICE void cp_async_or_zero(void* smem, const void* gmem, bool ok) {
#if defined(__CUDACC__) && (!defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800)
  const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(smem));
  const size_t from = __cvta_generic_to_global(gmem);
  const int bytes = ok ? Bytes : 0;
  if constexpr (Bytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(Bytes), "r"(bytes)
                 : "memory");
  }
#else
  if (ok) {
    detail::cp_async<Bytes>(smem, gmem);
  } else {
    memset(smem, 0, Bytes);
  }
#endif
}

}  // namespace rt
