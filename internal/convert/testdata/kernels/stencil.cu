// Elements from their neighbours.
#include <cuda_runtime.h>

namespace stencils {

constexpr int kRadius = 3;
enum { kBlock = 128 };

static __constant__ float weights[2 * kRadius + 1] = {0.05f, 0.1f, 0.2f, 0.3f, 0.2f, 0.1f, 0.05f};

// A line with its neighbours in shared memory.
__global__ void stencil_line(const float* x, float* y, int n) {
  __shared__ float line[kBlock + 2 * kRadius];
  const int i = blockIdx.x * kBlock + threadIdx.x, at = threadIdx.x + kRadius;
  line[at] = i < n ? x[i] : 0.0f;
  if (threadIdx.x < kRadius) {
    line[at - kRadius] = i >= kRadius ? x[i - kRadius] : 0.0f;
    line[at + kBlock] = i + kBlock < n ? x[i + kBlock] : 0.0f;
  }
  __syncthreads();
  if (i >= n) return;
  float sum = 0.0f;
  for (int r = -kRadius; r <= kRadius; ++r) sum += weights[r + kRadius] * line[at + r];
  y[i] = sum;
}

}  // namespace stencils

// Cubes of threads.
__global__ void stencil_cube(const float* x, float* y, int nz, int ny, int nx) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int j = blockIdx.y * blockDim.y + threadIdx.y;
  const int k = blockIdx.z * blockDim.z + threadIdx.z;
  if (i >= nx || j >= ny || k >= nz) return;
  const int at = (k * ny + j) * nx + i;
  float sum = -6.0f * x[at];
  sum += i > 0 ? x[at - 1] : 0.0f;
  sum += i < nx - 1 ? x[at + 1] : 0.0f;
  sum += j > 0 ? x[at - nx] : 0.0f;
  sum += j < ny - 1 ? x[at + nx] : 0.0f;
  sum += k > 0 ? x[at - nx * ny] : 0.0f;
  sum += k < nz - 1 ? x[at + nx * ny] : 0.0f;
  y[at] = sum;
}

// A window of an image that is larger than the block, loaded by strides along both dims.
template <int W, int H, int R>
__global__ void box_blur(const float* in, float* out, int width, int height) {
  __shared__ float window[H + 2 * R][W + 2 * R];
  const int x0 = blockIdx.x * W - R, y0 = blockIdx.y * H - R;
  for (int j = threadIdx.y; j < H + 2 * R; j += blockDim.y) {
    for (int i = threadIdx.x; i < W + 2 * R; i += blockDim.x) {
      const int x = min(max(x0 + i, 0), width - 1), y = min(max(y0 + j, 0), height - 1);
      window[j][i] = in[y * width + x];
    }
  }
  __syncthreads();
  const int x = blockIdx.x * W + threadIdx.x, y = blockIdx.y * H + threadIdx.y;
  if (x < width && y < height) {
    float sum = 0.0f;
    for (int j = 0; j <= 2 * R; ++j)
      for (int i = 0; i <= 2 * R; ++i) sum += window[threadIdx.y + j][threadIdx.x + i];
    out[y * width + x] = sum / ((2 * R + 1) * (2 * R + 1));
  }
}
