// Chains of dependent products of a vector with N×N matrices, where each step has weights of its own. They are computed
// by cuBLAS in a CUDA graph, and by a kernel that is written for them. In that kernel a warp fills a ring of stages in
// shared memory with weights by bulk copies, and the other warps compute. The kernel is launched with programmatic
// dependent launch, so the ring is filled before the previous node has ended.
#pragma once

#include <cmath>
#include <cuda/ptx>
#include <memory>

#if __has_include(<cublas_v2.h>)
#include <cublas_v2.h>
#define HAVE_CUBLAS 1
#endif

#include "lab.cuh"

namespace products {

using lab::Lab;
using lab::Samples;
namespace ptx = cuda::ptx;

constexpr int kBlocks = 128;
constexpr int kWarps = 8;  // the warps that compute; one more fills the ring
constexpr int kThreads = 32 * (kWarps + 1);

// How the rows of a block are divided into stages of the ring.
template <int N>
struct Shape {
  static constexpr int kRows = N / kBlocks;                               // rows of a block
  static constexpr int kStageRows = 4096 / N < kRows ? 4096 / N : kRows;  // rows of a stage: 16 KB, or all of the block
  static constexpr int kStages = kRows / kStageRows;                      // stages of a step
  static constexpr int kSplit = kWarps / kStageRows;                      // warps that share a row
  static constexpr int kVectors = N / kSplit / 4 / 32;                    // float4 values of a lane
  static constexpr int kFloats = kStageRows * N;                          // floats of a stage
};

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
// Copies all stages of a step, each as soon as the ring has room for it.
template <int N, int Depth>
__device__ void load(const float* from, float* to, uint64_t* full, uint64_t* empty) {
  using S = Shape<N>;
  const uint32_t bytes = S::kFloats * sizeof(float);
  for (int s = 0; s < S::kStages; ++s) {
    const int at = s % Depth;
    if (s >= Depth) {
      while (!ptx::mbarrier_try_wait_parity(empty + at, (s / Depth - 1) & 1)) {
      }
    }
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, full + at, bytes);
    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, to + at * S::kFloats, from + s * S::kFloats, bytes,
                       full + at);
  }
}
#endif

// Computes y = W·x for the rows of this block. W is row-major, so they begin at w + blockIdx.x · rows · N.
template <int N, int Depth>
__global__ void __launch_bounds__(kThreads) ring(const float* w, const float* x, float* y) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  using S = Shape<N>;
  extern __shared__ __align__(128) float held[];
  __shared__ alignas(8) uint64_t full[Depth], empty[Depth];
  __shared__ float parts[S::kRows][S::kSplit];
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  if (threadIdx.x == 0) {
    for (int i = 0; i < Depth; ++i) {
      ptx::mbarrier_init(full + i, 1);
      ptx::mbarrier_init(empty + i, kWarps);
    }
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  __syncthreads();
  cudaTriggerProgrammaticLaunchCompletion();
  if (warp == kWarps) {
    if (lane == 0) load<N, Depth>(w + static_cast<size_t>(blockIdx.x) * S::kRows * N, held, full, empty);
  } else {
    cudaGridDependencySynchronize();
    const int row = warp / S::kSplit, part = warp % S::kSplit;
    float4 in[S::kVectors];
#pragma unroll
    for (int k = 0; k < S::kVectors; ++k) {
      in[k] = __ldcg(reinterpret_cast<const float4*>(x) + part * (N / S::kSplit / 4) + k * 32 + lane);
    }
    for (int s = 0; s < S::kStages; ++s) {
      const int at = s % Depth;
      while (!ptx::mbarrier_try_wait_parity(full + at, (s / Depth) & 1)) {
      }
      const auto* v = reinterpret_cast<const float4*>(held + at * S::kFloats + row * N + part * (N / S::kSplit));
      float sum = 0;
#pragma unroll
      for (int k = 0; k < S::kVectors; ++k) {
        const float4 a = v[k * 32 + lane];
        sum += a.x * in[k].x + a.y * in[k].y + a.z * in[k].z + a.w * in[k].w;
      }
#pragma unroll
      for (int mask = 16; mask > 0; mask /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, mask);
      if (lane == 0) {
        ptx::mbarrier_arrive(empty + at);
        parts[s * S::kStageRows + row][part] = sum;
      }
    }
  }
  __syncthreads();
  if (static_cast<int>(threadIdx.x) < S::kRows) {
    float sum = 0;
#pragma unroll
    for (int p = 0; p < S::kSplit; ++p) sum += parts[threadIdx.x][p];
    y[blockIdx.x * S::kRows + threadIdx.x] = sum;
  }
#endif
}

// The weights and vectors of a chain: x[0] is given, step s computes x[s + 1].
class Chain {
 public:
  Chain(Lab& l, int n, int steps) : lab(l), n(n), steps(steps), size(static_cast<size_t>(n) * n) {
    w = l.random(size * steps);
    scale(w, size * steps, std::sqrt(3.0f / n));
    x = l.random(static_cast<size_t>(n) * (steps + 1));
  }
  ~Chain() {
    cudaFree(w);
    cudaFree(x);
  }
  Chain(const Chain&) = delete;
  Chain& operator=(const Chain&) = delete;

  const float* weights(int s) const { return w + size * s; }
  float* vector(int s) const { return x + static_cast<size_t>(n) * s; }

