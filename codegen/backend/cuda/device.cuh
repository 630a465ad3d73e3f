// The CUDA side of rt/device/device.cuh. Bare PTX stands here and nowhere else.
#pragma once

#include <cuda_runtime.h>

namespace rt::detail {

// Buffers live in global memory; saying so turns generic loads and stores into global ones.
RT_DEVICE char* global(char* p) {
  __builtin_assume(__isGlobal(p));
  return p;
}

// Through such a number, too, loads and stores stay global ones.
RT_DEVICE uint64_t global_place(const void* p) { return __cvta_generic_to_global(p); }
RT_DEVICE void* global_at(uint64_t place) { return __cvta_global_to_generic(place); }

// a·b + c in one instruction. The compiler makes several of it where it has moved an operand's extension
// to 64 bits into another block.
RT_DEVICE int64_t mad_wide(int a, int b, int64_t c) {
  int64_t r;
  asm("mad.wide.s32 %0, %1, %2, %3;" : "=l"(r) : "r"(a), "r"(b), "l"(c));
  return r;
}

// The compiler takes it for a number that came from elsewhere.
RT_DEVICE int settled(int x) {
  asm volatile("" : "+r"(x));
  return x;
}
RT_DEVICE float settled(float x) {
  asm volatile("" : "+f"(x));
  return x;
}

// Quotients and remainders of numbers that are not negative are shifts and masks.
RT_DEVICE int thread_index() {
  const int n = static_cast<int>(threadIdx.x);
  __builtin_assume(n >= 0 && n < 1024);
  return n;
}
RT_DEVICE int block_index() { return static_cast<int>(blockIdx.x); }
RT_DEVICE int block_threads() { return static_cast<int>(blockDim.x); }

RT_DEVICE char* shared_base() {
  extern __shared__ __align__(128) char rt_shared_memory[];
  return rt_shared_memory;
}

// Barrier 0 is the vEU's, of all threads that compute, barrier 1 the running rTask's, barrier 2 is where
// the loader tells the vEU that its ring is ready, barrier 3 where those who brought operands meet. Of direct steps
// barriers 4 and 5 say that descriptors are fetched, 6 and 7 that they are used; even and odd steps take turns.
RT_DEVICE void block_barrier(int threads) { asm volatile("bar.sync 0, %0;" ::"r"(threads) : "memory"); }
RT_DEVICE void rtask_barrier(int threads) { asm volatile("bar.sync 1, %0;" ::"r"(threads) : "memory"); }
RT_DEVICE void movers_barrier(int threads) { asm volatile("bar.sync 3, %0;" ::"r"(threads) : "memory"); }
RT_DEVICE void loader_ready(int threads) { asm volatile("bar.arrive 2, %0;" ::"r"(threads) : "memory"); }
RT_DEVICE void wait_for_loader(int threads) { asm volatile("bar.sync 2, %0;" ::"r"(threads) : "memory"); }
RT_DEVICE void tell_fetched(uint32_t odd, int threads) { asm volatile("bar.arrive %0, %1;" ::"r"(4 + odd), "r"(threads) : "memory"); }
RT_DEVICE void wait_for_fetched(uint32_t odd, int threads) { asm volatile("bar.sync %0, %1;" ::"r"(4 + odd), "r"(threads) : "memory"); }
RT_DEVICE void tell_used(uint32_t odd, int threads) { asm volatile("bar.arrive %0, %1;" ::"r"(6 + odd), "r"(threads) : "memory"); }
RT_DEVICE void wait_for_used(uint32_t odd, int threads) { asm volatile("bar.sync %0, %1;" ::"r"(6 + odd), "r"(threads) : "memory"); }

// PTX ISA, memory consistency model: a fence between relaxed accesses to the flag and the data it
// guards orders them for the whole GPU; the block barrier before it makes it cover all threads' writes.
RT_DEVICE void fence_acq_rel_gpu() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }

RT_DEVICE uint64_t load_relaxed_gpu(const uint64_t* p) {
  uint64_t v;
  asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
  return v;
}

RT_DEVICE void store_relaxed_gpu(uint64_t* p, uint64_t v) {
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
}

// Adds one. Additions of several threads form one chain in the memory model: a load that sees the last
// of them synchronises with the fences before all of them.
RT_DEVICE void add_relaxed_gpu(uint64_t* p) {
  asm volatile("red.relaxed.gpu.global.add.u64 [%0], 1;" ::"l"(p) : "memory");
}

