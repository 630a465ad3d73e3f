// Memory of the emulated driver, and copies.
#include <cstring>

#include "driver.h"

using emulated::current;
using emulated::Device;
using emulated::hold;
using emulated::put;

namespace {

CUresult copied(CUdeviceptr to, const void* from, size_t bytes) {
  std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  return CUDA_SUCCESS;
}

// A copy that the host waits for. Like the GPU's, it comes behind the work of streams that block and no other.
CUresult copy_now(bool inside, void* to, const void* from, size_t bytes) {
  if (!current) return CUDA_ERROR_INVALID_CONTEXT;
  if (!inside) return CUDA_ERROR_INVALID_VALUE;
  const CUresult r = Device::one().finish_blocking();
  if (r != CUDA_SUCCESS) return r;
  return copied(reinterpret_cast<CUdeviceptr>(to), from, bytes);
}

CUresult fill(CUdeviceptr at, unsigned char value, size_t bytes) {
  if (!Device::one().holds(at, bytes)) return CUDA_ERROR_INVALID_VALUE;
  std::memset(reinterpret_cast<void*>(at), value, bytes);
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

CUresult cuMemAlloc_v2(CUdeviceptr* at, size_t bytes) {
  if (!current) return CUDA_ERROR_INVALID_CONTEXT;
  const auto held = hold();
  return Device::one().allocate(at, bytes);
}
CUresult cuMemFree_v2(CUdeviceptr at) {
  const auto held = hold();
  return Device::one().release(at);
}
CUresult cuMemGetInfo_v2(size_t* free, size_t* total) {
  *free = *total = size_t{1} << 32;
  return CUDA_SUCCESS;
}
CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* bytes, CUdeviceptr at) {
  const auto held = hold();
  return Device::one().holds(at, 1, base, bytes) ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
CUresult cuPointerGetAttribute(void* value, CUpointer_attribute which, CUdeviceptr at) {
  const auto held = hold();
  if (which != CU_POINTER_ATTRIBUTE_MEMORY_TYPE || !Device::one().holds(at, 1)) return CUDA_ERROR_INVALID_VALUE;
  *static_cast<CUmemorytype*>(value) = CU_MEMORYTYPE_DEVICE;
  return CUDA_SUCCESS;
}
CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t bytes) {
  const auto held = hold();
  return copy_now(Device::one().holds(to, bytes), reinterpret_cast<void*>(to), from, bytes);
}
CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t bytes) {
  const auto held = hold();
  return copy_now(Device::one().holds(from, bytes), to, reinterpret_cast<void*>(from), bytes);
}
CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  const auto held = hold();
  return copy_now(Device::one().holds(to, bytes) && Device::one().holds(from, bytes), reinterpret_cast<void*>(to),
                  reinterpret_cast<void*>(from), bytes);
}
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes, CUstream s) {
  const auto held = hold();
  if (!Device::one().holds(to, bytes)) return CUDA_ERROR_INVALID_VALUE;
  const char* first = static_cast<const char*>(from);  // pageable memory is read before the call returns
  return put(s, [=, data = std::vector<char>(first, first + bytes)] { return copied(to, data.data(), bytes); });
}
CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes, CUstream s) {
  const auto held = hold();
  if (!Device::one().holds(from, bytes)) return CUDA_ERROR_INVALID_VALUE;
  return put(s, [=] { return copied(reinterpret_cast<CUdeviceptr>(to), reinterpret_cast<void*>(from), bytes); });
}
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream s) {
  const auto held = hold();
  if (!Device::one().holds(to, bytes) || !Device::one().holds(from, bytes)) return CUDA_ERROR_INVALID_VALUE;
  return put(s, [=] { return copied(to, reinterpret_cast<void*>(from), bytes); });
}
CUresult cuMemsetD8_v2(CUdeviceptr at, unsigned char value, size_t bytes) {
  const auto held = hold();
  const CUresult r = Device::one().finish_blocking();
  return r != CUDA_SUCCESS ? r : fill(at, value, bytes);
}
CUresult cuMemsetD8Async(CUdeviceptr at, unsigned char value, size_t bytes, CUstream s) {
  const auto held = hold();
  return put(s, [=] { return fill(at, value, bytes); });
}

}  // extern "C"
