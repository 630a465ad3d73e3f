// How long it takes until another SM knows something, by flags, counters, tagged words and clusters. Blocks publish and
// wait with the functions of the executor (rt/exec/executor.cuh).
#pragma once

#include <cooperative_groups.h>

#include "lab.cuh"
#include "rt/device/device.cuh"

namespace edges {

using lab::kThreads;
using lab::Lab;
using lab::Samples;
using rt::detail::fence_acq_rel_gpu;
using rt::detail::load_relaxed_gpu;
using rt::detail::store_relaxed_gpu;
using rt::detail::store_release_gpu;

constexpr int kLine = 16;  // 64-bit words in a line of 128 bytes
constexpr int kSteps = 2000;
constexpr int kSlots = 16;  // the words of so many steps are kept at a time
constexpr int kMostWords = 256;

__device__ inline void publish(uint64_t* flag, uint64_t value) {
  if (threadIdx.x != blockDim.x - 32) return;
  store_release_gpu(flag, value);
}

// Waits for count flags: those of the blocks first, first + stride, first + 2·stride and so on. The first warp polls,
// the other threads of the block wait for it at a barrier.
__device__ inline void wait(const uint64_t* flags, int blocks, int first, int count, int stride, uint64_t value) {
  if (threadIdx.x < 32) {
    for (int at = 0; at < count; at += 32) {
      const int n = at + static_cast<int>(threadIdx.x);
      const uint64_t* flag = flags + (first + n * stride) % blocks * kLine;
      while (!__all_sync(0xffffffffu, n >= count || load_relaxed_gpu(flag) >= value)) {
      }
    }
    fence_acq_rel_gpu();
  }
  __syncthreads();
}

// Block 0 and the block `other` publish in turn, each after it has seen the other's flag. The other blocks do nothing
// but occupy their SMs.
__global__ void ping_pong(uint64_t* flags, int other, uint64_t epoch) {
  const int me = static_cast<int>(blockIdx.x);
  if (me != 0 && me != other) return;
  uint64_t* mine = flags + me * kLine;
  const int peer = me == 0 ? other : 0;
  for (int i = 1; i <= kSteps; ++i) {
    if (me == 0) publish(mine, epoch + i);
    wait(flags, static_cast<int>(gridDim.x), peer, 1, 1, epoch + i);
    if (me != 0) publish(mine, epoch + i);
  }
}

// The same with one thread on either side, which is the shortest that a hop can be: no barrier tells other threads.
__global__ void ping_pong_thread(uint64_t* flags, int other, uint64_t epoch) {
  const int me = static_cast<int>(blockIdx.x);
  if (threadIdx.x != 0 || (me != 0 && me != other)) return;
  uint64_t* mine = flags + me * kLine;
  const uint64_t* theirs = flags + (me == 0 ? other : 0) * kLine;
  for (int i = 1; i <= kSteps; ++i) {
    fence_acq_rel_gpu();
    if (me == 0) store_relaxed_gpu(mine, epoch + i);
    while (load_relaxed_gpu(theirs) < epoch + i) {
    }
    fence_acq_rel_gpu();
    if (me != 0) store_relaxed_gpu(mine, epoch + i);
  }
}

// One sample for each of several partners of block 0, which lie on SMs from near to far.
template <class Kernel>
Samples hops(Lab& l, Kernel kernel) {
  uint64_t* flags = l.zeroed<uint64_t>(static_cast<size_t>(l.sms()) * kLine);
  uint64_t epoch = 0;
  int run = 0;
  return l.times(2.0 * kSteps, [&] {
    const int other = 1 + run++ * (l.sms() - 1) / (lab::kRuns + lab::kWarmUp);
    // The flags of both blocks must be smaller than the new epoch, whichever partners they had before.
    l.resident(kernel, l.sms(), kThreads, flags, other, epoch);
    epoch += kSteps;
  });
}

inline Samples hop(Lab& l) { return hops(l, ping_pong); }
inline Samples hop_thread(Lab& l) { return hops(l, ping_pong_thread); }

__global__ void wait_many(uint64_t* flags, int count, int stride, uint64_t epoch) {
  const int me = static_cast<int>(blockIdx.x), blocks = static_cast<int>(gridDim.x);
  for (int i = 1; i <= kSteps; ++i) {
    publish(flags + me * kLine, epoch + i);
    wait(flags, blocks, me + 1, count, stride, epoch + i);
  }
}

// In every step, every SM waits for Count other SMs that are spread over the device, or for all if Count is 0.
template <int Count>
Samples waits(Lab& l) {
  uint64_t* flags = l.zeroed<uint64_t>(static_cast<size_t>(l.sms()) * kLine);
  uint64_t epoch = 0;
  const int count = Count == 0 ? l.sms() : std::min(Count, l.sms());
  return l.times(kSteps, [&] {
    l.resident(wait_many, l.sms(), kThreads, flags, count, std::max(1, l.sms() / count), epoch);
    epoch += kSteps;
  });
}

// A barrier of all SMs in which every thread of a block polls the flag of another SM.
__global__ void barrier_wide(uint64_t* flags, uint64_t epoch) {
  for (int i = 1; i <= kSteps; ++i) {
    publish(flags + blockIdx.x * kLine, epoch + i);
    for (unsigned n = threadIdx.x; n < gridDim.x; n += blockDim.x) {
      while (load_relaxed_gpu(flags + n * kLine) < epoch + i) {
      }
    }
    if (threadIdx.x < gridDim.x) fence_acq_rel_gpu();
    __syncthreads();
  }
}

inline Samples barrier_steps(Lab& l) {
  uint64_t* flags = l.zeroed<uint64_t>(static_cast<size_t>(l.sms()) * kLine);
  uint64_t epoch = 0;
  return l.times(kSteps, [&] {
    l.resident(barrier_wide, l.sms(), kThreads, flags, epoch);
    epoch += kSteps;
  });
}

// Neighbouring blocks form groups. The blocks of a group add to one counter and wait until all of them have added.
__global__ void count_up(unsigned long long* counters, int group, uint64_t launches) {
  const int region = static_cast<int>(blockIdx.x) / group;
  const int members = min(group, static_cast<int>(gridDim.x) - region * group);
  unsigned long long* counter = counters + region * kLine;
  const uint64_t before = launches * kSteps * members;
  for (int i = 1; i <= kSteps; ++i) {
    if (threadIdx.x == blockDim.x - 32) {
      fence_acq_rel_gpu();
      atomicAdd(counter, 1ull);
    }
    if (threadIdx.x == 0) {
      const uint64_t target = before + static_cast<uint64_t>(i) * members;
      while (load_relaxed_gpu(reinterpret_cast<uint64_t*>(counter)) < target) {
      }
      fence_acq_rel_gpu();
    }
    __syncthreads();
  }
}

template <int Group>
Samples counters(Lab& l) {
  unsigned long long* words = l.zeroed<unsigned long long>(static_cast<size_t>(l.sms()) * kLine);
  uint64_t launches = 0;
  return l.times(kSteps, [&] {
    l.resident(count_up, l.sms(), kThreads, words, Group == 0 ? l.sms() : Group, launches);
    ++launches;
  });
}

__global__ void barrier_grid() {
  const auto grid = cooperative_groups::this_grid();
  for (int i = 0; i < kSteps; ++i) grid.sync();
}

inline Samples barrier_groups(Lab& l) {
  return l.times(kSteps, [&] { l.resident(barrier_grid, l.sms(), kThreads); });
}

// In every step, every block takes count tagged words of the step before, from blocks that are spread over the device,
// and writes as many. It takes a word with the tag of the step or of a later one, because a block may be more than
// kSlots steps ahead of another and overwrite words early. That is right here: time is measured, not values.
__global__ void tagged_words(uint64_t* words, const float* values, int count, uint32_t epoch) {
  const int blocks = static_cast<int>(gridDim.x), me = static_cast<int>(blockIdx.x),
            tid = static_cast<int>(threadIdx.x);
  float v = values[me * kMostWords + tid];
  for (int i = 0; i < kSteps; ++i) {
    const uint32_t tag = epoch + static_cast<uint32_t>(i);
    uint64_t* to = words + (static_cast<size_t>(tag % kSlots) * blocks + me) * kMostWords;
    if (tid < count) {
      store_relaxed_gpu(to + tid, (static_cast<uint64_t>(tag) << 32) | __float_as_uint(v));
      const int from = (me + 1 + tid * 8) % blocks;
      const uint64_t* word = words + (static_cast<size_t>(tag % kSlots) * blocks + from) * kMostWords + tid;
      uint64_t seen = load_relaxed_gpu(word);
      while (static_cast<int32_t>(static_cast<uint32_t>(seen >> 32) - tag) < 0) seen = load_relaxed_gpu(word);
      v = 0.5f * (v + __uint_as_float(static_cast<uint32_t>(seen)));
    }
    __syncthreads();
  }
}

template <int Count>
Samples tagged(Lab& l) {
  uint64_t* words = l.zeroed<uint64_t>(static_cast<size_t>(l.sms()) * kSlots * kMostWords);
  float* values = l.random(static_cast<size_t>(l.sms()) * kMostWords);
  uint32_t epoch = 1;
  return l.times(kSteps, [&] {
    l.resident(tagged_words, l.sms(), kThreads, words, values, Count, epoch);
    epoch += kSteps;
  });
}

// In every step, each thread reads one value from the shared memory of every block of its cluster, and writes a value
// of its own for the next step.
template <int Size>
__global__ void cluster_steps(const float* values, float* out) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  const auto cluster = cooperative_groups::this_cluster();
  __shared__ float held[2][kThreads];
  float v = values[blockIdx.x * kThreads + threadIdx.x];
  held[0][threadIdx.x] = v;
  cluster.sync();
  for (int i = 0; i < kSteps; ++i) {
    v = 0;
#pragma unroll
    for (unsigned j = 0; j < Size; ++j) {
      v += cluster.map_shared_rank(held[i & 1], (cluster.block_rank() + j) % Size)[threadIdx.x];
    }
    held[(i + 1) & 1][threadIdx.x] = v * (1.0f / Size);
    cluster.sync();
  }
  out[blockIdx.x * kThreads + threadIdx.x] = v;
#endif
}

