// The emulator's side of rt/device.cuh.
#pragma once

#include "cudaemu/block.h"

namespace rt::detail {

inline char* global(char* p) { return p; }

RT_EMU_QUIET inline int thread_index() { return emu::running_block->thread_index(); }
RT_EMU_QUIET inline int block_index() { return emu::running_block->index(); }
RT_EMU_QUIET inline int block_threads() { return emu::running_block->threads(); }
RT_EMU_QUIET inline char* shared_base() { return emu::running_block->shared(); }

RT_EMU_QUIET inline void block_barrier() { emu::running_block->barrier(0, emu::running_block->threads()); }
RT_EMU_QUIET inline void rtask_barrier(int threads) { emu::running_block->barrier(1, threads); }

// ThreadSanitizer knows no fences; there the flags' own accesses carry the order.
#if defined(RT_EMU_TSAN)
inline void fence_acq_rel_gpu() {}
inline uint64_t load_relaxed_gpu(const uint64_t* p) { return __atomic_load_n(p, __ATOMIC_ACQUIRE); }
inline void store_relaxed_gpu(uint64_t* p, uint64_t v) {
  __atomic_store_n(p, v, __ATOMIC_RELEASE);
  emu::running_block->grid()->publish();
}
inline void add_relaxed_gpu(uint64_t* p) {
  __atomic_fetch_add(p, 1, __ATOMIC_RELEASE);
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

// Tagged words carry nothing but themselves, also for ThreadSanitizer.
inline uint64_t load_word(const uint64_t* p) { return __atomic_load_n(p, __ATOMIC_RELAXED); }
inline void load_words(const uint64_t* p, uint64_t (&v)[2]) {
  if (reinterpret_cast<uintptr_t>(p) % 16 != 0) emu::running_block->fail("a pair of tagged words that is not aligned");
  v[0] = load_word(p), v[1] = load_word(p + 1);
}
inline void store_word(uint64_t* p, uint64_t v) {
  __atomic_store_n(p, v, __ATOMIC_RELAXED);
  emu::running_block->grid()->publish();
}

// A block is a multiprocessor here; both clocks are the host's.
inline uint64_t clock_nanoseconds() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}
inline uint64_t clock_cycles() { return clock_nanoseconds(); }
inline void both_clocks(uint64_t* cycles, uint64_t* nanoseconds) { *cycles = *nanoseconds = clock_nanoseconds(); }
inline uint32_t multiprocessor() { return static_cast<uint32_t>(block_index()); }

// What an rTask finds in shared memory is undefined: all ones, a NaN in every float type.
inline void poison(char* smem, int bytes) {
  const int tid = thread_index(), threads = block_threads();
  const int share = (bytes + threads - 1) / threads;
  const int from = tid * share, to = from + share < bytes ? from + share : bytes;
  if (from < to) std::memset(smem + from, 0xFF, static_cast<size_t>(to - from));
  block_barrier();
}

// Sleeps about so long; one lane does for its warp, and with it the block's whole OS thread.
inline void nap(uint32_t ns) {
  if (thread_index() % emu::kWarp != 0) return;
  const timespec t{0, static_cast<long>(ns)};
  nanosleep(&t, nullptr);
}

// Between two looks at a flag: leaves a note of what is waited for and gives way.
class Patience {
 public:
  explicit Patience(uint64_t) {}
  template <class Report>
  void spent(bool waits, Report*, const Report& r) {
    if (waits) {
      emu::running_block->set_note({r.set, r.segment, r.veu, r.step, r.on_veu, r.on_order, r.op, r.rtask, r.expected, r.seen});
    }
    emu::running_block->pause();
  }
};

// Launches do not overlap here.
inline void allow_next_launch() {}
inline void wait_for_launches_before() {}

RT_EMU_QUIET inline bool all_lanes(bool predicate) { return emu::running_block->all_lanes(predicate); }
RT_EMU_QUIET inline void sync_warp() { emu::running_block->warp_barrier(); }

template <class T>
inline T ld_const(const T* p) {
  return *p;
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
inline void cp_async_commit() { emu::running_block->commit_copies(); }
template <int N>
inline void cp_async_wait() {
  emu::running_block->finish_copies(N);
}

}  // namespace rt::detail
