// A step of eight blocks in a cluster in which each block needs the values of all. It is measured with several ways in
// which blocks can give each other their values; the executor's way was chosen from them. What the blocks compute is
// the same as in nodes::group.
#pragma once

#include <cuda/ptx>

#include "lab.cuh"
#include "nodes.cuh"

namespace clusters {

using lab::Lab;
using lab::Samples;

constexpr int kRanks = 8, kThreads = nodes::kValues / 2;  // each thread has two values
constexpr size_t kShared = 120 << 10;                     // so much that an SM holds one block
constexpr int kShort = 200, kLong = 1000;

enum class Way {
  kPull,       // into one's own shared memory, then a barrier of the cluster, then loads from
               // the others'
  kPush,       // stores into the others' shared memory, then a barrier of the cluster
  kPoll,       // the same without a barrier: readers see from a word itself whether it has come
  kAsync,      // st.async; an mbarrier for each warp counts the bytes
  kAsyncMeet,  // the same, and all warps of a block meet before they send results
  kBulk,       // bulk copies of a warp's row; an mbarrier for each warp
};

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
namespace ptx = cuda::ptx;

constexpr uint32_t kEmpty = 0xffffffff;

struct Pair {
  uint32_t v[2];
};

__device__ inline uint32_t shared_address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }
__device__ inline uint32_t at_rank(const void* p, uint32_t rank) {
  uint32_t to;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(to) : "r"(shared_address(p)), "r"(rank));
  return to;
}
__device__ inline void meet() {
  asm volatile(
      "barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster."
      "wait.acquire.aligned;" ::
          : "memory");
}
__device__ inline Pair load(uint32_t at) {
  Pair p;
  asm volatile("ld.relaxed.cluster.shared::cluster.v2.u32 {%0, %1}, [%2];"
               : "=r"(p.v[0]), "=r"(p.v[1])
               : "r"(at)
               : "memory");
  return p;
}
__device__ inline void store(uint32_t at, Pair p) {
  asm volatile("st.relaxed.cluster.shared::cluster.v2.u32 [%0], {%1, %2};" ::"r"(at), "r"(p.v[0]), "r"(p.v[1])
               : "memory");
}
__device__ inline void store_async(uint32_t at, Pair p, uint32_t bar) {
  asm volatile(
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.u32 "
      "[%0], {%1, %2}, [%3];" ::"r"(at),
      "r"(p.v[0]), "r"(p.v[1]), "r"(bar)
      : "memory");
}
__device__ inline void copy(uint32_t to, const void* from, uint32_t bytes, uint32_t bar) {
  asm volatile(
      "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_"
      "tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
      "r"(shared_address(from)), "r"(bytes), "r"(bar)
      : "memory");
}
#endif

