// Shows what compute-sanitizer's racecheck reports of named barriers at which only some warps of a block wait. It
// contains no code of emitted programs. In each round, warps 0 to 3 of a block write shared memory, all warps meet at
// barrier 0, and all read. So there is no race. The argument says what happens before that:
//
//   barriers all     nothing: no other barrier is used
//   barriers some    the first seven of the eight warps have met at barrier 3
//   barriers rtask   the first four warps have met at barrier 1, again and again
//
// In `all` and `some`, warps 0 to 3 first wait for words that another block writes one after the other, as imports do.
//
//   nvcc -O2 -arch=sm_90 -lineinfo -o barriers barriers.cu
//   compute-sanitizer --tool racecheck --racecheck-report hazard ./barriers some
#include <cstdio>
#include <cstring>

#include <cuda_runtime.h>

namespace {

constexpr int kThreads = 256, kWriters = 128, kRounds = 20;
enum Way { kAll, kSome, kRTask };

__device__ void meet(int barrier, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

// Writes a word for each writer in every round, once all of them have read those of the round before.
__device__ void give_words(int t, volatile unsigned* words, volatile unsigned* seen) {
  if (t >= kWriters) return;
  for (int i = 0; i < kRounds; ++i) {
    while (*seen < static_cast<unsigned>(i)) {
    }
    for (int d = 0; d < (t * 37 + i) % 50; ++d) __nanosleep(40);
    words[t] = i + 1;
  }
}

__device__ int meet_before(Way way, int* shared, int t, int i) {
  const int warp = t / 32;
  int sum = 0;
  if (way == kSome && warp < 7) {
    if (warp < 3) shared[t] = i;
    meet(3, kThreads - 32);
    if (warp < 2) sum += shared[(t + 32) % 96];
  }
  for (int r = 0; way == kRTask && warp < 4 && r < 3; ++r) {
    shared[t] = i + r;
    meet(1, kWriters);
    sum += shared[(t + 32) % kWriters];
    meet(1, kWriters);
  }
  meet(0, kThreads);
  return sum;
}

__global__ void rounds(Way way, volatile unsigned* words, volatile unsigned* seen, int* out) {
  __shared__ int a[2 * kWriters], before[kWriters];
  const int t = threadIdx.x;
  if (blockIdx.x == 1) return give_words(t, words, seen);
  int sum = 0;
  for (int i = 0; i < kRounds; ++i) {
    if (way != kAll) sum += meet_before(way, before, t, i);
    if (t < kWriters) {
      while (way != kRTask && words[t] != static_cast<unsigned>(i + 1)) {
      }
      a[2 * t] = i, a[2 * t + 1] = i + 1;
    }
    meet(0, kThreads);
    sum += a[t];
    meet(0, kThreads);
    if (t == 0) *seen = i + 1;
  }
  out[t] = sum;
}

}  // namespace

int main(int argc, char** argv) {
  const char* names[] = {"all", "some", "rtask"};
  int way = 0;
  while (argc == 2 && way < 3 && std::strcmp(argv[1], names[way]) != 0) ++way;
  if (argc != 2 || way == 3) return std::fprintf(stderr, "barriers all|some|rtask\n"), 2;
  unsigned* words = nullptr;
  int* out = nullptr;
  cudaMalloc(&words, (kWriters + 1) * sizeof *words);
  cudaMemset(words, 0, (kWriters + 1) * sizeof *words);
  cudaMalloc(&out, kThreads * sizeof *out);
  rounds<<<2, kThreads>>>(static_cast<Way>(way), words, words + kWriters, out);
  const cudaError_t e = cudaDeviceSynchronize();
  std::printf("%s\n", cudaGetErrorString(e));
  return e != cudaSuccess;
}
