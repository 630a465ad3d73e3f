// Tensor maps, from which the copy engine learns where boxes of a matrix are, or what a filter meets of images
// (backend/cuda/boxes.cuh).
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include "rt/device/types.cuh"

namespace rt::dev {

// The driver's function of such a name, or null. It is looked up so that programs need not be linked with its library.
template <class F>
F* find_encoder([[maybe_unused]] const char* name) {
#if CUDART_VERSION >= 12050
  void* found = nullptr;
  cudaDriverEntryPointQueryResult known;
  const cudaError_t e = cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &known);
  return e == cudaSuccess ? reinterpret_cast<F*>(found) : nullptr;
#else
  return nullptr;
#endif
}

// Makes the map of a matrix, or of images, whose first element is at the given device address; `map` is aligned to 64
// bytes. False: the driver knows no tensor maps.
inline bool encode_tensor_map([[maybe_unused]] const TiledMatrix& m, [[maybe_unused]] void* first_element,
                              [[maybe_unused]] void* map) {
#if CUDART_VERSION >= 12050
  static_assert(sizeof(CUtensorMap) == kTensorMapBytes);
  const auto type = m.element_bytes == 4   ? CU_TENSOR_MAP_DATA_TYPE_TFLOAT32
                    : m.element_bytes == 2 ? CU_TENSOR_MAP_DATA_TYPE_UINT16
                                           : CU_TENSOR_MAP_DATA_TYPE_UINT8;
  if (m.width > 0) {
    static const auto encode = find_encoder<decltype(cuTensorMapEncodeIm2col)>("cuTensorMapEncodeIm2col");
    if (encode == nullptr) return false;
    const cuuint64_t extents[4] = {m.columns, m.width, m.height, m.rows};
    const cuuint64_t pitch[3] = {m.row_bytes, m.line_bytes, m.image_bytes};
    const int first[2] = {static_cast<int>(m.first_x), static_cast<int>(m.first_y)};
    const int last[2] = {
        first[0] + static_cast<int>((m.positions_w - 1) * m.stride_x) - static_cast<int>(m.width - 1),
        first[1] + static_cast<int>((m.positions_h - 1) * m.stride_y) - static_cast<int>(m.height - 1)};
    const cuuint32_t steps[4] = {1, m.stride_x, m.stride_y, 1};
    return encode(static_cast<CUtensorMap*>(map), type, 4, first_element, extents, pitch, first, last,
                  128 / m.element_bytes, m.box_rows, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                  CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
  }
  static const auto encode = find_encoder<decltype(cuTensorMapEncodeTiled)>("cuTensorMapEncodeTiled");
  if (encode == nullptr) return false;
  const cuuint64_t extents[2] = {m.columns, m.rows}, pitch[1] = {m.row_bytes};
  const cuuint32_t box[2] = {128 / m.element_bytes, m.box_rows}, steps[2] = {1, 1};
  return encode(static_cast<CUtensorMap*>(map), type, 2, first_element, extents, pitch, box, steps,
                CU_TENSOR_MAP_INTERLEAVE_NONE, m.plain ? CU_TENSOR_MAP_SWIZZLE_NONE : CU_TENSOR_MAP_SWIZZLE_128B,
                CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
#else
  return false;
#endif
}

}  // namespace rt::dev
