// The emulator's definitions of the primitives for the device (backend/primitives.cuh has their contracts). They call
// the block that the running OS thread is.
#pragma once

#include "backend/emu/block_run.h"
#include "backend/emu/block_sync.h"

namespace rt::detail {

inline char* global(char* p) { return p; }
inline uint64_t global_place(const void* p) { return reinterpret_cast<uintptr_t>(p); }
inline void* global_at(uint64_t place) { return reinterpret_cast<void*>(static_cast<uintptr_t>(place)); }
inline int64_t mad_wide(int a, int b, int64_t c) { return int64_t{a} * b + c; }
inline float exp2(float x) { return std::exp2(x); }
inline float near_quotient(float x, float y) { return x / y; }
inline float larger(float a, float b) { return a > b || a != a ? a : b; }
inline uint32_t larger_pairs(uint32_t a, uint32_t b) {
  const uint32_t low = (a & 0xffff) > (b & 0xffff) ? a : b, high = a >> 16 > b >> 16 ? a : b;
  return (low & 0xffff) | (high & 0xffff0000);
}
inline int settled(int x) { return x; }
inline float settled(float x) { return x; }
inline int64_t settled(int64_t x) { return x; }
inline char* settled_shared(char* p) { return p; }

RT_EMU_QUIET inline uintptr_t shared_address(const void* p) { return reinterpret_cast<uintptr_t>(p); }
RT_EMU_QUIET inline int thread_index() { return emu::running_block->thread_index(); }
RT_EMU_QUIET inline int block_index() { return emu::running_block->index(); }
RT_EMU_QUIET inline int block_threads() { return emu::running_block->threads(); }
RT_EMU_QUIET inline char* shared_base() { return emu::running_block->shared(); }

RT_EMU_QUIET inline void block_barrier(int threads) { emu::running_block->barrier(0, threads); }
RT_EMU_QUIET inline void rtask_barrier(int threads) { emu::running_block->barrier(1, threads); }
RT_EMU_QUIET inline int rtask_barrier_count(int threads, bool predicate) {
  return emu::running_block->count_at(1, threads, predicate);
}
RT_EMU_QUIET inline void rtask_barrier_apart(int threads) { emu::running_block->barrier(1, threads); }
RT_EMU_QUIET inline int rtask_barrier_count_apart(int threads, bool predicate) {
  return emu::running_block->count_at(1, threads, predicate);
}
RT_EMU_QUIET inline void remaining_barrier() { emu::running_block->remaining_barrier(false); }
RT_EMU_QUIET inline int remaining_barrier_count(bool predicate) {
  return emu::running_block->remaining_barrier(predicate);
}
RT_EMU_QUIET inline void loader_ready(int threads) { emu::running_block->barrier_arrive(2, threads); }
RT_EMU_QUIET inline void wait_for_loader(int threads) { emu::running_block->barrier(2, threads); }
RT_EMU_QUIET inline void tell_fetched(uint32_t odd, int threads) {
  emu::running_block->barrier_arrive(4 + static_cast<int>(odd), threads);
}
RT_EMU_QUIET inline void wait_for_fetched(uint32_t odd, int threads) {
  emu::running_block->barrier(4 + static_cast<int>(odd), threads);
}
RT_EMU_QUIET inline void tell_used(uint32_t odd, int threads) {
  emu::running_block->barrier_arrive(6 + static_cast<int>(odd), threads);
}
RT_EMU_QUIET inline void wait_for_used(uint32_t odd, int threads) {
  emu::running_block->barrier(6 + static_cast<int>(odd), threads);
}

constexpr int kMostGroups = 8;
RT_EMU_QUIET inline void group_barrier(int group, int groups) { emu::running_block->barrier(8 + group, 128 * groups); }
RT_EMU_QUIET inline void groups_barrier(int threads) { emu::running_block->barrier(3, threads); }

// ThreadSanitizer does not know fences, so it is told what they order: a relaxed load is an acquire once a fence comes
// behind it, and a relaxed store is a release where a fence stands before it. Without their fences both order nothing.
#if defined(RT_EMU_TSAN)
inline void fence_acq_rel_gpu() { emu::running_block->fence(); }
inline uint64_t load_relaxed_gpu(const uint64_t* p) {
  emu::running_block->saw(p);
  return __atomic_load_n(p, __ATOMIC_RELAXED);
}
inline void store_relaxed_gpu(uint64_t* p, uint64_t v) {
  if (emu::running_block->fenced()) emu::order_release(p);
  __atomic_store_n(p, v, __ATOMIC_RELAXED);
  emu::running_block->grid()->publish();
}
inline void add_relaxed_gpu(uint64_t* p) {
  if (emu::running_block->fenced()) emu::order_release(p);
  __atomic_fetch_add(p, 1, __ATOMIC_RELAXED);
  emu::running_block->grid()->publish();
}
#else
inline void fence_acq_rel_gpu() { __atomic_thread_fence(__ATOMIC_ACQ_REL); }
inline uint64_t load_relaxed_gpu(const uint64_t* p) { return __atomic_load_n(p, __ATOMIC_RELAXED); }
inline void store_relaxed_gpu(uint64_t* p, uint64_t v) {
  __atomic_store_n(p, v, __ATOMIC_RELAXED);
  emu::running_block->grid()->publish();
}
inline void add_relaxed_gpu(uint64_t* p) {
  __atomic_fetch_add(p, 1, __ATOMIC_RELAXED);
  emu::running_block->grid()->publish();
}
#endif
inline uint64_t load_acquire_gpu(const uint64_t* p) { return __atomic_load_n(p, __ATOMIC_ACQUIRE); }
inline void store_release_gpu(uint64_t* p, uint64_t v) {
  __atomic_store_n(p, v, __ATOMIC_RELEASE);
  emu::running_block->grid()->publish();
}
inline void add_release_gpu(uint64_t* p) {
  __atomic_fetch_add(p, 1, __ATOMIC_RELEASE);
  emu::running_block->grid()->publish();
}

// Tagged words order nothing, so for ThreadSanitizer, too, their accesses are relaxed.
inline uint64_t load_word(const uint64_t* p) { return __atomic_load_n(p, __ATOMIC_RELAXED); }
inline uint64_t load_word_if(bool now, const uint64_t* p) { return now ? load_word(p) : 0; }
inline void load_words(const uint64_t* p, uint64_t (&v)[2]) {
  if (reinterpret_cast<uintptr_t>(p) % 16 != 0) emu::running_block->fail("a pair of tagged words that is not aligned");
  v[0] = load_word(p), v[1] = load_word(p + 1);
}
inline void store_word(uint64_t* p, uint64_t v) {
  __atomic_store_n(p, v, __ATOMIC_RELAXED);
  emu::running_block->grid()->publish();
}

inline uint32_t bits(uint32_t v) { return static_cast<uint32_t>(__builtin_popcount(v)); }

// Each block is a multiprocessor of its own, and both clocks are the host's.
inline uint64_t clock_nanoseconds() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}
inline uint64_t clock_cycles() { return clock_nanoseconds(); }
inline void both_clocks(uint64_t* cycles, uint64_t* nanoseconds) { *cycles = *nanoseconds = clock_nanoseconds(); }
inline uint32_t multiprocessor() { return static_cast<uint32_t>(block_index()); }

