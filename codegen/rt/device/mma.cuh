// Matrix products of a warp for rKernels: the primitives of the same names (codegen/backend/primitives.cuh has their
// contracts and the layout of fragments).
#pragma once

#include "rt/device/device.cuh"

namespace rt {

RT_DEVICE uint32_t to_tf32(float x) { return detail::to_tf32(x); }
RT_DEVICE void load_fragments(uint32_t (&r)[4], const void* row) { detail::load_fragments(r, row); }
RT_DEVICE void load_fragments_across(uint32_t (&r)[4], const void* row) { detail::load_fragments_across(r, row); }
RT_DEVICE void mma_tf32(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) { detail::mma_tf32(d, a, b); }
RT_DEVICE void mma_f16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) { detail::mma_f16(d, a, b); }
RT_DEVICE void mma_bf16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) { detail::mma_bf16(d, a, b); }

}  // namespace rt
