// What the sources of candidates and the machine that measures them share.
//
// A candidate's kernel runs rTasks by a table: which block computes which rTasks, one after another. So one program
// measures a single rTask, a wave, half a wave and all rTasks, without another run of the compiler.
#pragma once

#include "rt/host/harness.cuh"

namespace measure {

using rt::harness::Bases;
using rt::harness::Block;

// The address space of tensor maps, and how many a candidate may have; all others are the machine's memory.
constexpr int kMapSpace = rt::harness::kSpaces - 1, kMostMaps = 4;

// A launch. Block b computes rtasks[first[b]] … rtasks[first[b + 1] - 1], and notes in cycles[b] what they took.
struct Job {
  Bases bases;
  const Block* weights;   // of each rTask, if it streams them
  const rt::Move* moves;  // of each rTask: its imports, then its exports, if the executor carries them out
  int imports, exports;   // how many of them an rTask has
  const int* first;
  const int* rtasks;
  uint64_t* cycles;
};

// The thread block that runs rTasks of K. An rKernel that streams weights gets one more warp, the loader, and a ring
// that is as large as in programs whose launches overlap.
template <class K>
struct Layout {
  static constexpr int kThreads = K::kThreads;
  static constexpr size_t kShared = K::kShared;
};
template <rt::Streams K>
struct Layout<K> {
  static constexpr int kStageBytes = (K::kStreamStep + 127) / 128 * 128;
  using WeightRing = rt::Ring<kStageBytes>;
  static constexpr size_t kRingBytes = 64 << 10;
  static constexpr int kStages = kRingBytes / kStageBytes < 2 ? 2 : int(kRingBytes / kStageBytes);
  static constexpr int kThreads = K::kThreads + 32;
  static constexpr size_t kRing = (K::kShared + 127) / 128 * 128;
  static constexpr size_t kShared = kRing + WeightRing::bytes(kStages);
};

// The kernel of candidates whose operands the executor brings, or whose weights stay on chip, and how many words they
// import at most. See run_staged.
template <class K, int kWords>
struct Staged {
  using Kernel = K;
  using Args = typename K::Args;
  static constexpr int kThreads = K::kThreads;
  static constexpr int kImports = (K::kShared + 127) / 128 * 128;
  static constexpr int kShared = kImports + 4 * kWords;
};
template <class K>
concept IsStaged = requires { K::kImports; };
template <class K>
concept KeepsOnChip = requires { typename K::Resident; };

template <rt::Streams K>
RT_DEVICE void load(const Job& job, int from, int to) {
  typename Layout<K>::WeightRing ring(rt::detail::shared_base() + Layout<K>::kRing, Layout<K>::kStages);
  ring.open(K::kThreads);
  rt::RingPlace place;
  rt::Watch nobody;
  for (int i = from; i < to; ++i) {
    const Block b = job.weights[job.rtasks[i]];
    const char* at = job.bases.at[b.at.bits >> rt::kSpaceShift] + (b.at.bits & rt::kRefOffsetMask);
    ring.feed(place, at, b.words, K::kStreamStep / 16, nobody);
  }
}

// One thread of a launch.
// Runs one rTask whose operands the executor brings. In a program it has waited for them, and has loaded its weights
// steps before, so neither is a part of its time: the cycles that it returns.
template <IsStaged S>
RT_DEVICE uint64_t run_staged(const typename S::Args& args, const Job& job, rt::Task t, int rtask) {
  using K = typename S::Kernel;
  const rt::Move* moves = job.moves + rtask * (job.imports + job.exports);
  float* in = reinterpret_cast<float*>(t.smem + S::kImports);
  for (int k = 0; k < job.imports; ++k) {
    for (int i = t.tid; i < moves[k].count; i += K::kThreads) {
      in[moves[k].staged + i] = t.ptr<const float>(rt::Ref{moves[k].at})[i * moves[k].step];
    }
  }
  t.in = in, t.exports = moves + job.imports, t.export_count = job.exports;
  t.sync();
  uint64_t begin = 0;
  if constexpr (KeepsOnChip<K>) {
    typename K::Resident kept;
    K::load(t, args, rtask, kept);
    K::prepare(t, args, rtask, kept);
    t.sync();
    begin = rt::detail::clock_cycles();
    K::compute_rtask(t, args, rtask, kept);
  } else {
    begin = rt::detail::clock_cycles();
    K::compute_rtask(t, args, rtask);
  }
  t.sync();
  return rt::detail::clock_cycles() - begin;
}

template <IsStaged K>
RT_DEVICE void run_thread(const typename K::Args& args, const Job& job) {
  const int block = rt::detail::block_index(), tid = rt::detail::thread_index();
  rt::Task t{tid, rt::detail::shared_base(), job.bases.at, K::kThreads};
  uint64_t spent = 0;
  for (int i = job.first[block]; i < job.first[block + 1]; ++i) {
    spent += run_staged<K>(args, job, t, job.rtasks[i]);
  }
  if (tid == 0) job.cycles[block] = spent;
}

template <class K>
  requires(!IsStaged<K>)
RT_DEVICE void run_thread(const typename K::Args& args, const Job& job) {
  const int block = rt::detail::block_index(), tid = rt::detail::thread_index();
  const int from = job.first[block], to = job.first[block + 1];
  rt::Task t{tid, rt::detail::shared_base(), job.bases.at, K::kThreads};
  [[maybe_unused]] rt::RingPlace place;
  if constexpr (rt::Streams<K>) {
    if (tid >= K::kThreads) return load<K>(job, from, to);
    rt::detail::wait_for_loader(Layout<K>::kThreads);
  }
  int next = from < to ? job.rtasks[from] : 0;
  t.sync();
  const uint64_t begin = rt::detail::clock_cycles();
  for (int i = from; i < to; ++i) {
    const int rtask = next;
    if (i + 1 < to) next = job.rtasks[i + 1];
    if constexpr (rt::Streams<K>) {
      constexpr uint32_t kChunk = K::kStreamStep / 16;
      const rt::Chunks chunks{kChunk, job.weights[rtask].words / kChunk};
      typename Layout<K>::WeightRing ring(rt::detail::shared_base() + Layout<K>::kRing, Layout<K>::kStages);
      t.stream = ring.stream(chunks, place, rt::Watch{});
      K::compute_rtask(t, args, rtask);
      rt::detail::expect_streamed(chunks.count, true);
      place.pass(chunks.count, Layout<K>::kStages);
    } else {
      K::compute_rtask(t, args, rtask);
    }
    t.sync();
  }
  if (tid == 0) job.cycles[block] = rt::detail::clock_cycles() - begin;
}

// What the compiler made of a kernel.
struct Code {
  int registers, local, shared;
};

// A candidate.
struct Entry {
  // Starts the launch of so many blocks, in order with all others of that stream. false: it failed, and error has why.
  bool (*launch)(const void* args, const Job&, int blocks, void* stream, char (&error)[256]);
  Code (*code)();
  const void* args;
  const Block* weights;   // of its rTasks, on the host; null if it streams none
  const rt::Move* moves;  // likewise: imports and exports of each rTask; null if it moves its data itself
  int imports, exports;
  int rtasks;
  // The members of args whose tensor maps the machine makes.
  rt::TiledMatrix* const* matrices;
  int matrix_count;
};

// The source of candidates defines these.
extern const Entry entries[];
extern const int entry_count;

#if defined(__CUDACC__)

// Kernels get names of their own, by which the compiler's reports know them.
#define MEASURED_KERNEL(K, NAME)                                                             \
  extern "C" __global__ void __launch_bounds__(measure::Layout<K>::kThreads)                 \
      NAME(const __grid_constant__ K::Args args, const __grid_constant__ measure::Job job) { \
    measure::run_thread<K>(args, job);                                                       \
  }                                                                                          \
  struct NAME##_of {                                                                         \
    using Kernel = K;                                                                        \
    static auto at() { return NAME; }                                                        \
  };

