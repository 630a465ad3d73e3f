// What a cubin says of itself. Callers of CUDA's driver interface launch its kernels without any host code of this run
// time (compile --emit cubin). The numbers that follow from how C++ lays out types are in variables of the cubin, from
// where the compiler reads them, and writes them into the launch list. Nobody reads these variables on the device.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rt/exec/executor.cuh"

#if defined(__CUDACC__)
#include "backend/cuda/entry.cuh"
#else
#include "backend/emu/entry.h"
#endif

namespace rt {

// The size of the kernels' parameter, and the offsets of its members: codegen/cubin.go has their names in this order.
struct ParameterLayout {
  uint32_t bytes;
  uint32_t steps, waits, moves, args, ranges;
  uint32_t op_args, op_words, first_step, step_stride, weights;
  uint32_t persistent, segment, launch, first_veu, cluster, shared, stages;
  uint32_t flags, tagged, max_steps, reports, bases;
  uint32_t report_bytes, line_bytes;  // of a Report, and of a line of the step array
};

template <class Program>
constexpr ParameterLayout parameter_layout() {
  using L = ArgsOf<Program>;
  return {sizeof(L),
          offsetof(L, steps),
          offsetof(L, waits),
          offsetof(L, moves),
          offsetof(L, args),
          offsetof(L, ranges),
          offsetof(L, op_args),
          offsetof(L, op_words),
          offsetof(L, first_step),
          offsetof(L, step_stride),
          offsetof(L, weights),
          offsetof(L, persistent),
          offsetof(L, segment),
          offsetof(L, launch),
          offsetof(L, first_veu),
          offsetof(L, cluster),
          offsetof(L, shared),
          offsetof(L, stages),
          offsetof(L, flags),
          offsetof(L, tagged),
          offsetof(L, max_steps),
          offsetof(L, reports),
          offsetof(L, bases),
          sizeof(Report),
          sizeof(uint64_t) * kFlagStride};
}

// What a kernel's blocks may take: threads, bytes of shared memory, and bytes of shared memory of all blocks that the
// program may have on a multiprocessor, which says how its memory is to be split between L1 cache and shared memory.
struct KernelLimits {
  uint32_t threads, shared, shared_per_sm;
};

template <class Program, class Kernel>
constexpr KernelLimits kernel_limits() {
  using Own = SharedLayout<Kernel>;
  using All = SharedLayout<Program>;
  const size_t together = All::kMostBytes * Program::kVEUsPerSM, alone = All::alone(All::kMostBytes);
  return {Own::kMostThreads, static_cast<uint32_t>(Own::alone(Own::kMostBytes)),
          static_cast<uint32_t>(together > alone ? together : alone)};
}

// How a launch is sized: the stages of its ring, and the bytes of shared memory of a block.
struct LaunchSize {
  uint32_t stages, shared;
};

// `shared` and `chunks` are those of the LaunchRow, and `alone` says that the launch both overlaps and wants its blocks
// alone on a multiprocessor.
template <class Kernel>
constexpr LaunchSize launch_size(int shared, int chunks, bool persistent, bool alone) {
  using Layout = SharedLayout<Kernel>;
  const int stages = Layout::stages(shared, chunks, persistent);
  const size_t bytes = Layout::bytes(shared, stages);
  return {static_cast<uint32_t>(stages), static_cast<uint32_t>(alone ? Layout::alone(bytes) : bytes)};
}

}  // namespace rt
