// Matrix products of a warp, and of a warp group, for rKernels: the primitives of the same names
// (codegen/backend/primitives.cuh has their contracts and the layout of fragments).
#pragma once

#include "rt/device/device.cuh"

namespace rt {

RT_DEVICE uint32_t to_tf32(float x) { return detail::to_tf32(x); }
RT_DEVICE void load_fragments(uint32_t (&r)[4], const void* row) { detail::load_fragments(r, row); }
RT_DEVICE void load_fragments_across(uint32_t (&r)[4], const void* row) { detail::load_fragments_across(r, row); }
RT_DEVICE void mma_tf32(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) { detail::mma_tf32(d, a, b); }
RT_DEVICE void mma_f16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) { detail::mma_f16(d, a, b); }
RT_DEVICE void mma_bf16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) { detail::mma_bf16(d, a, b); }
template <bool SignedA, bool SignedB>
RT_DEVICE void mma_int8(int32_t (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  detail::mma_int8<SignedA, SignedB>(d, a, b);
}

// Whether the predicate holds in every lane.
RT_DEVICE bool all_lanes(bool predicate) { return detail::all_lanes(predicate); }
// The largest of what the four lanes have that share a row of a fragment.
RT_DEVICE float row_maximum(float x) {
  x = fmaxf(x, detail::shfl_xor(x, 1));
  return fmaxf(x, detail::shfl_xor(x, 2));
}

// A place of an operand in shared memory, to which a pointer converts. One that is the same in all lanes of a warp is
// best known to be so: then compilers make the descriptors of matrices without moving them from registers of lanes.
using OperandPlace = detail::OperandPlace;
RT_DEVICE OperandPlace operand_in_warp(OperandPlace p) { return detail::operand_in_warp(p); }
// Of a warp group of the running rTask; multiplied() returns when all products that it has begun are in d.
RT_DEVICE void group_barrier(const Task&, int group, int groups = 1) { detail::group_barrier(group, groups); }
RT_DEVICE void groups_barrier(const Task&, int threads) { detail::groups_barrier(threads); }
RT_DEVICE void multiply_begin() { detail::multiply_begin(); }
RT_DEVICE void multiply_end() { detail::multiply_end(); }
template <int N>
RT_DEVICE void multiply_tf32(float (&d)[N / 2], const uint32_t (&a)[4], OperandPlace b, int pitch, bool add) {
  detail::multiply_tf32<N>(d, a, b, pitch, add);
}
template <int N>
RT_DEVICE void multiply_f16(float (&d)[N / 2], const uint32_t (&a)[4], OperandPlace b, int pitch, bool add) {
  detail::multiply_f16<N>(d, a, b, pitch, add);
}
template <int N>
RT_DEVICE void multiply_bf16(float (&d)[N / 2], const uint32_t (&a)[4], OperandPlace b, int pitch, bool add) {
  detail::multiply_bf16<N>(d, a, b, pitch, add);
}
template <int N, bool SignedA, bool SignedB>
RT_DEVICE void multiply_int8(int32_t (&d)[N / 2], const uint32_t (&a)[4], OperandPlace b, int pitch, bool add) {
  detail::multiply_int8<N, SignedA, SignedB>(d, a, b, pitch, add);
}
template <int N>
RT_DEVICE void multiply_f16_swizzled(float (&d)[N / 2], OperandPlace a, OperandPlace b, int pitch, bool add) {
  detail::multiply_f16_swizzled<N>(d, a, b, pitch, add);
}
template <int N>
RT_DEVICE void multiply_bf16_swizzled(float (&d)[N / 2], OperandPlace a, OperandPlace b, int pitch, bool add) {
  detail::multiply_bf16_swizzled<N>(d, a, b, pitch, add);
}
template <int N>
RT_DEVICE void multiply_f16_columns(float (&d)[N / 2], OperandPlace a, OperandPlace b, bool add) {
  detail::multiply_f16_columns<N>(d, a, b, add);
}
template <int N>
RT_DEVICE void multiply_f16_depths(float (&d)[N / 2], const uint32_t (&a)[4], OperandPlace b, int pitch, bool add) {
  detail::multiply_f16_depths<N>(d, a, b, pitch, add);
}
template <int N>
RT_DEVICE void multiply_bf16_columns(float (&d)[N / 2], OperandPlace a, OperandPlace b, bool add) {
  detail::multiply_bf16_columns<N>(d, a, b, add);
}
template <int N>
RT_DEVICE void multiply_bf16_depths(float (&d)[N / 2], const uint32_t (&a)[4], OperandPlace b, int pitch, bool add) {
  detail::multiply_bf16_depths<N>(d, a, b, pitch, add);
}
// Shared memory from the next multiple of so many bytes on.
template <int Bytes>
RT_DEVICE char* aligned_shared(char* p) {
  return p + (Bytes - detail::shared_address(p) % Bytes) % Bytes;
}
template <int N>
RT_DEVICE void multiply_tf32_swizzled(float (&d)[N / 2], OperandPlace a, OperandPlace b, int pitch, bool add) {
  detail::multiply_tf32_swizzled<N>(d, a, b, pitch, add);
}
template <int N, bool SignedA, bool SignedB>
RT_DEVICE void multiply_int8_swizzled(int32_t (&d)[N / 2], OperandPlace a, OperandPlace b, int pitch, bool add) {
  detail::multiply_int8_swizzled<N, SignedA, SignedB>(d, a, b, pitch, add);
}
RT_DEVICE void operands_written() { detail::operands_written(); }
template <class Sum, int M>
RT_DEVICE void multiplied(Sum (&d)[M]) {
  detail::multiplied(d);
}
template <int Groups>
RT_DEVICE void multiplied_but() {
  detail::multiplied_but<Groups>();
}
template <int Groups, int M>
RT_DEVICE void multiplied_but(float (&d)[M]) {
  detail::multiplied_but<Groups>(d);
}

}  // namespace rt