template <class Of>
Code code_of() {
  using K = typename Of::Kernel;
  cudaFuncAttributes a{};
  cudaFuncGetAttributes(&a, Of::at());
  return {a.numRegs, int(a.localSizeBytes), int(a.sharedSizeBytes + Layout<K>::kShared)};
}

template <class Of>
bool launch_of(const void* args, const Job& job, int blocks, void* stream, char (&error)[256]) {
  using K = typename Of::Kernel;
  cudaError_t e = cudaFuncSetAttribute(Of::at(), cudaFuncAttributeMaxDynamicSharedMemorySize, int(Layout<K>::kShared));
  if (e == cudaSuccess) {
    Of::at()<<<blocks, Layout<K>::kThreads, Layout<K>::kShared, static_cast<cudaStream_t>(stream)>>>(
        *static_cast<const typename K::Args*>(args), job);
    e = cudaGetLastError();
  }
  if (e != cudaSuccess) std::snprintf(error, sizeof error, "%s", cudaGetErrorString(e));
  return e == cudaSuccess;
}

#else

#define MEASURED_KERNEL(K, NAME) \
  struct NAME##_of {             \
    using Kernel = K;            \
  };

template <class K>
struct Thread {
  const typename K::Args* args;
  const Job* job;
};

template <class K>
void emulated_thread(void* p) {
  const Thread<K>& t = *static_cast<Thread<K>*>(p);
  if (rt::detail::thread_index() < K::kThreads) {
    rt::detail::poison(rt::detail::shared_base(), K::kShared, K::kThreads);
  }
  run_thread<K>(*t.args, *t.job);
}

template <class Of>
Code code_of() {
  return {0, 0, int(Layout<typename Of::Kernel>::kShared)};
}

template <class Of>
bool launch_of(const void* args, const Job& job, int blocks, void*, char (&error)[256]) {
  using K = typename Of::Kernel;
  Thread<K> thread{static_cast<const typename K::Args*>(args), &job};
  rt::emu::Launch l;
  l.grid = blocks, l.threads = Layout<K>::kThreads, l.shared = Layout<K>::kShared;
  rt::emu::Failure f;
  const bool ok = rt::emu::run_launch(l, emulated_thread<K>, &thread, &f);
  if (!ok) std::snprintf(error, sizeof error, "%s", f.text);
  return ok;
}

#endif

}  // namespace measure
