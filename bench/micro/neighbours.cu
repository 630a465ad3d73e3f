// Whether a process whose kernel traps ends the work of others on the same GPU. No code of emitted programs is in it.
//
//   neighbours trap          one launch that traps; what the driver says, status 0 for a launch failure
//   neighbours wait SECONDS  launches whose blocks wait for each other, as an rProgram's do, checked one by one
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <cuda_runtime.h>

namespace {

constexpr int kBlocks = 128, kThreads = 256;

__global__ void trap() {
  for (int i = 0; i < 200; ++i) __nanosleep(10000);
  if (blockIdx.x == 2 && threadIdx.x == 3) asm volatile("trap;");
  for (int i = 0; i < 10000; ++i) __nanosleep(10000);
}

__global__ void wait(unsigned* come, unsigned until) {
  if (threadIdx.x == 0) {
    atomicAdd(come, 1);
    while (atomicAdd(come, 0) < until) __nanosleep(200);
  }
  __syncthreads();
  for (int i = 0; i < 10; ++i) __nanosleep(5000);
}

int run_trap() {
  trap<<<kBlocks, kThreads>>>();
  const cudaError_t e = cudaDeviceSynchronize();
  std::printf("%s\n", cudaGetErrorString(e));
  return e == cudaErrorLaunchFailure ? 0 : 1;
}

int run_wait(int seconds) {
  unsigned *come = nullptr, seen = 0, until = 0;
  cudaError_t e = cudaMalloc(&come, sizeof *come);
  if (e == cudaSuccess) e = cudaMemset(come, 0, sizeof *come);
  long launches = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  while (e == cudaSuccess && seen == until && std::chrono::steady_clock::now() < end) {
    until += kBlocks;
    void* args[] = {&come, &until};
    e = cudaLaunchCooperativeKernel(reinterpret_cast<void*>(wait), dim3(kBlocks), dim3(kThreads), args, 0, 0);
    if (e == cudaSuccess) e = cudaMemcpy(&seen, come, sizeof seen, cudaMemcpyDeviceToHost);
    ++launches;
  }
  std::printf("%ld launches, %s\n", launches, e == cudaSuccess && seen != until ? "wrong" : cudaGetErrorString(e));
  return e == cudaSuccess && seen == until ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "trap") == 0) return run_trap();
  if (argc == 3 && std::strcmp(argv[1], "wait") == 0) return run_wait(std::atoi(argv[2]));
  std::fprintf(stderr, "usage: neighbours trap | neighbours wait SECONDS\n");
  return 2;
}