template <Way W>
__global__ void __launch_bounds__(kThreads) steps(const float* first, const float* fed, float* out, int count) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  constexpr bool kCounts = W == Way::kAsync || W == Way::kAsyncMeet || W == Way::kBulk;
  constexpr uint32_t kWarpBytes = kRanks * 64 * sizeof(float);
  __shared__ __align__(128) uint32_t slots[2][kRanks][nodes::kValues];
  __shared__ __align__(128) uint32_t own[2][nodes::kValues];
  __shared__ uint64_t bars[2][kThreads / 32];
  const uint32_t rank = blockIdx.x, tid = threadIdx.x, warp = tid / 32, lane = tid % 32, e = 2 * tid;
  for (uint32_t i = tid; i < 2 * kRanks * nodes::kValues; i += kThreads) (&slots[0][0][0])[i] = kEmpty;
  if (lane == 0) {
    for (auto& bar : bars) {
      ptx::mbarrier_init(&bar[warp], 1);
      if constexpr (kCounts)
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &bar[warp], kWarpBytes);
    }
  }
  ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  meet();
  float x[2] = {first[rank * nodes::kValues + e], first[rank * nodes::kValues + e + 1]};
  float2 f;
  const auto give = [&](int s) {  // gives the others what they take in step s
    const int b = s & 1;
    const Pair p{{__float_as_uint(x[0]), __float_as_uint(x[1])}};
    if constexpr (W == Way::kPull || W == Way::kBulk) store(shared_address(&own[b][e]), p);
    if constexpr (W == Way::kBulk) {
      ptx::fence_proxy_async(ptx::space_shared);
      __syncwarp();
      if (lane < kRanks)
        copy(at_rank(&slots[b][rank][64 * warp], lane), &own[b][64 * warp], kWarpBytes / kRanks,
             at_rank(&bars[b][warp], lane));
    } else if constexpr (W != Way::kPull) {
#pragma unroll
      for (uint32_t k = 0; k < kRanks; ++k) {
        const uint32_t r = (rank + k) % kRanks, to = at_rank(&slots[b][rank][e], r);
        if constexpr (kCounts) {
          store_async(to, p, at_rank(&bars[b][warp], r));
        } else {
          store(to, p);
        }
      }
    }
    f = __ldg(reinterpret_cast<const float2*>(fed + (static_cast<size_t>(s) * kRanks + rank) * nodes::kValues + e));
  };
  give(0);
  for (int s = 0; s < count; ++s) {
    const int b = s & 1;
    Pair p[kRanks];
    if constexpr (W == Way::kPull || W == Way::kPush) meet();
    if constexpr (kCounts) {
      while (!ptx::mbarrier_try_wait_parity(&bars[b][warp], s / 2 & 1)) {
      }
      if (lane == 0)
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &bars[b][warp], kWarpBytes);
      __syncwarp();
    }
    for (uint32_t most = kEmpty; most == kEmpty;) {
      most = 0;
#pragma unroll
      for (uint32_t k = 0; k < kRanks; ++k) {
        p[k] = load(W == Way::kPull ? at_rank(&own[b][e], (rank + k) % kRanks) : shared_address(&slots[b][k][e]));
        if constexpr (W == Way::kPoll) most = max(most, max(p[k].v[0], p[k].v[1]));
      }
    }
    if constexpr (W == Way::kPoll) {
      for (auto& row : slots[b]) store(shared_address(&row[e]), {{kEmpty, kEmpty}});
    }
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float sum = h == 0 ? f.x : f.y;
#pragma unroll
      for (int k = 0; k < kRanks; ++k) sum += __uint_as_float(p[k].v[h]);
      x[h] = sum * (1.0f / 9);
    }
    if constexpr (W == Way::kAsyncMeet) __syncthreads();
    if (s + 1 < count) give(s + 1);
  }
  out[rank * nodes::kValues + e] = x[0], out[rank * nodes::kValues + e + 1] = x[1];
  meet();
#endif
}

// The time of a step in nanoseconds, from the difference between launches with many and with few steps.
template <Way W>
Samples step(Lab& l) {
  constexpr size_t kCount = kRanks * nodes::kValues;
  float *first = l.random(kCount), *fed = l.random(kCount * kLong), *out = l.zeroed<float>(kCount);
  const auto go = [&](int n) {
    l.launch(steps<W>, kRanks, kThreads, kShared, cudaLaunchAttributeClusterDimension, kRanks, first, fed, out, n);
  };
  std::vector<float> start(kCount), brought(kCount * kShort), got(kCount);
  LAB_CHECK(cudaMemcpy(start.data(), first, kCount * sizeof(float), cudaMemcpyDeviceToHost));
  LAB_CHECK(cudaMemcpy(brought.data(), fed, brought.size() * sizeof(float), cudaMemcpyDeviceToHost));
  go(kShort);
  LAB_CHECK(cudaStreamSynchronize(l.stream()));
  LAB_CHECK(cudaMemcpy(got.data(), out, kCount * sizeof(float), cudaMemcpyDeviceToHost));
  std::vector<double> now(start.begin(), start.end()), next(kCount);
  for (int s = 0; s < kShort; ++s, now.swap(next)) {
    for (size_t n = 0; n < kCount; ++n) {
      next[n] = nodes::expected(nodes::group, now, brought.data() + kCount * s, kRanks, nodes::kValues,
                                static_cast<int>(n) / nodes::kValues, static_cast<int>(n) % nodes::kValues);
    }
  }
  for (size_t n = 0; n < kCount; ++n) {
    if (fabs(got[n] - now[n]) < 1e-5) continue;
    std::fprintf(stderr, "a step in a cluster computes %g where %g is right\n", got[n], now[n]);
    std::exit(1);
  }
  const Samples a = l.times(1, [&] { go(kShort); }), b = l.times(1, [&] { go(kLong); });
  Samples s;
  for (size_t i = 0; i < a.size(); ++i) s.push_back((b[i] - a[i]) / (kLong - kShort));
  return s;
}

}  // namespace clusters
