// The CUDA side of rt/device.cuh. Bare PTX stands here and nowhere else.
#pragma once

#include <cuda_runtime.h>

namespace rt::detail {

// Buffers live in global memory; saying so turns generic loads and stores into global ones.
RT_DEVICE char* global(char* p) {
  __builtin_assume(__isGlobal(p));
  return p;
}

RT_DEVICE int thread_index() { return static_cast<int>(threadIdx.x); }
RT_DEVICE int block_index() { return static_cast<int>(blockIdx.x); }
RT_DEVICE int block_threads() { return static_cast<int>(blockDim.x); }

RT_DEVICE char* shared_base() {
  extern __shared__ __align__(128) char rt_shared_memory[];
  return rt_shared_memory;
}

// Barrier 0 is the whole block's, barrier 1 the running rTask's.
RT_DEVICE void block_barrier() { __syncthreads(); }
RT_DEVICE void rtask_barrier(int threads) { asm volatile("bar.sync 1, %0;" ::"r"(threads) : "memory"); }

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

// Tagged words: payload and tag travel in one 64-bit access, which orders nothing else.
RT_DEVICE uint64_t load_word(const uint64_t* p) { return load_relaxed_gpu(p); }
RT_DEVICE void store_word(uint64_t* p, uint64_t v) { store_relaxed_gpu(p, v); }

// Two neighbours at once, the first at a multiple of 16 bytes; each is a single access for itself.
RT_DEVICE void load_words(const uint64_t* p, uint64_t (&v)[2]) {
  asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];" : "=l"(v[0]), "=l"(v[1]) : "l"(p) : "memory");
}

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

// Shared memory keeps what the last rTask left; the emulator makes that visible.
RT_DEVICE void poison(char*, int) {}

// Sleeps about so long.
RT_DEVICE void nap(uint32_t ns) { __nanosleep(ns); }

// A debug build's watchdog: a wait that takes longer than it may is reported and ends the launch.
class Patience {
 public:
#if defined(RT_DEBUG)
  RT_DEVICE explicit Patience(uint64_t ns) : end_(clock_nanoseconds() + ns) {}
  template <class Report>
  RT_DEVICE void spent(bool waits, Report* to, const Report& r) {
    if (clock_nanoseconds() < end_) return;
    if (waits && atomicExch(&to->set, 1u) == 0) {
      *to = r;
      __threadfence_system();
    }
    __nanosleep(1000000);
    if (clock_nanoseconds() > end_ + 10000000) __trap();
  }

 private:
  uint64_t end_;
#else
  RT_DEVICE explicit Patience(uint64_t) {}
  template <class Report>
  RT_DEVICE void spent(bool, Report*, const Report&) {}
#endif
};

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
