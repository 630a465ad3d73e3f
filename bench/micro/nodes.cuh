// The steps of the models of bench/models.py as one would write them by hand: each step is a kernel node of a CUDA
// graph, with programmatic dependent launch from one to the next.
#pragma once

#include "lab.cuh"

namespace nodes {

using lab::Lab;
using lab::Samples;

constexpr int kValues = 256;  // the greatest number of values in a row
constexpr int kShort = 100, kLong = 400;

// A step of a pattern in which block i computes row i.
//
// A node may start while the one before it is about to end. It must not read or write before that one has ended.
__device__ inline void wait_for_rows() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
  cudaGridDependencySynchronize();
#endif
}

// Row i becomes the mean of rows i and i + 1.
__global__ void sparse(const float* from, float* to, const float*, int values) {
  wait_for_rows();
  const int row = static_cast<int>(blockIdx.x), other = (row + 1) % static_cast<int>(gridDim.x), i = threadIdx.x;
  if (i < values) to[row * values + i] = 0.5f * (__ldcg(from + row * values + i) + __ldcg(from + other * values + i));
}

// Row i becomes the mean of 16 other rows.
__global__ void dense(const float* from, float* to, const float*, int values) {
  wait_for_rows();
  const int row = static_cast<int>(blockIdx.x), i = threadIdx.x;
  float v[16];
#pragma unroll
  for (int k = 0; k < 16; ++k) v[k] = __ldcg(from + (row + 1 + 8 * k) % static_cast<int>(gridDim.x) * values + i);
  float sum = 0;
#pragma unroll
  for (int k = 0; k < 16; ++k) sum += v[k];
  to[row * values + i] = sum * (1.0f / 16);
}

// Every row becomes the mean of all eight rows and an operand of its own in this step.
__global__ void group(const float* from, float* to, const float* fed, int values) {
  const int row = static_cast<int>(blockIdx.x), i = threadIdx.x;
  float sum = __ldg(fed + row * values + i);
  wait_for_rows();
  float v[8];
#pragma unroll
  for (int k = 0; k < 8; ++k) v[k] = __ldcg(from + k * values + i);
#pragma unroll
  for (int k = 0; k < 8; ++k) sum += v[k];
  to[row * values + i] = sum * (1.0f / 9);
}

using Kernel = void (*)(const float*, float*, const float*, int);

// What a pattern computes, computed on the host in double precision.
inline double expected(Kernel kernel, const std::vector<double>& from, const float* fed, int rows, int values, int row,
                       int i) {
  auto at = [&](int r) { return from[static_cast<size_t>(r % rows) * values + i]; };
  double sum = 0;
  if (kernel == sparse) return (at(row) + at(row + 1)) / 2;
  if (kernel == dense) {
    for (int k = 0; k < 16; ++k) sum += at(row + 1 + 8 * k);
    return sum / 16;
  }
  for (int k = 0; k < 8; ++k) sum += at(k);
  return (sum + fed[row * values + i]) / 9;
}

// A chain of nodes. Two buffers take turns as input and output.
class Chain {
 public:
  Chain(Lab& l, Kernel kernel, int rows, int values, int steps)
      : lab_(l), kernel_(kernel), rows_(rows), values_(values), steps_(steps) {
    const size_t count = static_cast<size_t>(rows) * values;
    first_ = l.random(count);
    fed_ = l.random(count * steps);
    for (float*& b : buffers_) b = l.zeroed<float>(count);
    cudaGraph_t graph = nullptr;
    LAB_CHECK(cudaStreamBeginCapture(l.stream(), cudaStreamCaptureModeThreadLocal));
    for (int s = 0; s < steps; ++s) add(s);
    LAB_CHECK(cudaStreamEndCapture(l.stream(), &graph));
    LAB_CHECK(cudaGraphInstantiate(&exec_, graph, 0));
    LAB_CHECK(cudaGraphDestroy(graph));
  }
  ~Chain() {
    cudaGraphExecDestroy(exec_);
    cudaFree(first_);
    cudaFree(fed_);
    for (float* b : buffers_) cudaFree(b);
  }
  Chain(const Chain&) = delete;
  Chain& operator=(const Chain&) = delete;

  void run() { LAB_CHECK(cudaGraphLaunch(exec_, lab_.stream())); }

  void check() {
    const size_t count = static_cast<size_t>(rows_) * values_;
    std::vector<float> start(count), fed(count * steps_), got(count);
    LAB_CHECK(cudaMemcpy(start.data(), first_, count * sizeof(float), cudaMemcpyDeviceToHost));
    LAB_CHECK(cudaMemcpy(fed.data(), fed_, count * steps_ * sizeof(float), cudaMemcpyDeviceToHost));
    run();
    LAB_CHECK(cudaStreamSynchronize(lab_.stream()));
    LAB_CHECK(cudaMemcpy(got.data(), buffers_[steps_ % 2], count * sizeof(float), cudaMemcpyDeviceToHost));
    std::vector<double> now(start.begin(), start.end()), next(count);
    for (int s = 0; s < steps_; ++s, now.swap(next)) {
      for (size_t n = 0; n < count; ++n) {
        const int row = static_cast<int>(n) / values_, i = static_cast<int>(n) % values_;
        next[n] = expected(kernel_, now, fed.data() + count * s, rows_, values_, row, i);
      }
    }
    for (size_t n = 0; n < count; ++n) {
      if (fabs(got[n] - now[n]) < 1e-5) continue;
      std::fprintf(stderr, "a hand-written node computes %g where %g is right\n", got[n], now[n]);
      std::exit(1);
    }
  }

 private:
  void add(int step) {
    const float* from = step == 0 ? first_ : buffers_[step % 2];
    const float* fed = fed_ + static_cast<size_t>(step) * rows_ * values_;
    const int threads = (values_ + 31) / 32 * 32;
    lab_.launch(kernel_, rows_, threads, 0, cudaLaunchAttributeProgrammaticStreamSerialization, 1, from,
                buffers_[(step + 1) % 2], fed, values_);
  }

  Lab& lab_;
  Kernel kernel_;
  int rows_, values_, steps_;
  float *first_ = nullptr, *fed_ = nullptr, *buffers_[2] = {};
  cudaGraphExec_t exec_ = nullptr;
};

// The time of a step in nanoseconds, from the difference between a long and a short chain.
inline Samples step(Lab& l, Kernel kernel, int rows, int values) {
  Chain brief(l, kernel, rows, values, kShort), lengthy(l, kernel, rows, values, kLong);
  brief.check();
  const Samples a = l.times(1, [&] { brief.run(); }), b = l.times(1, [&] { lengthy.run(); });
  Samples out;
  for (size_t i = 0; i < a.size(); ++i) out.push_back((b[i] - a[i]) / (kLong - kShort));
  return out;
}

template <int Values>
Samples sparse_step(Lab& l) {
  return step(l, sparse, l.sms(), Values);
}
inline Samples dense_step(Lab& l) { return step(l, dense, l.sms(), kValues); }
inline Samples group_step(Lab& l) { return step(l, group, 8, kValues); }

}  // namespace nodes
