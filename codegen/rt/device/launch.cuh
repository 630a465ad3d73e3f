// What a converted kernel has instead of CUDA's built-in variables and barriers. `rammerc convert` writes functions
// that take one of these as their first parameter: a Launch where all threads of a block end together, or where nobody
// waits for others; otherwise a LeavingLaunch.
#pragma once

#include "rt/device/backend.cuh"
#include "rt/device/div.cuh"
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
  char* smem;  // of the rTask, found out once

  template <int X, int Y, int Z, int Dims>
  RT_DEVICE Launch(const Task& t, int rtask, const Div (&grid)[Dims], Extents<X, Y, Z>)
      : blockDim(X, Y, Z), task(t), smem(detail::settled_shared(t.smem)) {
    const unsigned tid = static_cast<unsigned>(t.tid), index = static_cast<unsigned>(rtask);
    threadIdx.x = Y * Z == 1 ? tid : tid % X;
    threadIdx.y = Y == 1 ? 0 : Z == 1 ? tid / X : tid / X % Y;
    threadIdx.z = Z == 1 ? 0 : tid / (X * Y);
    gridDim = dim3(grid[0].d);
    blockIdx.x = index, blockIdx.y = 0, blockIdx.z = 0;
    if constexpr (Dims > 1) {
      gridDim.y = grid[1].d;
      blockIdx.y = static_cast<unsigned>(grid[0].quotient(rtask));
      blockIdx.x = index - blockIdx.y * gridDim.x;
    }
    if constexpr (Dims > 2) {
      const unsigned row = blockIdx.y;
      gridDim.z = grid[2].d;
      blockIdx.z = static_cast<unsigned>(grid[1].quotient(static_cast<int>(row)));
      blockIdx.y = row - blockIdx.z * gridDim.y;
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

  // An element of what the original kernel promises that nobody writes during its launch, by a parameter that is const
  // and __restrict__. Where that is so here too, the compiler may load it before a barrier that it stands behind.
  template <class T>
  RT_DEVICE T constant(const T& x) const {
    return task.alone ? detail::ld_const(&x) : x;
  }

  // A variable of static shared memory, whose place and size are known since the kernel was converted.
  template <class T, int At, int Bytes>
  RT_DEVICE T& shared() const {
    static_assert(sizeof(T) <= Bytes, "the variable is larger than the place that it was given: see shared_bytes");
    static_assert(alignof(T) <= 16);
    return *reinterpret_cast<T*>(smem + At);
  }
  template <class T, int At>
  RT_DEVICE T* dynamic_shared() const {
    return reinterpret_cast<T*>(smem + At);
  }
};

// The launch of a kernel of which some threads end before others, or whose blocks are no multiple of a warp. On a GPU a
// thread that has ended is not waited for any more. So it is here where the rTask has its block for itself. Elsewhere a
// thread of an rTask does not end; so those that have left come to all barriers that are still to be, until nobody is
// there who has not left. How many have left is in two words of shared memory: threads add themselves to one between an
// even and an odd barrier, to the other one between an odd and an even barrier. So one of the two stands still, and all
// who have left read the same.
//
//	              barrier 1           barrier 2                barrier 3
//	thread 0      ─┼─ works          ─┼─ leaves: left[0] += 1 ─┼─ left[0] + left[1] is 2: the end
//	thread 1      ─┼─ left[1] += 1   ─┼─ reads left[1]        ─┼─ reads left[0]: the end
//
// With kCounts there are barriers that count predicates, and a barrier of the hardware either counts for all or for
// nobody.
template <int kLeft, bool kCounts>
struct LeavingLaunch : Launch {
  uint32_t here;     // the lanes of the warp that have not left
  int threads;       // of the block
  unsigned met = 0;  // barriers that the thread has come to
  bool gone = false;

  template <int X, int Y, int Z, int Dims>
  RT_DEVICE LeavingLaunch(const Task& t, int rtask, const Div (&grid)[Dims], Extents<X, Y, Z> e)
      : Launch(t, rtask, grid, e), threads(X * Y * Z) {
    const int behind = threads - t.tid / 32 * 32;
    here = X * Y * Z % 32 == 0 || behind >= 32 ? 0xffffffffu : behind <= 0 ? 0u : (1u << behind) - 1;
    if (!t.alone && t.tid < 2) left()[t.tid] = 0;  // nobody adds anything before barrier 1
  }

  // Whether the original kernel has this thread.
  RT_DEVICE bool starts() const { return task.tid < threads; }

  RT_DEVICE void syncthreads() {
    if (task.alone) return detail::remaining_barrier();
    meet(false);
  }
  RT_DEVICE int syncthreads_count(int predicate) { return meet(predicate != 0); }
  RT_DEVICE int syncthreads_and(int predicate) { return meet(predicate == 0) == 0; }
  RT_DEVICE int syncthreads_or(int predicate) { return meet(predicate != 0) != 0; }

  // All lanes that are here ask it together, before those for which it is true leave.
  RT_DEVICE bool leaves(bool now) {
    here &= __ballot_sync(here, !now);
    return now;
  }
  // Those of the lanes that are still here.
  RT_DEVICE uint32_t lanes(uint32_t mask) const { return mask & here; }

  // The thread leaves, if it has not left.
  RT_DEVICE void leave() {
    if (task.alone || gone) return;
    gone = true;
    if (met == 0) meet(false);
    ::atomicAdd(const_cast<int*>(left() + met % 2), 1);
    int before = left()[(met + 1) % 2];
    RT_NO_UNROLL
    for (bool all = false; !all;) {
      volatile const int* now = left() + met % 2;
      meet(false);
      const int more = *now;
      all = before + more == task.threads;
      before = more;
    }
  }

 private:
  RT_DEVICE volatile int* left() const { return reinterpret_cast<volatile int*>(smem + kLeft); }

  // How many have the predicate, if barriers count.
  RT_DEVICE int meet(bool predicate) {
    if (task.alone) return detail::remaining_barrier_count(predicate);
    ++met;
    if constexpr (kCounts) return detail::rtask_barrier_count_apart(task.threads, predicate);
    detail::rtask_barrier_apart(task.threads);
    return 0;
  }
};

}  // namespace rt