// The same behind what the thread, and others before the last barrier, have written. Unlike the fence they leave
// the multiprocessor's L1 alone.
RT_DEVICE void store_release_gpu(uint64_t* p, uint64_t v) {
  asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
}
RT_DEVICE void add_release_gpu(uint64_t* p) {
  asm volatile("red.release.gpu.global.add.u64 [%0], 1;" ::"l"(p) : "memory");
}

// Tagged words: payload and tag travel in one 64-bit access, which orders nothing else.
RT_DEVICE uint64_t load_word(const uint64_t* p) { return load_relaxed_gpu(p); }
RT_DEVICE void store_word(uint64_t* p, uint64_t v) { store_relaxed_gpu(p, v); }

// 0 instead, if not now.
RT_DEVICE uint64_t load_word_if(bool now, const uint64_t* p) {
  uint64_t v = 0;
  asm volatile("{.reg .pred p; setp.ne.u32 p, %2, 0; @p ld.relaxed.gpu.global.u64 %0, [%1];}"
               : "+l"(v)
               : "l"(p), "r"(static_cast<unsigned>(now))
               : "memory");
  return v;
}

// Two neighbours at once, the first at a multiple of 16 bytes; each is a single access for itself.
RT_DEVICE void load_words(const uint64_t* p, uint64_t (&v)[2]) {
  asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];" : "=l"(v[0]), "=l"(v[1]) : "l"(p) : "memory");
}

RT_DEVICE int lowest_bit(uint32_t v) { return __ffs(static_cast<int>(v)) - 1; }
RT_DEVICE uint32_t bits(uint32_t v) { return static_cast<uint32_t>(__popc(v)); }

// The multiprocessor's clock, the device's, and which multiprocessor this is. In order with what stands around.
RT_DEVICE uint64_t clock_cycles() {
  uint64_t t;
  asm volatile("mov.u64 %0, %clock64;" : "=l"(t)::"memory");
  return t;
}
RT_DEVICE uint64_t clock_nanoseconds() {
  uint64_t t;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t)::"memory");
  return t;
}
RT_DEVICE void both_clocks(uint64_t* cycles, uint64_t* nanoseconds) {
  *cycles = clock_cycles(), *nanoseconds = clock_nanoseconds();
}
RT_DEVICE uint32_t multiprocessor() {
  uint32_t n;
  asm volatile("mov.u32 %0, %smid;" : "=r"(n));
  return n;
}

// What the guard of a launch needs; nothing else is ordered by it. Both return what was there before.
RT_DEVICE uint64_t add_gpu(uint64_t* p, uint64_t n) {
  return atomicAdd(reinterpret_cast<unsigned long long*>(p), static_cast<unsigned long long>(n));
}
RT_DEVICE uint64_t compare_swap_gpu(uint64_t* p, uint64_t expected, uint64_t v) {
  return atomicCAS(reinterpret_cast<unsigned long long*>(p), static_cast<unsigned long long>(expected),
                   static_cast<unsigned long long>(v));
}
// Between two looks at something that others change.
RT_DEVICE void relax() { __nanosleep(100); }
RT_DEVICE void fence_system() { __threadfence_system(); }

// Shared memory keeps what the last rTask left; the emulator makes that visible.
RT_DEVICE void poison(char*, int, int) {}

// Sleeps about so long.
RT_DEVICE void nap(uint32_t ns) { __nanosleep(ns); }

// A debug build's watchdog. A wait that takes half of the time that it may leaves a note, one a block; the first
// that takes all of it ends the launch. Notes are there by then of all that waits: what others wait for shows.
class Patience {
 public:
#if defined(RT_DEBUG)
  RT_DEVICE explicit Patience(uint64_t ns) : half_(ns / 2), end_(clock_nanoseconds() + half_) {}
  RT_DEVICE ~Patience() {
    if (note_ != nullptr) *note_ = 0;
  }
  template <class Report>
  RT_DEVICE void spent(bool waits, Report* notes, const Report& r) {
    if (clock_nanoseconds() < end_) return;
    Report* const mine = notes + blockIdx.x;
    if (waits && r.set && note_ == nullptr && atomicExch(&mine->set, r.set) == 0) {
      *mine = r, note_ = &mine->set;
      __threadfence_system();
    }
    if (late_) __trap();
    late_ = true, end_ = clock_nanoseconds() + half_;
  }

 private:
  uint64_t half_, end_;
  uint32_t* note_ = nullptr;
  bool late_ = false;
#else
  RT_DEVICE explicit Patience(uint64_t) {}
  template <class Report>
  RT_DEVICE void spent(bool, Report*, const Report&) {}
#endif
};

