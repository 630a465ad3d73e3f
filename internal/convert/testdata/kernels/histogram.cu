// Counting with atomic operations.
#include <cuda_runtime.h>
#include <stdint.h>

constexpr int kBins = 64;

// Counts of a block in shared memory, added up in global memory.
__global__ void histogram_shared(const uint8_t* x, unsigned* counts, int n) {
  __shared__ unsigned own[kBins];
  for (int i = threadIdx.x; i < kBins; i += blockDim.x) own[i] = 0;
  __syncthreads();
  const int stride = blockDim.x * gridDim.x;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) atomicAdd(&own[x[i] % kBins], 1u);
  __syncthreads();
  for (int i = threadIdx.x; i < kBins; i += blockDim.x) {
    if (own[i] > 0) atomicAdd(&counts[i], own[i]);
  }
}

// The largest number of each class, by comparing and swapping.
__device__ float atomic_max(float* at, float v) {
  int* bits = reinterpret_cast<int*>(at);
  int old = *bits, assumed;
  do {
    assumed = old;
    if (__int_as_float(assumed) >= v) break;
    old = atomicCAS(bits, assumed, __float_as_int(v));
  } while (old != assumed);
  return __int_as_float(old);
}
__global__ void class_maxima(const float* x, const int* classes, float* most, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomic_max(&most[classes[i]], x[i]);
}

// Rows are added to others in place.
__global__ void index_add(const float* rows, const long long* index, const float*, float* y, int n, int columns) {
  for (int i = blockIdx.x; i < n; i += gridDim.x) {
    for (int j = threadIdx.x; j < columns; j += blockDim.x)
      atomicAdd(y + index[i] * columns + j, rows[i * columns + j]);
  }
}
