// Running sums.
#include <cuda_runtime.h>

// Steps of doubling length between two halves of shared memory.
__global__ void scan_doubling(const int* x, int* y, int n) {
  extern __shared__ int halves[];
  const int tid = threadIdx.x;
  int out = 0, in = 1;
  halves[tid] = tid < n ? x[blockIdx.x * n + tid] : 0;
  __syncthreads();
  for (int offset = 1; offset < blockDim.x; offset *= 2) {
    out = 1 - out, in = 1 - in;
    const int v = halves[in * blockDim.x + tid];
    halves[out * blockDim.x + tid] = tid >= offset ? v + halves[in * blockDim.x + tid - offset] : v;
    __syncthreads();
  }
  if (tid < n) y[blockIdx.x * n + tid] = halves[out * blockDim.x + tid];
}

// Up and down a tree, with barriers in both loops.
template <int N>
__global__ void scan_tree(const float* x, float* y) {
  __shared__ float tree[N];
  const int tid = threadIdx.x;
  tree[2 * tid] = x[blockIdx.x * N + 2 * tid];
  tree[2 * tid + 1] = x[blockIdx.x * N + 2 * tid + 1];
  int offset = 1;
  for (int d = N >> 1; d > 0; d >>= 1) {
    __syncthreads();
    if (tid < d) tree[offset * (2 * tid + 2) - 1] += tree[offset * (2 * tid + 1) - 1];
    offset *= 2;
  }
  if (tid == 0) tree[N - 1] = 0.0f;
  for (int d = 1; d < N; d *= 2) {
    offset >>= 1;
    __syncthreads();
    if (tid < d) {
      const int a = offset * (2 * tid + 1) - 1, b = offset * (2 * tid + 2) - 1;
      const float t = tree[a];
      tree[a] = tree[b];
      tree[b] += t;
    }
  }
  __syncthreads();
  y[blockIdx.x * N + 2 * tid] = tree[2 * tid];
  y[blockIdx.x * N + 2 * tid + 1] = tree[2 * tid + 1];
}

// Warps scan with shuffles, and one warp scans what they have.
__global__ void scan_warps(const int* x, int* y, int n) {
  __shared__ int sums[8];
  const int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31, warp = threadIdx.x / 32;
  int v = i < n ? x[i] : 0;
  for (int d = 1; d < 32; d <<= 1) {
    const int other = __shfl_up_sync(0xffffffff, v, d);
    if (lane >= d) v += other;
  }
  if (lane == 31) sums[warp] = v;
  __syncthreads();
  if (warp == 0) {
    int s = lane < 8 ? sums[lane] : 0;
    for (int d = 1; d < 8; d <<= 1) {
      const int other = __shfl_up_sync(0xffffffff, s, d, 8);
      if (lane >= d) s += other;
    }
    if (lane < 8) sums[lane] = s;
  }
  __syncthreads();
  if (warp > 0) v += sums[warp - 1];
  if (i < n) y[i] = v;
}

// Positions of the elements that are kept, by votes of warps.
__global__ void compact_places(const int* x, int* places, int n, int threshold) {
  __shared__ int of_warp[4];
  const int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const bool keep = i < n && x[i] > threshold;
  const unsigned votes = __ballot_sync(0xffffffffu, keep);
  if (lane == 0) of_warp[warp] = __popc(votes);
  __syncthreads();
  int before = __popc(votes & ((1u << lane) - 1u));
  for (int w = 0; w < warp; ++w) before += of_warp[w];
  if (i < n) places[i] = keep ? before : -1;
}
