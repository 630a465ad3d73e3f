// Threads that end before others, and blocks that are no multiple of a warp.
#include <cuda_runtime.h>

// Some lanes of the last warp end; the others of the block meet at barriers behind that.
__global__ void exit_then_meet(const float* x, float* y, int n) {
  __shared__ float s[128];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  s[threadIdx.x] = x[i];
  __syncthreads();
  for (int d = 1; d < 128; d *= 2) {
    const int other = threadIdx.x ^ d;
    const float v = blockIdx.x * blockDim.x + other < n ? s[other] : 0.0f;
    __syncthreads();
    s[threadIdx.x] += v;
    __syncthreads();
  }
  y[i] = s[threadIdx.x];
}

// Threads end in different rounds of a loop that has a barrier.
__global__ void exit_in_rounds(const int* rounds, int* y) {
  __shared__ int count;
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  for (int r = 0;; ++r) {
    if (r >= rounds[blockIdx.x * blockDim.x + threadIdx.x] % 9) {
      y[blockIdx.x * blockDim.x + threadIdx.x] = count;
      return;
    }
    __syncthreads();
    atomicAdd(&count, 1);
    __syncthreads();
  }
}

// Lanes end, and the others of their warps add up by shuffles that name all lanes.
__global__ void exit_then_shuffle(const int* x, int* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int v = x[i];
  const int votes = __popc(__ballot_sync(0xffffffffu, v > 50));
  for (int offset = 1; offset < 32; offset <<= 1) {
    const int other = __shfl_xor_sync(0xffffffffu, v, offset);
    if ((i ^ offset) < n) v = v > other ? v : other;
  }
  y[i] = v * 100 + votes;
}

// Lanes end within a loop; behind it the others vote.
__global__ void exit_nested(const int* x, int* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = -1;
  for (int k = 0; k < 4; ++k) {
    if (x[i] % 7 == k) {
      if (x[i] > 60) {
        y[i] = k;
        return;
      }
      break;
    }
  }
  const unsigned there = __ballot_sync(0xffffffffu, 1);
  y[i] = static_cast<int>(there >> 1) + __any_sync(0xffffffffu, x[i] % 7 == 5);
}

// 100 threads: the last warp has four.
__global__ void odd_block(const int* x, int* y, int n) {
  __shared__ int s[100];
  s[threadIdx.x] = x[blockIdx.x * 100 + threadIdx.x];
  __syncthreads();
  const int more = __syncthreads_count(s[threadIdx.x] > 50), all = __syncthreads_and(s[threadIdx.x] < 1000);
  if (threadIdx.x % 3 == 1) return;
  const int rest = __syncthreads_count(1);
  y[blockIdx.x * 100 + threadIdx.x] = s[(threadIdx.x + 1) % 100] + 1000 * more + 100000 * all + 1000000 * rest;
}

// All threads of a block end, or none: nobody needs to be counted.
__global__ void exit_together(const float* x, float* y, int blocks, int n) {
  __shared__ float s[64];
  const int first = blockIdx.x * 64;
  if (blockIdx.x >= blocks || first >= n) return;
  s[threadIdx.x] = first + threadIdx.x < n ? x[first + threadIdx.x] : 0.0f;
  __syncthreads();
  if (first + threadIdx.x < n) y[first + threadIdx.x] = s[63 - threadIdx.x];
}

// A row of a sparse matrix for each group of 8 lanes, which have masks of their own.
__global__ void spmv_groups(const int* starts, const int* columns, const float* values, const float* x, float* y,
                            int rows) {
  const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 8, lane = threadIdx.x % 8;
  if (row >= rows) return;
  const unsigned mask = 0xffu << (threadIdx.x % 32 / 8 * 8);
  float sum = 0.0f;
  for (int i = starts[row] + lane; i < starts[row] + 20; i += 8) sum += values[i] * x[columns[i]];
  for (int offset = 4; offset > 0; offset >>= 1) sum += __shfl_down_sync(mask, sum, offset, 8);
  if (lane == 0) y[row] = sum;
}
