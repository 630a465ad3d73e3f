// Sorting in shared memory.
#include <cuda_runtime.h>

__device__ inline void put_in_order(float& a, float& b, bool ascending) {
  if ((a > b) == ascending) {
    const float t = a;
    a = b;
    b = t;
  }
}

// Barriers in two loops, one in the other.
__global__ void bitonic_sort(const float* x, float* y) {
  __shared__ float s[256];
  const unsigned base = blockIdx.x * 256, tid = threadIdx.x;
  s[tid] = x[base + tid], s[tid + 128] = x[base + tid + 128];
  for (unsigned size = 2; size <= 256; size <<= 1) {
    for (unsigned stride = size / 2; stride > 0; stride >>= 1) {
      __syncthreads();
      const unsigned at = 2 * tid - (tid & (stride - 1));
      put_in_order(s[at], s[at + stride], (at & size) == 0);
    }
  }
  __syncthreads();
  y[base + tid] = s[tid], y[base + tid + 128] = s[tid + 128];
}

// Goes on until a round has changed nothing, which all threads find out together.
__global__ void sort_until_sorted(const int* x, int* y, int n) {
  extern __shared__ int line[];
  for (int i = threadIdx.x; i < n; i += blockDim.x) line[i] = x[blockIdx.x * n + i];
  __syncthreads();
  int changed = 1;
  while (changed) {
    changed = 0;
    for (int odd = 0; odd < 2; ++odd) {
      bool mine = false;
      for (int i = 2 * threadIdx.x + odd; i + 1 < n; i += 2 * blockDim.x) {
        if (line[i] > line[i + 1]) {
          const int t = line[i];
          line[i] = line[i + 1], line[i + 1] = t, mine = true;
        }
      }
      changed |= __syncthreads_or(mine);
    }
  }
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[blockIdx.x * n + i] = line[i];
}