  std::vector<float> result() const {
    std::vector<float> v(n);
    LAB_CHECK(cudaMemcpy(v.data(), vector(steps), n * sizeof(float), cudaMemcpyDeviceToHost));
    return v;
  }

  Lab& lab;
  const int n, steps;
  const size_t size;
  float *w, *x;

 private:
  void scale(float* p, size_t count, float by);
};

__global__ void multiply(float* p, size_t count, float by) {
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count; i += size_t{gridDim.x} * blockDim.x)
    p[i] *= by;
}
inline void Chain::scale(float* p, size_t count, float by) {
  multiply<<<lab.sms() * 8, 256, 0, lab.stream()>>>(p, count, by);
  LAB_CHECK(cudaGetLastError());
  LAB_CHECK(cudaStreamSynchronize(lab.stream()));
}

// Computes y = W·x or y = Wᵀ·x with one thread for each result. The other ways are checked against it.
__global__ void plain(const float* w, const float* x, float* y, int n, bool transposed) {
  const int row = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (row >= n) return;
  double sum = 0;
  for (int k = 0; k < n; ++k)
    sum += static_cast<double>(w[static_cast<size_t>(transposed ? k : row) * n + (transposed ? row : k)]) * x[k];
  y[row] = static_cast<float>(sum);
}

inline void check(const Chain& c, const char* who, bool transposed) {
  const std::vector<float> got = c.result();
  for (int s = 0; s < c.steps; ++s) {
    plain<<<(c.n + 31) / 32, 32, 0, c.lab.stream()>>>(c.weights(s), c.vector(s), c.vector(s + 1), c.n, transposed);
  }
  LAB_CHECK(cudaStreamSynchronize(c.lab.stream()));
  const std::vector<float> want = c.result();
  double difference = 0, norm = 0;
  for (int i = 0; i < c.n; ++i) {
    difference += (static_cast<double>(got[i]) - want[i]) * (static_cast<double>(got[i]) - want[i]);
    norm += static_cast<double>(want[i]) * want[i];
  }
  if (difference <= 1e-8 * norm && norm > 0) return;
  std::fprintf(stderr, "%s, N = %d: relative error %g\n", who, c.n, std::sqrt(difference / norm));
  std::exit(1);
}

// Captures a chain in a CUDA graph, checks its result, and times it, in nanoseconds per step.
template <class Add>
Samples timed(const Chain& c, const char* who, bool transposed, Add add) {
  Lab& l = c.lab;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  LAB_CHECK(cudaStreamBeginCapture(l.stream(), cudaStreamCaptureModeThreadLocal));
  for (int s = 0; s < c.steps; ++s) add(s);
  LAB_CHECK(cudaStreamEndCapture(l.stream(), &graph));
  LAB_CHECK(cudaGraphInstantiate(&exec, graph, 0));
  LAB_CHECK(cudaGraphLaunch(exec, l.stream()));
  LAB_CHECK(cudaStreamSynchronize(l.stream()));
  check(c, who, transposed);
  Samples s = l.times(c.steps, [&] { LAB_CHECK(cudaGraphLaunch(exec, l.stream())); });
  LAB_CHECK(cudaGraphExecDestroy(exec));
  LAB_CHECK(cudaGraphDestroy(graph));
  return s;
}

template <int N, int Steps, int Depth>
Samples by_ring(Lab& l) {
  Chain c(l, N, Steps);
  const int depth = Depth < Shape<N>::kStages ? Depth : Shape<N>::kStages;
  return timed(c, "the ring", false, [&](int s) {
    l.launch(ring<N, Depth>, kBlocks, kThreads, static_cast<size_t>(depth) * Shape<N>::kFloats * sizeof(float),
             cudaLaunchAttributeProgrammaticStreamSerialization, 1, c.weights(s), c.vector(s), c.vector(s + 1));
  });
}

#if HAVE_CUBLAS
inline void check_cublas(cublasStatus_t s, int line) {
  if (s == CUBLAS_STATUS_SUCCESS) return;
  std::fprintf(stderr, "line %d: cuBLAS status %d\n", line, static_cast<int>(s));
  std::exit(1);
}
#define CUBLAS_CHECK(call) check_cublas((call), __LINE__)

// cuBLAS expects column-major matrices, so what it sees is the transpose of the row-major W. It has to transpose that
// again for y = W·x, and takes it as it is for x·W, which is a model's MatMul of a vector with W.
template <int N, int Steps, bool Transposed>
Samples by_cublas(Lab& l) {
  constexpr size_t kWorkspace = 32 << 20;
  Chain c(l, N, Steps);
  cublasHandle_t handle = nullptr;
  CUBLAS_CHECK(cublasCreate(&handle));
  CUBLAS_CHECK(cublasSetStream(handle, l.stream()));
  CUBLAS_CHECK(cublasSetWorkspace(handle, l.zeroed<char>(kWorkspace), kWorkspace));
  const float one = 1, none = 0;
  auto product = [&](int s) {
    CUBLAS_CHECK(cublasSgemv(handle, Transposed ? CUBLAS_OP_N : CUBLAS_OP_T, N, N, &one, c.weights(s), N, c.vector(s),
                             1, &none, c.vector(s + 1), 1));
  };
  product(0);  // at its first call cuBLAS loads and chooses kernels, which must not be captured
  LAB_CHECK(cudaStreamSynchronize(l.stream()));
  Samples s = timed(c, "cuBLAS", Transposed, product);
  CUBLAS_CHECK(cublasDestroy(handle));
  return s;
}
#endif

}  // namespace products
