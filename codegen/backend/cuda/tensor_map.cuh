// Tensor maps, from which the copy engine learns where boxes of a matrix are (backend/cuda/boxes.cuh).
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include "rt/device/types.cuh"

namespace rt::dev {

// Makes the map of a matrix whose first element is at `first`, a device address; `map` is aligned to 64 bytes. False:
// the driver knows no tensor maps. Its function is looked up by name, so that programs need not be linked with its
// library.
inline bool encode_tensor_map([[maybe_unused]] const TiledMatrix& m, [[maybe_unused]] void* first,
                              [[maybe_unused]] void* map) {
#if CUDART_VERSION >= 12050
  static_assert(sizeof(CUtensorMap) == kTensorMapBytes);
  static const auto encode = [] {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult known;
    const cudaError_t e =
        cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &known);
    return e == cudaSuccess ? reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(found) : nullptr;
  }();
  if (encode == nullptr) return false;
  const cuuint64_t extents[2] = {m.columns, m.rows}, pitch[1] = {m.row_bytes};
  const cuuint32_t box[2] = {128 / m.element_bytes, m.box_rows}, steps[2] = {1, 1};
  const auto type = m.element_bytes == 4 ? CU_TENSOR_MAP_DATA_TYPE_TFLOAT32 : CU_TENSOR_MAP_DATA_TYPE_UINT16;
  return encode(static_cast<CUtensorMap*>(map), type, 2, first, extents, pitch, box, steps,
                CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
#else
  return false;
#endif
}

}  // namespace rt::dev