// Mbarriers and the copies that arrive at them (PTX ISA, parallel synchronization). A ring's full barrier
// expects kFillArrivals arrivals from the loader's warp, its empty barrier one of every lane that computes.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
constexpr int kFillArrivals = 1;  // a bulk copy counts its own bytes
#else
constexpr int kFillArrivals = 32;  // every lane, for its own copies
#endif

RT_DEVICE unsigned shared_address(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
RT_DEVICE void mbarrier_init(uint64_t* bar, int arrivals) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(bar)), "r"(arrivals) : "memory");
}
// After the last of them, before anybody uses them.
RT_DEVICE void mbarrier_init_done() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  asm volatile("fence.mbarrier_init.release.cluster;\n\tfence.proxy.async.shared::cta;" ::: "memory");
#endif
}
RT_DEVICE void mbarrier_arrive(uint64_t* bar) {
  asm volatile("{.reg .b64 state; mbarrier.arrive.shared.b64 state, [%0];}" ::"r"(shared_address(bar)) : "memory");
}
// Whether the barrier's phase of the given number is complete; it is the current one or the one before.
RT_DEVICE bool mbarrier_done(uint64_t* bar, uint32_t phase) {
  uint32_t done;
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
               : "=r"(done)
               : "r"(shared_address(bar)), "r"(phase & 1)
               : "memory");
#else
  asm volatile("{.reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
               : "=r"(done)
               : "r"(shared_address(bar)), "r"(phase & 1)
               : "memory");
#endif
  return done != 0;
}
// The same without waiting for it at all.
RT_DEVICE bool mbarrier_test(uint64_t* bar, uint32_t phase) {
  uint32_t done;
  asm volatile("{.reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
               : "=r"(done)
               : "r"(shared_address(bar)), "r"(phase & 1)
               : "memory");
  return done != 0;
}
#else
// Without mbarriers: arrivals so far in the low half, arrivals a phase in the high half.
RT_DEVICE void mbarrier_init(uint64_t* bar, int arrivals) { *bar = static_cast<uint64_t>(arrivals) << 32; }
RT_DEVICE void mbarrier_init_done() {}
RT_DEVICE void mbarrier_arrive(uint64_t* bar) {
  __threadfence_block();
  atomicAdd(reinterpret_cast<unsigned*>(bar), 1u);
}
RT_DEVICE bool mbarrier_done(uint64_t* bar, uint32_t phase) {
  const uint64_t v = *const_cast<volatile uint64_t*>(bar);
  const unsigned target = (phase + 1) * static_cast<unsigned>(v >> 32);
  const bool done = static_cast<int>(static_cast<unsigned>(v) - target) >= 0;
  if (done) __threadfence_block();
  return done;
}
RT_DEVICE bool mbarrier_test(uint64_t* bar, uint32_t phase) { return mbarrier_done(bar, phase); }
#endif

// Waits for a phase; the watchdog reports r if it takes too long.
template <class Report>
RT_DEVICE void mbarrier_wait(uint64_t* bar, uint32_t phase, uint64_t patience_ns, Report* notes, const Report& r) {
  Patience patience(patience_ns);
  while (!mbarrier_done(bar, phase)) patience.spent(true, notes, r);
}

// The same; meanwhile is called again and again.
template <class Report, class Meanwhile>
RT_DEVICE void mbarrier_wait(uint64_t* bar, uint32_t phase, uint64_t patience_ns, Report* notes, const Report& r, Meanwhile meanwhile) {
  Patience patience(patience_ns);
  while (!mbarrier_test(bar, phase)) {
    meanwhile();
    patience.spent(true, notes, r);
  }
}

// Called by all lanes of a warp: copies bytes, a multiple of 16, into a stage of the ring, and completes a
// phase of its full barrier when they are there.
RT_DEVICE void fill_stage(char* stage, uint64_t* full, const char* from, uint32_t bytes) {
  const uint32_t lane = threadIdx.x % 32;
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  if (lane != 0) return;
  asm volatile("{.reg .b64 state; mbarrier.arrive.expect_tx.shared.b64 state, [%0], %1;}" ::"r"(shared_address(full)),
               "r"(bytes)
               : "memory");
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                   shared_address(stage)),
               "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(shared_address(full))
               : "memory");
#elif __CUDA_ARCH__ >= 800
  RT_NO_UNROLL
  for (uint32_t at = 16 * lane; at < bytes; at += 16 * 32) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(stage + at)),
                 "l"(__cvta_generic_to_global(from + at))
                 : "memory");
  }
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(shared_address(full)) : "memory");
#else
  RT_NO_UNROLL
  for (uint32_t at = 16 * lane; at < bytes; at += 16 * 32) {
    *reinterpret_cast<uint4*>(stage + at) = __ldg(reinterpret_cast<const uint4*>(from + at));
  }
  mbarrier_arrive(full);