// All bits become 1, which is a NaN in every float type. Each thread overwrites its share, and a barrier follows.
inline void poison(char* smem, int bytes, int threads) {
  const int tid = thread_index();
  const int share = (bytes + threads - 1) / threads;
  const int from = tid * share, to = from + share < bytes ? from + share : bytes;
  if (from < to) std::memset(smem + from, 0xFF, static_cast<size_t>(to - from));
  block_barrier(threads);
}

inline uint64_t add_gpu(uint64_t* p, uint64_t n) { return __atomic_fetch_add(p, n, __ATOMIC_RELAXED); }
inline uint64_t compare_swap_gpu(uint64_t* p, uint64_t expected, uint64_t v) {
  __atomic_compare_exchange_n(p, &expected, v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return expected;
}
// Other blocks' OS threads run meanwhile; the block's other fibres do not.
inline void relax() {
  const timespec t{0, 50000};
  nanosleep(&t, nullptr);
}
inline void fence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

// One lane sleeps for its warp, and with it the whole block, which is one OS thread.
inline void nap(uint32_t ns) {
  if (thread_index() % emu::kWarp != 0) return;
  const timespec t{0, static_cast<long>(ns)};
  nanosleep(&t, nullptr);
}

// No wait is ended here: Grid finds out when nobody can go on. Between two looks at a flag the fibre leaves a note of
// what it waits for, and gives way to others.
class Patience {
 public:
  explicit Patience(uint64_t) {}
  ~Patience() {
    if (noted_) emu::running_block->clear_note();
  }
  template <class Report>
  void spent(bool waits, Report*, const Report& r) {
    if (waits) note(r);
    emu::running_block->pause();
  }
  template <class Report>
  void note(const Report& r) {
    emu::running_block->set_note(
        {r.set, r.segment, r.veu, r.step, r.on_veu, r.on_order, r.op, r.rtask, r.expected, r.seen});
    noted_ = true;
  }

 private:
  bool noted_ = false;
};

// The fibre of the loader's first lane makes a bulk copy, at once or after others have run.
constexpr int kFillArrivals = 1;

RT_EMU_QUIET inline emu::Mbarrier* mbarrier(uint64_t* bar) { return reinterpret_cast<emu::Mbarrier*>(bar); }
RT_EMU_QUIET inline void mbarrier_init(uint64_t* bar, int arrivals) {
  emu::Mbarrier* m = mbarrier(bar);
  m->completed = 0, m->arrived = 0, m->expected = static_cast<uint16_t>(arrivals);
}
inline void mbarrier_init_done() {}
RT_EMU_QUIET inline void mbarrier_arrive(uint64_t* bar) { emu::running_block->mbarrier_arrive(mbarrier(bar)); }
template <class Report>
inline void mbarrier_wait(uint64_t* bar, uint32_t phase, uint64_t patience_ns, Report*, const Report& r) {
  Patience patience(patience_ns);
  while (!emu::running_block->mbarrier_done(mbarrier(bar), phase)) {
    if (r.set) patience.note(r);
    emu::running_block->mbarrier_sleep(mbarrier(bar));
  }
}

RT_EMU_QUIET inline bool mbarrier_test(uint64_t* bar, uint32_t phase) {
  return emu::running_block->mbarrier_done(mbarrier(bar), phase);
}
template <class Report, class Meanwhile>
inline void mbarrier_wait(uint64_t* bar, uint32_t phase, uint64_t patience_ns, Report* notes, const Report& r,
                          Meanwhile) {
  mbarrier_wait(bar, phase, patience_ns, notes, r);
}

inline void fill_stage(char* stage, uint64_t* full, const char* from, uint32_t bytes, bool) {
  if (thread_index() % emu::kWarp != 0) return;
  if ((reinterpret_cast<uintptr_t>(stage) | reinterpret_cast<uintptr_t>(from) | bytes) % 16 != 0) {
    emu::running_block->fail("a bulk copy of what is not aligned to 16 bytes");
  }
  emu::running_block->maybe_lag();
  std::memcpy(stage, from, bytes);
  emu::running_block->mbarrier_arrive(mbarrier(full));
}

// When all warps have given a stage back, it is poisoned: a lane that reads it later finds NaNs. ThreadSanitizer does
// not see that; for it the next copy into the stage is what overwrites it.
RT_EMU_QUIET inline void free_stage(char* stage, int bytes, uint64_t* empty, bool one) {
  if (!one || !emu::running_block->mbarrier_arrive(mbarrier(empty))) return;
  volatile char* p = stage;
  for (int i = 0; i < bytes; ++i) p[i] = static_cast<char>(0xFF);
}

RT_EMU_QUIET inline void note_chunk() { emu::running_block->note_chunk(); }
RT_EMU_QUIET inline void note_inputs() { emu::running_block->note_inputs(); }
RT_EMU_QUIET inline void expect_streamed(uint32_t chunks, bool inputs) {
  emu::running_block->expect_streamed(chunks, inputs);
}

// Launches run one after another.
inline void allow_next_launch() {}
inline void wait_for_launches_before() {}
inline const char* inputs(const char* p) { return p; }

RT_EMU_QUIET inline bool all_lanes(bool predicate) { return emu::running_block->all_lanes(predicate); }
RT_EMU_QUIET inline void sync_warp() { emu::running_block->warp_barrier(); }

template <class T>
inline T ld_const(const T* p) {
  return *p;
}
template <class T>
inline T load_or_zero(const T* p, bool ok) {
  return ok ? *p : T{};
}

template <class T>
inline T exchange(T v, int from_lane) {
  static_assert(sizeof(T) <= 16, "a warp exchange moves at most 16 bytes");
  uint64_t in[2] = {0, 0}, out[2];
  std::memcpy(in, &v, sizeof(T));
  emu::running_block->exchange(in, from_lane, out);
  std::memcpy(&v, out, sizeof(T));
  return v;
}

inline bool one_lane() { return thread_index() % 32 == 0; }
inline int same_in_warp(int v) { return v; }
inline int kept_thread_index() { return thread_index(); }

template <class T>
inline T shfl_xor(T v, int mask) {
  return exchange(v, (thread_index() % emu::kWarp) ^ mask);
}
template <class T>
inline T shfl_down(T v, int delta) {
  const int lane = thread_index() % emu::kWarp;
  return exchange(v, lane + delta < emu::kWarp ? lane + delta : lane);
}
template <class T>
inline T shfl(T v, int lane) {
  return exchange(v, lane & (emu::kWarp - 1));
}

template <int Bytes>
inline void cp_async(void* smem, const void* gmem) {
  if ((reinterpret_cast<uintptr_t>(smem) | reinterpret_cast<uintptr_t>(gmem)) % Bytes != 0) {
    emu::running_block->fail("cp.async of an address that is not aligned to its size");
  }
  emu::running_block->add_copy(smem, gmem, Bytes);
}
template <int Bytes>
inline void cp_async_or_zero(void* smem, const void* gmem, bool ok) {
  if (ok) {
    cp_async<Bytes>(smem, gmem);
  } else {
    std::memset(smem, 0, Bytes);
  }
}
inline void cp_async_commit() { emu::running_block->commit_copies(); }
template <int N>
inline void cp_async_wait() {
  emu::running_block->finish_copies(N);
}
inline void prefetch(const void*, uint32_t) {}

}  // namespace rt::detail

#include "backend/emu/cluster.h"
#include "backend/emu/matrix.h"
#include "backend/emu/boxes.h"
#include "backend/emu/matrix_groups.h"
