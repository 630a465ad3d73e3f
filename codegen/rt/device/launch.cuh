// What a converted kernel has instead of CUDA's built-in variables and barriers. `rammerc convert` writes functions
// that take one of these as their first parameter: a Launch where all threads of a block end together, or where nobody
// waits for others; otherwise a LeavingLaunch.
#pragma once

#include "rt/device/backend.cuh"
#include "rt/device/task.cuh"

#if !defined(__CUDACC__)
#include "backend/emu/cuda_names.h"
#include "backend/emu/cuda_half.h"
#include "backend/emu/cuda_warps.h"
#endif

namespace rt {

// Converts to any pointer that a kernel takes.
struct AnyPointer {
  char* at;
  template <class T>
  RT_HOST_DEVICE operator T*() const {
    return reinterpret_cast<T*>(at);
  }
};

// A number of float64 in a member of Args.
RT_DEVICE double double_of(int64_t bits) {
  double x;
  memcpy(&x, &bits, 8);
  return x;
}

// The extents of a block.
template <int X, int Y, int Z>
struct Extents {};

// The launch of the original kernel, as one of its threads sees it. A block is an rTask; x is the innermost index, of
// blocks as of threads.
struct Launch {
  uint3 threadIdx, blockIdx;
  dim3 blockDim, gridDim;
  const Task& task;

  template <int X, int Y, int Z>
  RT_DEVICE Launch(const Task& t, int rtask, const int32_t (&grid)[3], Extents<X, Y, Z>)
      : blockDim(X, Y, Z),
        gridDim(static_cast<unsigned>(grid[0]), static_cast<unsigned>(grid[1]), static_cast<unsigned>(grid[2])),
        task(t) {
    const unsigned tid = static_cast<unsigned>(t.tid), index = static_cast<unsigned>(rtask);
    threadIdx.x = Y * Z == 1 ? tid : tid % X;
    threadIdx.y = Y == 1 ? 0 : Z == 1 ? tid / X : tid / X % Y;
    threadIdx.z = Z == 1 ? 0 : tid / (X * Y);
    blockIdx.x = index, blockIdx.y = 0, blockIdx.z = 0;
    if (gridDim.y * gridDim.z != 1) {
      blockIdx.x = index % gridDim.x;
      blockIdx.y = index / gridDim.x % gridDim.y;
      blockIdx.z = index / gridDim.x / gridDim.y;
    }
  }

  // Barriers of the threads of the block. The last three also tell how many, whether all, whether any of them have the
  // predicate.
  RT_DEVICE void syncthreads() const { task.sync(); }
  RT_DEVICE int syncthreads_count(int predicate) const {
    return detail::rtask_barrier_count(task.threads, predicate != 0);
  }
  RT_DEVICE int syncthreads_and(int predicate) const { return syncthreads_count(predicate) == task.threads; }
  RT_DEVICE int syncthreads_or(int predicate) const { return syncthreads_count(predicate) != 0; }

  // A variable of static shared memory, whose place and size are known since the kernel was converted.
  template <class T, int At, int Bytes>
  RT_DEVICE T& shared() const {
    static_assert(sizeof(T) <= Bytes, "the variable is larger than the place that it was given: see shared_bytes");
    static_assert(alignof(T) <= 16);
    return *reinterpret_cast<T*>(task.smem + At);
  }
  template <class T, int At>
  RT_DEVICE T* dynamic_shared() const {
    return reinterpret_cast<T*>(task.smem + At);
  }
};

// The launch of a kernel of which some threads end before others, or whose blocks are no multiple of a warp. On a GPU a
// thread that has ended is not waited for any more. A thread of an rTask does not end; so those that have left come to
// all barriers that are still to be, and say that they have left, until nobody is there who has not:
//
//	thread 0     works   barrier              works   barrier             leaves   barrier, barrier
//	thread 1     leaves  barrier: not all left        barrier: not all left        barrier, barrier: all left
struct LeavingLaunch : Launch {
  uint32_t here;  // the lanes of the warp that have not left
  int threads;    // of the block

  template <int X, int Y, int Z>
  RT_DEVICE LeavingLaunch(const Task& t, int rtask, const int32_t (&grid)[3], Extents<X, Y, Z> e)
      : Launch(t, rtask, grid, e), threads(X * Y * Z) {
    const int behind = threads - t.tid / 32 * 32;
    here = behind >= 32 ? 0xffffffffu : behind <= 0 ? 0u : (1u << behind) - 1;
  }

  // Whether the original kernel has this thread.
  RT_DEVICE bool starts() const { return task.tid < threads; }

  RT_DEVICE void syncthreads() const { detail::rtask_barrier_count(task.threads, false); }

  // Threads that have left say yes at each barrier; so the first one counts them, and the last one keeps them from
  // taking the second, at which all may say yes, for the end.
  RT_DEVICE int syncthreads_count(int predicate) const {
    const int left = detail::rtask_barrier_count(task.threads, false);
    const int count = detail::rtask_barrier_count(task.threads, predicate != 0);
    detail::rtask_barrier_count(task.threads, false);
    return count - left;
  }
  RT_DEVICE int syncthreads_and(int predicate) const { return syncthreads_count(predicate == 0) == 0; }
  RT_DEVICE int syncthreads_or(int predicate) const { return syncthreads_count(predicate) != 0; }

  // All lanes that are here ask it together, before those for which it is true leave.
  RT_DEVICE bool leaves(bool now) {
    here &= __ballot_sync(here, !now);
    return now;
  }
  // Those of the lanes that are still here.
  RT_DEVICE uint32_t lanes(uint32_t mask) const { return mask & here; }

  // The thread has left. Two barriers in a row at which all say so are the end.
  RT_DEVICE void leave() const {
    RT_NO_UNROLL
    for (int all = 0; all < 2;) {
      all = detail::rtask_barrier_count(task.threads, true) == task.threads ? all + 1 : 0;
    }
  }
};

}  // namespace rt
