// What all measurements use: the device at hand, memory with random contents, times by CUDA events, and printing.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

namespace lab {

#define LAB_CHECK(call) lab::check((call), #call, __LINE__)

inline void check(cudaError_t e, const char* what, int line) {
  if (e == cudaSuccess) return;
  std::fprintf(stderr, "line %d: %s: %s\n", line, what, cudaGetErrorString(e));
  std::exit(1);
}

using Samples = std::vector<double>;

constexpr int kThreads = 256;  // of a block, unless a measurement says otherwise
constexpr int kWarmUp = 3;
constexpr int kRuns = 31;

// Keeps the stream busy, so that the host can queue all that is to be measured before the device begins with it.
__global__ void hold(long long cycles) {
  const long long begin = clock64();
  while (clock64() - begin < cycles) {
  }
}

// The device, and buffers that measurements share. Buffers live as long as the process.
class Lab {
 public:
  Lab() {
    LAB_CHECK(cudaGetDevice(&device_));
    LAB_CHECK(cudaGetDeviceProperties(&props_, device_));
    LAB_CHECK(cudaStreamCreate(&stream_));
    LAB_CHECK(cudaEventCreate(&begin_));
    LAB_CHECK(cudaEventCreate(&end_));
  }

  const cudaDeviceProp& props() const { return props_; }
  int attribute(cudaDeviceAttr a) const {
    int v = 0;
    LAB_CHECK(cudaDeviceGetAttribute(&v, a, device_));
    return v;
  }
  int sms() const { return props_.multiProcessorCount; }
  bool hopper() const { return props_.major >= 9; }
  cudaStream_t stream() const { return stream_; }

  // Words for flags, counters and tags. They are zero at first; later measurements find what the earlier ones left.
  template <class T>
  T* zeroed(size_t count) {
    T* p = nullptr;
    LAB_CHECK(cudaMalloc(&p, count * sizeof(T)));
    LAB_CHECK(cudaMemset(p, 0, count * sizeof(T)));
    return p;
  }

  // Random floats in [-1, 1). With zeros the device takes less power and can run at higher clocks.
  float* random(size_t count);

  // The times of kRuns runs of body, in nanoseconds, each divided by units. With with_host they include the time that
  // the host needs to launch; otherwise all launches are queued before the first begins.
  template <class Body>
  Samples times(double units, Body body, bool with_host = false) {
    Samples out;
    for (int i = -kWarmUp; i < kRuns; ++i) {
      if (!with_host) hold<<<1, 1, 0, stream_>>>(200'000);  // 100 µs
      LAB_CHECK(cudaEventRecord(begin_, stream_));
      body();
      LAB_CHECK(cudaEventRecord(end_, stream_));
      LAB_CHECK(cudaEventSynchronize(end_));
      float ms = 0;
      LAB_CHECK(cudaEventElapsedTime(&ms, begin_, end_));
      if (i >= 0) out.push_back(1e6 * ms / units);
    }
    return out;
  }

  // The rates of kRuns runs of body: the amount of work that body does, divided by its time in nanoseconds.
  template <class Body>
  Samples rates(double amount, Body body) {
    Samples out = times(1, body);
    for (double& ns : out) ns = amount / ns;
    return out;
  }

  // Launches one block on every SM, all at once. A block asks for more than half of an SM's shared memory, so that no
  // two blocks share an SM.
  template <class... Params, class... Args>
  void resident(void (*kernel)(Params...), int blocks, int threads, Args... args) {
    launch(kernel, blocks, threads, alone(), cudaLaunchAttributeCooperative, 1, args...);
  }

  // Launches a kernel with an attribute; cudaLaunchAttributeIgnore stands for none. A kernel must ask for the same
  // amount of shared memory each time, because the limit is raised only at its first launch.
  template <class... Params, class... Args>
  void launch(void (*kernel)(Params...), int blocks, int threads, size_t shared, cudaLaunchAttributeID attribute,
              unsigned value, Args... args) {
    if (shared > 0 && prepared_.insert(reinterpret_cast<const void*>(kernel)).second) {
      LAB_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared)));
    }
    cudaLaunchAttribute a = {};
    cudaLaunchConfig_t config = this->config(blocks, threads, shared, &a, attribute, value);
    LAB_CHECK(cudaLaunchKernelEx(&config, kernel, static_cast<Params>(args)...));
  }

  cudaLaunchConfig_t config(int blocks, int threads, size_t shared, cudaLaunchAttribute* a, cudaLaunchAttributeID id,
                            unsigned value) const {
    cudaLaunchConfig_t c = {};
    c.gridDim = dim3(static_cast<unsigned>(blocks));
    c.blockDim = dim3(static_cast<unsigned>(threads));
    c.dynamicSmemBytes = shared;
    c.stream = stream_;
    a->id = id;
    if (id == cudaLaunchAttributeCooperative) a->val.cooperative = 1;
    if (id == cudaLaunchAttributeProgrammaticStreamSerialization) a->val.programmaticStreamSerializationAllowed = 1;
    if (id == cudaLaunchAttributeClusterDimension) a->val.clusterDim = {value, 1, 1};
    c.attrs = a;
    c.numAttrs = id == cudaLaunchAttributeIgnore ? 0 : 1;
    return c;
  }

  // A little more than half of an SM's shared memory, in bytes.
  size_t alone() const { return std::min(props_.sharedMemPerMultiprocessor / 2 + 1024, props_.sharedMemPerBlockOptin); }

 private:
  int device_ = 0;
  cudaDeviceProp props_ = {};
  cudaStream_t stream_ = nullptr;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
  std::set<const void*> prepared_;  // kernels whose limit of shared memory has been raised
};

__global__ void fill_random(float* p, size_t n) {
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < n; i += size_t{gridDim.x} * blockDim.x) {
    uint64_t x = (i + 1) * 0x9E3779B97F4A7C15ull;  // splitmix64
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    x ^= x >> 31;
    p[i] = static_cast<float>(x >> 40) * (1.0f / (1 << 23)) - 1.0f;
  }
}

inline float* Lab::random(size_t count) {
  float* p = nullptr;
  LAB_CHECK(cudaMalloc(&p, count * sizeof(float)));
  fill_random<<<sms() * 8, kThreads, 0, stream_>>>(p, count);
  LAB_CHECK(cudaGetLastError());
  LAB_CHECK(cudaStreamSynchronize(stream_));
  return p;
}

// A row of the table of measurements. A measurement takes well under a second.
struct Measurement {
  const char* name;
  const char* unit;
  int least_major;  // the least major compute capability that it runs on
  Samples (*run)(Lab&);
};

inline void print(const Measurement& m, const Samples& samples) {
  std::printf("{\"name\": \"%s\", \"unit\": \"%s\", \"samples\": [", m.name, m.unit);
  for (size_t i = 0; i < samples.size(); ++i) std::printf("%s%.6g", i ? ", " : "", samples[i]);
  std::printf("]}\n");
  std::fflush(stdout);
}

}  // namespace lab
