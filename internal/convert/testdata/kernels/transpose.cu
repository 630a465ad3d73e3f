// Elements in another order.
#include <cuda_runtime.h>

#define TILE_DIM 32
#define BLOCK_ROWS 8

__global__ void transpose_tiles(float* out, const float* in, int width, int height) {
  __shared__ float tile[TILE_DIM][TILE_DIM + 1];
  int x = blockIdx.x * TILE_DIM + threadIdx.x, y = blockIdx.y * TILE_DIM + threadIdx.y;
  for (int j = 0; j < TILE_DIM; j += BLOCK_ROWS) {
    if (x < width && y + j < height) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * width + x];
  }
  __syncthreads();
  x = blockIdx.y * TILE_DIM + threadIdx.x, y = blockIdx.x * TILE_DIM + threadIdx.y;
  for (int j = 0; j < TILE_DIM; j += BLOCK_ROWS) {
    if (x < height && y + j < width) out[(y + j) * height + x] = tile[threadIdx.x][threadIdx.y + j];
  }
}

// [a][b][c] to [c][a][b], an element a thread.
template <typename T>
__global__ void permute_last_first(const T* __restrict__ x, T* __restrict__ y, unsigned a, unsigned b, unsigned c) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= a * b * c) return;
  const unsigned k = i % c, j = i / c % b, h = i / (b * c);
  y[(k * a + h) * b + j] = x[i];
}

// Rows by their numbers, as many blocks as there are rows.
__global__ void embedding(const float* table, const long long* ids, float* y, int columns, long long rows) {
  const long long id = ids[blockIdx.x];
  if (id < 0 || id >= rows) {
    for (int i = threadIdx.x; i < columns; i += blockDim.x) y[blockIdx.x * columns + i] = 0.0f;
    return;
  }
  for (int i = threadIdx.x; i < columns; i += blockDim.x) y[blockIdx.x * columns + i] = table[id * columns + i];
}
