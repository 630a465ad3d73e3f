// A user's program: captures an inference into a CUDA graph and replays it.
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

int main() {
  const std::vector<float> x = load("x"), want = load("want");
  std::vector<float> y(want.size());
  stencil_ctx* ctx = nullptr;
  if (stencil_create(nullptr, &ctx) != stencil_OK) return std::printf("%s\n", stencil_last_error(nullptr)), 1;
  float* in = nullptr;
  cudaMalloc(&in, x.size() * sizeof(float));
  cudaMemcpy(in, x.data(), x.size() * sizeof(float), cudaMemcpyHostToDevice);
  const void* ins[] = {in};
  std::vector<void*> outs(stencil_io_info()->output_count);  // all as large; the first is checked
  for (void*& o : outs) cudaMalloc(&o, y.size() * sizeof(float));
  void* const out = outs[0];
  cudaStream_t s;
  cudaStreamCreate(&s);
  int failures = 0;
  auto check = [&] {
    failures += cudaStreamSynchronize(s) != cudaSuccess;
    cudaMemcpy(y.data(), out, y.size() * sizeof(float), cudaMemcpyDeviceToHost);
    for (size_t i = 0; i < y.size(); ++i) failures += !(std::fabs(y[i] - want[i]) < 1e-5f);
    cudaMemset(out, 0xFF, y.size() * sizeof(float));
    cudaDeviceSynchronize();
  };
  cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal);
  if (stencil_run_async(ctx, s, ins, outs.data()) != stencil_OK) {
    return std::printf("capture: %s\n", stencil_last_error(ctx)), 1;
  }
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaStreamEndCapture(s, &graph);
  if (cudaGraphInstantiate(&exec, graph, 0) != cudaSuccess) return std::printf("no graph\n"), 1;
  for (int i = 0; i < 20; ++i) {
    if (i % 3 == 2) {  // replays and plain runs take turns
      failures += stencil_run_async(ctx, s, ins, outs.data()) != stencil_OK;
    } else {
      failures += cudaGraphLaunch(exec, s) != cudaSuccess;
    }
    check();
  }
  ins[0] = reinterpret_cast<const char*>(in) + 4;
  failures += stencil_run_async(ctx, s, ins, outs.data()) != stencil_BAD_ARGUMENT;
  stencil_destroy(ctx);
  std::printf("%d failures\n", failures);
  return failures != 0;
}
