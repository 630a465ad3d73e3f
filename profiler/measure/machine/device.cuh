// The device that the machine measures on: its memory, and what surrounds a candidate's launch. The emulator has
// nothing to evict and no neighbours; times have no meaning there.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "machine/entry.cuh"

#if defined(__CUDACC__)
#include "backend/cuda/tensor_map.cuh"
#endif

namespace measure {

// A part of the memory.
struct Region {
  size_t at, bytes;
};

[[noreturn]] inline void fail(const char* what) {
  std::printf("error %s\n", what);
  std::fflush(stdout);
  std::exit(1);
}

#if defined(__CUDACC__)

void evict_code(cudaStream_t stream);  // evict.cu

inline void check(cudaError_t e) {
  if (e != cudaSuccess) fail(cudaGetErrorString(e));
}

// Reads, so that L2 has it.
__global__ void touch(const char* p, size_t bytes, int* sink) {
  int sum = 0;
  for (size_t i = 32 * (blockIdx.x * size_t(blockDim.x) + threadIdx.x); i < bytes;
       i += 32 * size_t(gridDim.x) * blockDim.x)
    sum += p[i];
  if (sum == 123456789) *sink = sum;
}

// Both clocks before and after a while.
__global__ void spin(uint64_t nanoseconds, uint64_t* cycles, uint64_t* passed) {
  uint64_t c0, n0, c1, n1;
  rt::detail::both_clocks(&c0, &n0);
  do rt::detail::both_clocks(&c1, &n1);
  while (n1 - n0 < nanoseconds);
  *cycles = c1 - c0, *passed = n1 - n0;
}

// Neighbours: for so long they move memory, or compute.
__global__ void move_memory(uint64_t nanoseconds, float4* at, size_t count) {
  const uint64_t end = rt::detail::clock_nanoseconds() + nanoseconds;
  size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
  while (rt::detail::clock_nanoseconds() < end) {
    for (int k = 0; k < 8; ++k, i = (i + gridDim.x * size_t(blockDim.x)) % count) {
      float4 v = at[i];
      v.x += 1;
      at[i] = v;
    }
  }
}
__global__ void compute(uint64_t nanoseconds, float* sink) {
  const uint64_t end = rt::detail::clock_nanoseconds() + nanoseconds;
  float a[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  const float x = float(threadIdx.x);
  while (rt::detail::clock_nanoseconds() < end)
    for (int k = 0; k < 256; ++k) a[k % 8] = a[k % 8] * x + 0.5f;
  float sum = 0;
  for (float v : a) sum += v;
  if (sum == 1.25f) *sink = sum;
}

class Device {
 public:
  Device() {
    int device = 0;
    check(cudaGetDevice(&device));
    check(cudaDeviceGetAttribute(&sms_, cudaDevAttrMultiProcessorCount, device));
    check(cudaDeviceGetAttribute(&shared_, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
    check(cudaDeviceGetAttribute(&l2_, cudaDevAttrL2CacheSize, device));
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    check(cudaStreamCreateWithFlags(&beside_, cudaStreamNonBlocking));
    check(cudaMalloc(&scratch_, kScratch + 2 * size_t(l2_)));
    check(cudaFuncSetAttribute(move_memory, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_));
    check(cudaFuncSetAttribute(compute, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_));
  }
  char* allocate(size_t bytes) {
    char* p = nullptr;
    check(cudaMalloc(&p, bytes));
    return p;
  }
  void release(void* p) { check(cudaFree(p)); }
  static bool encode(const rt::TiledMatrix& m, void* first, void* map) {
    return rt::dev::encode_tensor_map(m, first, map);
  }
  void upload(void* to, const void* from, size_t bytes) { check(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice)); }
  void download(void* to, const void* from, size_t bytes) {
    check(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost));
  }
  void wait() { check(cudaDeviceSynchronize()); }
  void* stream() { return stream_; }

  // Cycles a nanosecond of a multiprocessor, now.
  double rate() {
    uint64_t* out = reinterpret_cast<uint64_t*>(scratch_);
    spin<<<1, 1, 0, stream_>>>(100000, out, out + 1);
    uint64_t got[2];
    wait();
    download(got, out, sizeof got);
    return double(got[0]) / double(got[1]);
  }
  void evict_code() { measure::evict_code(stream_); }
  // Evicts all of L2, then brings back what the regions of `base` have.
  void evict_data(const char* base, const std::vector<Region>& keep) {
    check(cudaMemsetAsync(scratch_ + kScratch, 0, 2 * size_t(l2_), stream_));
    for (const Region& r : keep)
      touch<<<sms_, 256, 0, stream_>>>(base + r.at, r.bytes, reinterpret_cast<int*>(scratch_));
  }
  // Neighbours on half of the multiprocessors, for so many nanoseconds. A block takes all of the shared memory, so that
  // it is alone on its multiprocessor.
  void neighbours(bool memory, uint64_t nanoseconds) {
    const int blocks = sms_ / 2;
    if (memory) {
      move_memory<<<blocks, 512, shared_, beside_>>>(nanoseconds, reinterpret_cast<float4*>(scratch_ + kScratch),
                                                     2 * size_t(l2_) / sizeof(float4));
    } else {
      compute<<<blocks, 512, shared_, beside_>>>(nanoseconds, reinterpret_cast<float*>(scratch_));
    }
    check(cudaGetLastError());
  }

 private:
  static constexpr size_t kScratch = 4096;
  int sms_ = 0, shared_ = 0, l2_ = 0;
  cudaStream_t stream_ = nullptr, beside_ = nullptr;
  char* scratch_ = nullptr;
};

#else

class Device {
 public:
  char* allocate(size_t bytes) { return static_cast<char*>(std::aligned_alloc(256, (bytes + 255) / 256 * 256)); }
  void release(void* p) { std::free(p); }
  void upload(void* to, const void* from, size_t bytes) { std::memcpy(to, from, bytes); }
  void download(void* to, const void* from, size_t bytes) { std::memcpy(to, from, bytes); }
  static bool encode(const rt::TiledMatrix&, void*, void*) { return true; }
  void wait() {}
  void* stream() { return nullptr; }
  double rate() { return 1; }
  void evict_code() {}
  void evict_data(const char*, const std::vector<Region>&) {}
  void neighbours(bool, uint64_t) {}
};

#endif

}  // namespace measure