#endif
}

// A lane is done with a stage. The emulator poisons it when the last one is.
RT_DEVICE void free_stage(char*, int, uint64_t* empty) { mbarrier_arrive(empty); }

// The emulator checks that an rTask takes all of its chunks, and asks for its inputs.
RT_DEVICE void note_chunk() {}
RT_DEVICE void note_inputs() {}
RT_DEVICE void expect_streamed(uint32_t, bool) {}

// Programmatic dependent launch, where the launch asks for it: the next kernel's blocks may come as soon
// as all of this one's have allowed it; the wait returns when the kernels before have ended and what they
// wrote can be read. Every block must wait, also one without work: a kernel's end stands for the end of
// all before it.
RT_DEVICE void allow_next_launch() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
RT_DEVICE void wait_for_launches_before() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// The same, with a global address that is there before and not used until afterwards.
RT_DEVICE const char* inputs(const char* p) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" : "+l"(p)::"memory");
#endif
  return global(const_cast<char*>(p));
}

RT_DEVICE bool all_lanes(bool predicate) { return __all_sync(0xffffffffu, predicate) != 0; }
RT_DEVICE void sync_warp() { __syncwarp(); }

template <class T>
RT_DEVICE T ld_const(const T* p) {
  T v;
  if constexpr (sizeof(T) == 16 && alignof(T) == 16) {
    const uint4 u = __ldg(reinterpret_cast<const uint4*>(p));
    memcpy(&v, &u, 16);
  } else if constexpr (sizeof(T) == 8 && alignof(T) == 8) {
    const uint2 u = __ldg(reinterpret_cast<const uint2*>(p));
    memcpy(&v, &u, 8);
  } else if constexpr (sizeof(T) == 4 && alignof(T) == 4) {
    const unsigned u = __ldg(reinterpret_cast<const unsigned*>(p));
    memcpy(&v, &u, 4);
  } else if constexpr (sizeof(T) == 2 && alignof(T) == 2) {
    const unsigned short u = __ldg(reinterpret_cast<const unsigned short*>(p));
    memcpy(&v, &u, 2);
  } else if constexpr (sizeof(T) == 1) {
    const unsigned char u = __ldg(reinterpret_cast<const unsigned char*>(p));
    memcpy(&v, &u, 1);
  } else {
    v = *p;
  }
  return v;
}

// Moves v through op, one 32-bit word at a time.
template <class T, class Op>
RT_DEVICE T by_words(T v, Op op) {
  constexpr int kWords = (sizeof(T) + 3) / 4;
  unsigned w[kWords] = {};
  memcpy(w, &v, sizeof(T));
  RT_UNROLL
  for (int i = 0; i < kWords; ++i) w[i] = op(w[i]);
  memcpy(&v, w, sizeof(T));
  return v;
}

// v, which all lanes of the warp have, so that compilers see that they have it: they branch by it together.
RT_DEVICE int same_in_warp(int v) { return __shfl_sync(0xffffffffu, v, 0); }

// The thread's number, in a register: it is not read anew in the loops of bodies that stream weights, which are short. What is
// computed of a number that it may read anew, nvcc does better elsewhere.
RT_DEVICE int kept_thread_index() {
  const int t = __shfl_xor_sync(0xffffffffu, thread_index(), 0);
  __builtin_assume(t >= 0 && t < 1024);
  return t;
}

template <class T>
RT_DEVICE T shfl_xor(T v, int mask) {
  return by_words(v, [mask](unsigned w) { return __shfl_xor_sync(0xffffffffu, w, mask); });
}
template <class T>
RT_DEVICE T shfl_down(T v, int delta) {
  return by_words(v, [delta](unsigned w) { return __shfl_down_sync(0xffffffffu, w, delta); });
}
template <class T>
RT_DEVICE T shfl(T v, int lane) {
  return by_words(v, [lane](unsigned w) { return __shfl_sync(0xffffffffu, w, lane); });
}

template <int Bytes>
RT_DEVICE void cp_async(void* smem, const void* gmem) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(smem));
  const size_t from = __cvta_generic_to_global(gmem);
  if constexpr (Bytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(from), "n"(Bytes) : "memory");
  }
#else
  if constexpr (Bytes == 16) {
    *static_cast<uint4*>(smem) = *static_cast<const uint4*>(gmem);
  } else {
    *static_cast<unsigned*>(smem) = *static_cast<const unsigned*>(gmem);
  }
#endif
}

RT_DEVICE void cp_async_commit() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

template <int N>
RT_DEVICE void cp_async_wait() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
#endif
}

}  // namespace rt::detail
