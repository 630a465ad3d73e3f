// The latencies of memory, the bandwidth of shared memory, and the rate of fp32 arithmetic.
#pragma once

#include "edges.cuh"
#include "lab.cuh"

namespace memory {

using lab::kThreads;
using lab::Lab;
using lab::Samples;

constexpr int kWide = 1024;  // threads of a block that is to keep an SM busy

// A chain of loads, each of which says where to load next. The loads bypass the first-level cache. A launch begins
// where the one before it stopped, so in a buffer larger than L2 it loads lines that are not in L2.
__global__ void chase(const uint32_t* next, int steps, uint32_t* place) {
  uint32_t at = *place;
  for (int i = 0; i < steps; ++i) at = __ldcg(next + at);
  *place = at;
}

// Makes a chain that visits every line of a buffer once before it comes back, in the order of a linear congruential
// generator of full period.
__global__ void make_chain(uint32_t* next, uint32_t lines) {
  constexpr uint32_t kWords = 32;  // of 32 bits in a line of 128 bytes
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < lines; i += gridDim.x * blockDim.x) {
    next[i * kWords] = ((i * 1664525u + 1013904223u) & (lines - 1)) * kWords;
  }
}

// The time of one load in a chain through so many lines, which must be a power of two.
inline Samples chased(Lab& l, uint32_t lines, int steps) {
  uint32_t *next = l.zeroed<uint32_t>(size_t{lines} * 32), *place = l.zeroed<uint32_t>(1);
  make_chain<<<l.sms() * 4, kThreads, 0, l.stream()>>>(next, lines);
  LAB_CHECK(cudaGetLastError());
  Samples s = l.times(steps, [&] { l.launch(chase, 1, 1, 0, cudaLaunchAttributeIgnore, 0, next, steps, place); });
  LAB_CHECK(cudaFree(next));
  return s;
}

inline Samples latency_l2(Lab& l) { return chased(l, 1u << 14, 1 << 14); }    // 2 MB, all of it in every run
inline Samples latency_few(Lab& l) { return chased(l, 1u << 6, 1 << 14); }    // 8 KB: as long, if no cache is nearer
inline Samples latency_dram(Lab& l) { return chased(l, 1u << 23, 1 << 13); }  // 1 GB, another MB in every run

// Blocks form a ring, and in every step each takes one value per thread from its neighbour, with the executor's flags.
// Its time less that of the same steps without data is what the first load and the last store of an rTask add.
__global__ void ring_of_values(uint64_t* flags, float* values, uint64_t epoch) {
  const int me = static_cast<int>(blockIdx.x), blocks = static_cast<int>(gridDim.x),
            tid = static_cast<int>(threadIdx.x);
  const int from = (me + 1) % blocks;
  for (int i = 1; i <= edges::kSteps; ++i) {
    // A block can be ahead of another by at most as many steps as the ring has blocks, so with that many slots no block
    // overwrites what another still has to read.
    float* slot = values + static_cast<size_t>(i % blocks) * blocks * kThreads;
    const float* last = values + static_cast<size_t>((i + blocks - 1) % blocks) * blocks * kThreads;
    const float v = __ldcg(last + from * kThreads + tid);
    slot[me * kThreads + tid] = 0.5f * v + 0.25f;
    __syncthreads();
    edges::publish(flags + me * edges::kLine, epoch + i);
    edges::wait(flags, blocks, from, 1, 1, epoch + i);
  }
}

inline Samples ring_step(Lab& l) {
  uint64_t* flags = l.zeroed<uint64_t>(static_cast<size_t>(l.sms()) * edges::kLine);
  float* values = l.random(static_cast<size_t>(l.sms()) * l.sms() * kThreads);
  uint64_t epoch = 0;
  return l.times(edges::kSteps, [&] {
    l.resident(ring_of_values, l.sms(), kThreads, flags, values, epoch);
    epoch += edges::kSteps;
  });
}

constexpr int kChains = 8;
constexpr int kTurns = 16384;

__global__ void __launch_bounds__(kWide) multiply_add(const float* in, float* out) {
  const int at = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const float a = in[at], b = in[at + 1];
  float v[kChains];
#pragma unroll
  for (int k = 0; k < kChains; ++k) v[k] = in[at + k];
#pragma unroll 4
  for (int i = 0; i < kTurns; ++i) {
#pragma unroll
    for (int k = 0; k < kChains; ++k) v[k] = fmaf(v[k], a, b);
  }
  float sum = 0;
#pragma unroll
  for (int k = 0; k < kChains; ++k) sum += v[k];
  out[at] = sum;
}

// The rate of one SM while all SMs compute.
inline Samples fp32(Lab& l) {
  const size_t count = static_cast<size_t>(l.sms()) * kWide;
  float *in = l.random(count + kChains), *out = l.zeroed<float>(count);
  return l.rates(2.0 * kChains * kTurns * kWide,
                 [&] { l.launch(multiply_add, l.sms(), kWide, l.alone(), cudaLaunchAttributeIgnore, 0, in, out); });
}

constexpr int kSharedVectors = 2048;

__global__ void __launch_bounds__(kWide) read_shared(const float4* in, float4* out) {
  __shared__ float4 held[kSharedVectors];
  for (int i = static_cast<int>(threadIdx.x); i < kSharedVectors; i += kWide) held[i] = in[i];
  __syncthreads();
  float4 sum = {0, 0, 0, 0};
#pragma unroll 4
  for (int i = 0; i < kTurns; ++i) {
    const float4 v = held[(threadIdx.x + static_cast<unsigned>(i) * 32) % kSharedVectors];
    sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

inline Samples shared(Lab& l) {
  auto* in = reinterpret_cast<const float4*>(l.random(4 * kSharedVectors));
  float4* out = l.zeroed<float4>(static_cast<size_t>(l.sms()) * kWide);
  return l.rates(static_cast<double>(kTurns) * kWide * sizeof(float4),
                 [&] { l.launch(read_shared, l.sms(), kWide, 0, cudaLaunchAttributeIgnore, 0, in, out); });
}

}  // namespace memory
