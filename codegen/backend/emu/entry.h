// What stands for a cubin on the emulator is a shared library. A kernel is a function that runs a whole launch, which
// whoever plays the driver calls. The cubin for GPUs is described in backend/cuda/entry.cuh.
#pragma once

#include "backend/emu/launch.h"
#include "rt/exec/executor.cuh"

#define RT_CUBIN_VARIABLE __attribute__((visibility("default"), used))

namespace rt::emu {

// Runs a launch of `grid` blocks, and returns whether it came to its end; if not, `error` says why. Blocks of a
// cooperative launch all run at once.
template <class Kernel>
bool run_entry(int grid, int threads, size_t shared, bool cooperative, int cluster, const void* parameter, char* error,
               size_t room) {
  ArgsOf<Kernel> copy = *static_cast<const ArgsOf<Kernel>*>(parameter);
  Launch l;
  l.grid = grid, l.threads = threads, l.shared = shared, l.together = cooperative, l.cluster = cluster;
  Failure f;
  const auto entry = [](void* p) { run_thread<Kernel>(*static_cast<const ArgsOf<Kernel>*>(p)); };
  if (run_launch(l, entry, &copy, &f)) return true;
  if (room > 0) std::snprintf(error, room, "%s", f.text);
  return false;
}

}  // namespace rt::emu

// Defines the function that stands for a kernel, and NAME_bytes, the size of its parameter.
#define RT_CUBIN_KERNEL(name, Kernel)                                                                            \
  RT_CUBIN_VARIABLE uint32_t name##_bytes = sizeof(rt::ArgsOf<Kernel>);                                          \
  RT_CUBIN_VARIABLE int name(int grid, int threads, size_t shared, int cooperative, int cluster,                 \
                             const void* parameter, char* error, size_t room) {                                  \
    return rt::emu::run_entry<Kernel>(grid, threads, shared, cooperative != 0, cluster, parameter, error, room); \
  }
