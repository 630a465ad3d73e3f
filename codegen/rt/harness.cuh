// Runs all rTasks of one rKernel by themselves, for tests and measurements of rKernels: on the GPU under
// nvcc, otherwise on the emulator.
#pragma once

#include <cstdio>

#include "rt/device.cuh"

#if !defined(__CUDACC__)
#include "cudaemu/launch.h"
#endif

namespace rt::harness {

constexpr int kSpaces = 32;

struct Bases {
  char* at[kSpaces];
};

struct Result {
  bool ok = true;
  char error[256] = "";
};

#if defined(__CUDACC__)

template <class K>
__global__ void __launch_bounds__(K::kThreads) run_one(typename K::Args args, Bases bases) {
  const Task t{static_cast<int>(threadIdx.x), detail::shared_base(), bases.at, K::kThreads};
  K::compute_rtask(t, args, static_cast<int>(blockIdx.x));
}

// bases.at[s] is the device address of space s. The rTasks are independent, so one launch runs them all.
template <class K>
Result run(const typename K::Args& args, int rtasks, const Bases& bases, uint64_t = 1) {
  Result r;
  cudaError_t e = cudaFuncSetAttribute(run_one<K>, cudaFuncAttributeMaxDynamicSharedMemorySize, K::kShared);
  if (e == cudaSuccess) {
    run_one<K><<<rtasks, K::kThreads, K::kShared>>>(args, bases);
    e = cudaGetLastError();
  }
  if (e == cudaSuccess) e = cudaDeviceSynchronize();
  if (e != cudaSuccess) {
    r.ok = false;
    std::snprintf(r.error, sizeof r.error, "%s", cudaGetErrorString(e));
  }
  return r;
}

#else

template <class K>
struct Job {
  typename K::Args args;
  Bases bases;
};

template <class K>
void run_one(void* p) {
  Job<K>& job = *static_cast<Job<K>*>(p);
  char* smem = detail::shared_base();
  const int tid = detail::thread_index();
  for (int i = tid; i < K::kShared; i += K::kThreads) smem[i] = static_cast<char>(0xFF);  // contents are undefined
  detail::block_barrier();
  const Task t{tid, smem, job.bases.at, K::kThreads};
  K::compute_rtask(t, job.args, detail::block_index());
}

// bases.at[s] is the address of space s; seed draws the order of threads.
template <class K>
Result run(const typename K::Args& args, int rtasks, const Bases& bases, uint64_t seed = 1) {
  Result r;
  Job<K> job{args, bases};
  emu::Launch l;
  l.grid = rtasks, l.threads = K::kThreads, l.shared = K::kShared, l.seed = seed;
  emu::Failure f;
  r.ok = emu::run_launch(l, run_one<K>, &job, &f);
  if (!r.ok) std::snprintf(r.error, sizeof r.error, "%s", f.text);
  return r;
}

#endif

}  // namespace rt::harness
