// Runs all rTasks of one rKernel without a program, for tests of rKernels: on the GPU where nvcc compiles it, elsewhere
// on the emulator.
#pragma once

#include <cstdio>

#include "rt/device/device.cuh"
#include "rt/exec/ring.cuh"

#if !defined(__CUDACC__)
#include "backend/emu/launch.h"
#endif

namespace rt::harness {

constexpr int kSpaces = 32;

struct Bases {
  char* at[kSpaces];
};

struct Result {
  bool ok = true;
  char error[256] = "";
};

// The weights that an rTask streams; their length is in units of 16 bytes.
struct Block {
  Ref at;
  uint32_t words;
};

// The thread block of one rTask. An rKernel that streams weights gets the smallest ring there is, so that its weights
// do not fit at once.
template <class K>
struct Layout {
  static constexpr int kThreads = K::kThreads;
  static constexpr size_t kShared = K::kShared;
};
template <Streams K>
struct Layout<K> {
  using WeightRing = Ring<(K::kStreamStep + 127) / 128 * 128>;
  static constexpr int kStages = 2;
  static constexpr int kThreads = K::kThreads + 32;
  static constexpr size_t kRing = (K::kShared + 127) / 128 * 128;
  static constexpr size_t kShared = kRing + WeightRing::bytes(kStages);
};

// blocks has the weights of each rTask, if K streams weights. What an rKernel does of which Alone tells that its rTasks
// have their blocks for themselves (Task::alone) may differ from what it does elsewhere.
template <class K, bool Alone>
RT_DEVICE void run_thread(const typename K::Args& args, const Bases& bases, [[maybe_unused]] const Block* blocks,
                          int first) {
  const int rtask = first + detail::block_index();
  Task t{detail::thread_index(), detail::shared_base(), bases.at, K::kThreads};
  if constexpr (Streams<K>) {
    using WeightRing = typename Layout<K>::WeightRing;
    WeightRing ring(t.smem + Layout<K>::kRing, Layout<K>::kStages);
    constexpr uint32_t kChunk = K::kStreamStep / 16;
    const Block b = blocks[rtask];
    const Chunks chunks{kChunk, b.words / kChunk};
    if (t.tid >= K::kThreads) {
      ring.open(K::kThreads);
      RingPlace first;
      Watch nobody;
      return ring.feed(first, t.template ptr<const char>(b.at), b.words, kChunk, nobody);
    }
    detail::wait_for_loader(Layout<K>::kThreads);
    t.stream = ring.stream(chunks, RingPlace{}, Watch{});
    K::compute_rtask(t, args, rtask);
    detail::expect_streamed(chunks.count, true);
  } else {
    t.alone = Alone;
    K::compute_rtask(t, args, rtask);
  }
}

#if defined(__CUDACC__)

template <class K, bool Alone>
__global__ void __launch_bounds__(Layout<K>::kThreads)
    run_one(typename K::Args args, Bases bases, const Block* blocks, int first) {
  run_thread<K, Alone>(args, bases, blocks, first);
}

// Runs so many rTasks from the first on, in one launch, since they are independent. bases.at[s] is the device address
// of space s.
template <class K, bool Alone = false>
Result run(const typename K::Args& args, int rtasks, const Bases& bases, uint64_t = 1, const Block* blocks = nullptr,
           int first = 0) {
  Result r;
  Block* on_device = nullptr;
  const size_t bytes = blocks ? sizeof(Block) * static_cast<size_t>(first + rtasks) : 0;
  cudaError_t e = cudaFuncSetAttribute(run_one<K, Alone>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                       static_cast<int>(Layout<K>::kShared));
  if (e == cudaSuccess && blocks) e = cudaMalloc(&on_device, bytes);
  if (e == cudaSuccess && blocks) e = cudaMemcpy(on_device, blocks, bytes, cudaMemcpyHostToDevice);
  if (e == cudaSuccess) {
    run_one<K, Alone><<<rtasks, Layout<K>::kThreads, Layout<K>::kShared>>>(args, bases, on_device, first);
    e = cudaGetLastError();
  }
  if (e == cudaSuccess) e = cudaDeviceSynchronize();
  cudaFree(on_device);
  if (e != cudaSuccess) {
    r.ok = false;
    std::snprintf(r.error, sizeof r.error, "%s", cudaGetErrorString(e));
  }
  return r;
}

#else

struct Job {
  const void* args;
  const Bases* bases;
  const Block* blocks;
  int first;
};

template <class K, bool Alone>
void run_one(void* p) {
  const Job& job = *static_cast<const Job*>(p);
  if (detail::thread_index() < K::kThreads) detail::poison(detail::shared_base(), K::kShared, K::kThreads);
  run_thread<K, Alone>(*static_cast<const typename K::Args*>(job.args), *job.bases, job.blocks, job.first);
}

// What is the same for all rKernels: tests instantiate run hundreds of times.
inline Result run_job(Job job, int rtasks, int threads, size_t shared, uint64_t seed, void (*entry)(void*)) {
  Result r;
  emu::Launch l;
  l.grid = rtasks, l.threads = threads, l.shared = shared, l.seed = seed;
  emu::Failure f;
  r.ok = emu::run_launch(l, entry, &job, &f);
  if (!r.ok) std::snprintf(r.error, sizeof r.error, "%s", f.text);
  return r;
}

// The same on the emulator. bases.at[s] is the address of space s; the seed draws the order of threads.
template <class K, bool Alone = false>
Result run(const typename K::Args& args, int rtasks, const Bases& bases, uint64_t seed = 1,
           const Block* blocks = nullptr, int first = 0) {
  return run_job({&args, &bases, blocks, first}, rtasks, Layout<K>::kThreads, Layout<K>::kShared, seed,
                 run_one<K, Alone>);
}

#endif

}  // namespace rt::harness
