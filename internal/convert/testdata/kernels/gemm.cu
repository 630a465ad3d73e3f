// Products of matrices.
#include <cuda_runtime.h>

// A tile of C from tiles of A and B in shared memory.
template <int TILE>
__global__ void __launch_bounds__(TILE* TILE)
    gemm_tiled(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int m, int n, int k) {
  __shared__ float as[TILE][TILE], bs[TILE][TILE + 1];
  const int row = blockIdx.y * TILE + threadIdx.y, col = blockIdx.x * TILE + threadIdx.x;
  float sum = 0.0f;
  for (int at = 0; at < k; at += TILE) {
    as[threadIdx.y][threadIdx.x] = row < m && at + threadIdx.x < k ? a[row * k + at + threadIdx.x] : 0.0f;
    bs[threadIdx.y][threadIdx.x] = col < n && at + threadIdx.y < k ? b[(at + threadIdx.y) * n + col] : 0.0f;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < TILE; ++i) sum += as[threadIdx.y][i] * bs[i][threadIdx.x];
    __syncthreads();
  }
  if (row < m && col < n) c[row * n + col] = sum;
}

// One of several products, which the third index of the grid counts.
__global__ void gemm_batched(const float* a, const float* b, float* c, int m, int n, int k) {
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  const int col = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= m || col >= n) return;
  const float *x = a + blockIdx.z * m * k, *y = b + blockIdx.z * k * n;
  float sum = 0.0f;
  for (int i = 0; i < k; ++i) sum = fmaf(x[row * k + i], y[i * n + col], sum);
  c[(blockIdx.z * m + row) * n + col] = sum;
}

// A row of a matrix times a vector, by a warp, four numbers at a time.
__global__ void gemv_float4(const float4* matrix, const float4* vector, float* y, int rows, int quads) {
  const int row = (blockIdx.x * blockDim.x + threadIdx.x) / warpSize, lane = threadIdx.x % warpSize;
  if (row >= rows) return;
  float sum = 0.0f;
  for (int i = lane; i < quads; i += warpSize) {
    const float4 m = matrix[row * quads + i], v = vector[i];
    sum += m.x * v.x + m.y * v.y + m.z * v.z + m.w * v.w;
  }
  for (int offset = 16; offset > 0; offset >>= 1) sum += __shfl_down_sync(0xffffffff, sum, offset);
  if (lane == 0) y[row] = sum;
}
