// Softmax and normalisations of rows.
#include <cuda_runtime.h>
#include <cuda_fp16.h>
#include <math.h>

namespace {

template <class T>
struct Sum {
  __device__ __forceinline__ T operator()(T a, T b) const { return a + b; }
};
template <class T>
struct Max {
  __device__ __forceinline__ T operator()(T a, T b) const { return a > b ? a : b; }
};

// The result is the same in all threads of the block.
template <class T, class Op>
__device__ T reduce_block(T v, Op op, T* scratch) {
  for (int offset = 16; offset > 0; offset >>= 1) v = op(v, __shfl_xor_sync(0xffffffffu, v, offset));
  __syncthreads();
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = v;
  __syncthreads();
  v = scratch[0];
  for (int i = 1; i < blockDim.x / 32; ++i) v = op(v, scratch[i]);
  return v;
}

}  // namespace

template <typename T, int THREADS>
__global__ void softmax_rows(const T* x, T* y, int columns) {
  __shared__ float scratch[THREADS / 32];
  x += blockIdx.x * columns, y += blockIdx.x * columns;
  float most = -INFINITY;
  for (int i = threadIdx.x; i < columns; i += THREADS) most = fmaxf(most, float(x[i]));
  most = reduce_block(most, Max<float>(), scratch);
  float sum = 0.0f;
  for (int i = threadIdx.x; i < columns; i += THREADS) sum += expf(float(x[i]) - most);
  sum = reduce_block(sum, Sum<float>(), scratch);
  for (int i = threadIdx.x; i < columns; i += THREADS) y[i] = T(expf(float(x[i]) - most) / sum);
}

// A warp has a row, and warps without one end.
__global__ void softmax_warps(const float* x, float* y, int rows, int columns) {
  const int row = blockIdx.x * blockDim.y + threadIdx.y;
  if (row >= rows) return;
  float most = -INFINITY, sum = 0.0f;
  for (int i = threadIdx.x; i < columns; i += 32) {
    const float v = x[row * columns + i], larger = fmaxf(most, v);
    sum = sum * expf(most - larger) + expf(v - larger);
    most = larger;
  }
  for (int offset = 16; offset > 0; offset >>= 1) {
    const float m = __shfl_xor_sync(0xffffffffu, most, offset), s = __shfl_xor_sync(0xffffffffu, sum, offset);
    const float larger = fmaxf(most, m);
    sum = sum * expf(most - larger) + s * expf(m - larger);
    most = larger;
  }
  for (int i = threadIdx.x; i < columns; i += 32) y[row * columns + i] = expf(x[row * columns + i] - most) / sum;
}

__global__ void layer_norm(const float* __restrict__ x, const float* __restrict__ scale, const float* __restrict__ bias,
                           float* __restrict__ y, int columns, float epsilon) {
  __shared__ float scratch[8];
  const float* row = x + size_t(blockIdx.x) * columns;
  float sum = 0.0f;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) sum += row[i];
  const float mean = reduce_block(sum, Sum<float>(), scratch) / columns;
  float square = 0.0f;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) square += (row[i] - mean) * (row[i] - mean);
  const float factor = rsqrtf(reduce_block(square, Sum<float>(), scratch) / columns + epsilon);
  for (int i = threadIdx.x; i < columns; i += blockDim.x) {
    y[size_t(blockIdx.x) * columns + i] = (row[i] - mean) * factor * scale[i] + bias[i];
  }
}

// Numbers of 16 bits, two at a time.
__global__ void rms_norm_half(const half2* x, const half2* scale, half2* y, int pairs, double epsilon) {
  __shared__ float scratch[4];
  float sum = 0.0f;
  for (int i = threadIdx.x; i < pairs; i += blockDim.x) {
    const float2 v = __half22float2(x[blockIdx.x * pairs + i]);
    sum += v.x * v.x + v.y * v.y;
  }
  sum = reduce_block(sum, Sum<float>(), scratch);
  const float factor = 1.0f / sqrtf(sum / (2 * pairs) + float(epsilon));
  for (int i = threadIdx.x; i < pairs; i += blockDim.x) {
    const float2 v = __half22float2(x[blockIdx.x * pairs + i]), s = __half22float2(scale[i]);
    y[blockIdx.x * pairs + i] = __floats2half2_rn(v.x * factor * s.x, v.y * factor * s.y);
  }
}
