// Converted from norm.cu by rammerc: softmax_rows<float, 128>.
#pragma once

#if defined(__CUDACC__)
#include <cuda_fp16.h>
#endif
#include <math.h>

#include "rt/device/launch.cuh"

namespace converted::softmax_rows {

using Launch = rt::Launch;
constexpr int kStaticShared = 128;

namespace {
template <class T>
struct Sum {
  __device__ __forceinline__ T operator()(T a, T b) const { return a + b; }
};
}  // namespace

namespace {
template <class T>
struct Max {
  __device__ __forceinline__ T operator()(T a, T b) const { return a > b ? a : b; }
};
}  // namespace

namespace {
template <class T, class Op>
__device__ T reduce_block(Launch& launch, T v, Op op, T* scratch) {
  for (int offset = 16; offset > 0; offset >>= 1) v = op(v, __shfl_xor_sync(0xffffffffu, v, offset));
  launch.syncthreads();
  if (launch.threadIdx.x % 32 == 0) scratch[launch.threadIdx.x / 32] = v;
  launch.syncthreads();
  v = scratch[0];
  for (int i = 1; i < launch.blockDim.x / 32; ++i) v = op(v, scratch[i]);
  return v;
}
}  // namespace

template <typename T, int THREADS>
RT_DEVICE void softmax_rows(Launch& launch, const T* x, T* y, int columns) {
  auto& scratch = launch.shared<float[THREADS / 32], 0, 16>();
  x += launch.blockIdx.x * columns, y += launch.blockIdx.x * columns;
  float most = -INFINITY;
  for (int i = launch.threadIdx.x; i < columns; i += THREADS) most = fmaxf(most, float(x[i]));
  most = reduce_block(launch, most, Max<float>(), scratch);
  float sum = 0.0f;
  for (int i = launch.threadIdx.x; i < columns; i += THREADS) sum += expf(float(x[i]) - most);
  sum = reduce_block(launch, sum, Sum<float>(), scratch);
  for (int i = launch.threadIdx.x; i < columns; i += THREADS) y[i] = T(expf(float(x[i]) - most) / sum);
}

struct Kernel {
  struct Args {
    rt::Div grid[1];
    rt::Ref x;
    rt::Ref y;
    int32_t columns;
  };
  static constexpr int kThreads = 128;
  static constexpr int kShared = kStaticShared + 0;

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    Launch launch(t, rtask, a.grid, rt::Extents<128, 1, 1>());
    softmax_rows<float, 128>(launch, rt::AnyPointer{t.ptr<char>(a.x)}, rt::AnyPointer{t.ptr<char>(a.y)}, a.columns);
  }
};

}  // namespace converted::softmax_rows