// The number of clusters that the device holds at once, if each block asks for that much shared memory; 0 if it has no
// clusters of that size.
template <int Size>
int fitting_clusters(const Lab& l, size_t shared) {
  LAB_CHECK(
      cudaFuncSetAttribute(cluster_steps<Size>, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared)));
  if (Size > 8) LAB_CHECK(cudaFuncSetAttribute(cluster_steps<Size>, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
  cudaLaunchAttribute a = {};
  const cudaLaunchConfig_t c = l.config(Size, kThreads, shared, &a, cudaLaunchAttributeClusterDimension, Size);
  int n = 0;
  if (cudaOccupancyMaxActiveClusters(&n, cluster_steps<Size>, &c) == cudaSuccess) return n;
  cudaGetLastError();
  return 0;
}

template <int Size>
Samples cluster(Lab& l) {
  const int clusters = std::max(1, fitting_clusters<Size>(l, l.alone()));
  const size_t count = static_cast<size_t>(clusters) * Size * kThreads;
  float *values = l.random(count), *out = l.zeroed<float>(count);
  return l.times(kSteps, [&] {
    l.launch(cluster_steps<Size>, clusters * Size, kThreads, l.alone(), cudaLaunchAttributeClusterDimension, Size,
             values, out);
  });
}

}  // namespace edges
