// Sums and maxima, by trees, by warps and by atomic operations.
#include <cuda_runtime.h>
#include <cfloat>

#define FULL_MASK 0xffffffffu
#define GLOBAL_INDEX (blockIdx.x * blockDim.x + threadIdx.x)

// A tree in dynamic shared memory.
__global__ void block_sums(const float* x, float* sums, int n) {
  extern __shared__ float part[];
  const unsigned tid = threadIdx.x;
  part[tid] = GLOBAL_INDEX < n ? x[GLOBAL_INDEX] : 0.0f;
  __syncthreads();
  for (unsigned s = blockDim.x / 2; s > 0; s >>= 1) {
    if (tid < s) part[tid] += part[tid + s];
    __syncthreads();
  }
  if (tid == 0) sums[blockIdx.x] = part[0];
}

template <typename T>
__device__ __forceinline__ T warp_sum(T v) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) v += __shfl_xor_sync(FULL_MASK, v, offset);
  return v;
}

template <typename T, int THREADS>
__device__ T block_sum(T v) {
  static __shared__ T of_warp[THREADS / 32];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  v = warp_sum(v);
  __syncthreads();
  if (lane == 0) of_warp[warp] = v;
  __syncthreads();
  v = threadIdx.x < THREADS / 32 ? of_warp[lane] : T(0);
  return warp_sum(v);
}

// Shuffles, in functions that the kernel calls.
template <typename T, int THREADS>
__global__ void row_sums(const T* __restrict__ x, T* __restrict__ sums, int columns) {
  T v = 0;
  for (int i = threadIdx.x; i < columns; i += THREADS) v += x[blockIdx.x * columns + i];
  v = block_sum<T, THREADS>(v);
  if (threadIdx.x == 0) sums[blockIdx.x] = v;
}

// Atomic additions of real numbers, in any order.
__global__ void sum_atomic(const float* x, float* sum, int n) {
  float v = 0.0f;
  for (int i = GLOBAL_INDEX; i < n; i += gridDim.x * blockDim.x) v += x[i];
  v = warp_sum(v);
  if ((threadIdx.x & 31) == 0) atomicAdd(sum, v);
}

// The block that comes last joins what the others have left.
__global__ void sum_last_block(const int* x, int* parts, unsigned* arrived, int* sum, int n) {
  __shared__ int total;
  __shared__ bool last;
  if (threadIdx.x == 0) total = 0;
  __syncthreads();
  if (GLOBAL_INDEX < n) atomicAdd(&total, x[GLOBAL_INDEX]);
  __syncthreads();
  if (threadIdx.x == 0) {
    parts[blockIdx.x] = total;
    __threadfence();
    last = atomicInc(arrived, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last) return;
  if (threadIdx.x == 0) total = 0;
  __syncthreads();
  for (int i = threadIdx.x; i < gridDim.x; i += blockDim.x) atomicAdd(&total, ((volatile int*)parts)[i]);
  __syncthreads();
  if (threadIdx.x == 0) *sum = total;
}

struct Best {
  float value;
  int index;
  __device__ bool before(const Best& o) const { return value > o.value || (value == o.value && index < o.index); }
};

// The largest number of each row and its place.
__global__ void row_argmax(const float* x, float* values, long long* places, int columns) {
  __shared__ float value[128];
  __shared__ int place[128];
  Best b = {-FLT_MAX, 0x7fffffff};
  for (int i = threadIdx.x; i < columns; i += blockDim.x) {
    const Best o = {x[blockIdx.x * columns + i], i};
    if (o.before(b)) b = o;
  }
  value[threadIdx.x] = b.value, place[threadIdx.x] = b.index;
  for (int s = 64; s > 0; s >>= 1) {
    __syncthreads();
    if (threadIdx.x < s) {
      const Best a = {value[threadIdx.x], place[threadIdx.x]}, o = {value[threadIdx.x + s], place[threadIdx.x + s]};
      if (o.before(a)) value[threadIdx.x] = o.value, place[threadIdx.x] = o.index;
    }
  }
  if (threadIdx.x == 0) values[blockIdx.x] = value[0], places[blockIdx.x] = place[0];
}
