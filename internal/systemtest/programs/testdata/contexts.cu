// A user's program: several contexts in flight, each on a stream of its own, on every device there is.
#include <cmath>
#include <cstdio>
#include <vector>

#include <cuda_runtime.h>

#include "stencil.h"

static std::vector<float> load(const char* path) {
  FILE* f = std::fopen(path, "rb");
  std::vector<float> v(1 << 20);
  v.resize(std::fread(v.data(), sizeof(float), v.size(), f));
  std::fclose(f);
  return v;
}

struct Flight {
  int device = 0;
  stencil_ctx* ctx = nullptr;
  cudaStream_t stream = nullptr;
  const void* in = nullptr;
  void* out = nullptr;
};

int main() {
  const std::vector<float> x = load("x"), want = load("want");
  const size_t bytes = want.size() * sizeof(float);
  int devices = 0, failures = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess) return 1;
  std::vector<Flight> flights(3 * static_cast<size_t>(devices));
  for (size_t i = 0; i < flights.size(); ++i) {
    Flight& f = flights[i];
    f.device = static_cast<int>(i) % devices;
    stencil_options o = {};
    o.size = sizeof o;
    o.device = f.device + 1;
    if (stencil_create(&o, &f.ctx) != stencil_OK) return std::printf("%s\n", stencil_last_error(nullptr)), 1;
    int current = -1;
    failures += cudaGetDevice(&current) != cudaSuccess || current != 0;  // the caller's device stays
    cudaSetDevice(f.device);
    void* in = nullptr;
    cudaMalloc(&in, bytes), cudaMalloc(&f.out, bytes);
    cudaMemcpy(in, x.data(), bytes, cudaMemcpyHostToDevice);
    cudaMemset(f.out, 0xFF, bytes);
    f.in = in;
    cudaStreamCreateWithFlags(&f.stream, cudaStreamNonBlocking);
    cudaDeviceSynchronize();
    cudaSetDevice(0);
  }
  std::vector<float> y(want.size());
  for (int round = 0; round < 20; ++round) {
    for (int again = 0; again < 5; ++again) {
      for (const Flight& f : flights) {
        void* outs[] = {f.out};
        if (stencil_run_async(f.ctx, f.stream, &f.in, outs) != stencil_OK) {
          return std::printf("%s\n", stencil_last_error(f.ctx)), 1;
        }
      }
    }
    for (const Flight& f : flights) {
      failures += cudaStreamSynchronize(f.stream) != cudaSuccess;
      cudaMemcpy(y.data(), f.out, bytes, cudaMemcpyDefault);
      for (size_t i = 0; i < y.size(); ++i) failures += !(std::fabs(y[i] - want[i]) < 1e-5f);
    }
  }
  stencil_options o = {};
  o.size = sizeof o;
  o.device = devices + 1;  // one too many
  stencil_ctx* none = nullptr;
  failures += stencil_create(&o, &none) != stencil_NO_DEVICE || none != nullptr;
  for (const Flight& f : flights) stencil_destroy(f.ctx);
  std::printf("%d failures\n", failures);
  return failures != 0;
}
