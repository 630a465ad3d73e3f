// Types that host and device share, and how functions of the device are declared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "rt/schema/memory.cuh"
#include "rt/schema/tables.cuh"

#if defined(__CUDACC__)
#define RT_DEVICE __device__ __forceinline__
#define RT_HOST_DEVICE __host__ __device__ __forceinline__
#define RT_NOINLINE_DEVICE [[maybe_unused]] __device__ __noinline__
#define RT_UNROLL _Pragma("unroll")
#define RT_NO_UNROLL _Pragma("unroll 1")
#else
#define RT_DEVICE inline
#define RT_HOST_DEVICE inline
#define RT_NOINLINE_DEVICE inline
#define RT_UNROLL
#define RT_NO_UNROLL
#endif

namespace rt {

// A reference to bytes of a buffer: an address space in the top 8 bits, below them a byte offset in it. Addresses are
// not known when a program is compiled; Task::bases has that of each space.
struct Ref {
  uint64_t bits;
};

constexpr uint64_t kRefOffsetMask = (uint64_t{1} << kSpaceShift) - 1;

#define RT_REF(space, offset) ((static_cast<uint64_t>(space) << rt::kSpaceShift) | static_cast<uint64_t>(offset))
#define RT_ARENA(offset) RT_REF(rt::kArenaSpace, offset)
#define RT_WEIGHTS(offset) RT_REF(rt::kWeightsSpace, offset)

// An operand seen as [i0][i1][i2], with strides in elements. Along a dim of stride 0 the same elements are repeated.
struct Operand3 {
  Ref ref;
  int64_t s0, s1, s2;
};

struct alignas(16) float4v {
  float x, y, z, w;
};

// A word of the Args that is another one in each run of a program that repeats: first + run · step, at `at` bytes.
struct Patch {
  uint32_t at, first, step;
};

// What happens behind a run of a program that repeats, where launches follow each other: `count` patches are written
// into the Args for the next run, whose number is one more than the one at `run`, or for the first run of the next
// inference, whose number is 0. Another run follows if the bool is true.
struct Turn {
  const uint8_t* again;
  char* args;
  const Patch* patches;
  uint32_t count;
  uint32_t* run;
};

}  // namespace rt
