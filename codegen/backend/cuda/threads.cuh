// Threads, warps and the barriers of a block, and arithmetic that is spelled as one instruction.
#pragma once

namespace rt::detail {

// The ranges that are told to the compiler let it make quotients and remainders shifts and masks.
RT_DEVICE int thread_index() {
  const int n = static_cast<int>(threadIdx.x);
  __builtin_assume(n >= 0 && n < 1024);
  return n;
}
// The exchange with itself hides from the compiler that it could read %tid again. Bodies whose loops are short need
// that; in others nvcc does better with a number that it may read anew.
RT_DEVICE int kept_thread_index() {
  const int t = __shfl_xor_sync(0xffffffffu, thread_index(), 0);
  __builtin_assume(t >= 0 && t < 1024);
  return t;
}
RT_DEVICE int block_index() { return static_cast<int>(blockIdx.x); }
RT_DEVICE int block_threads() { return static_cast<int>(blockDim.x); }

RT_DEVICE char* shared_base() {
  extern __shared__ __align__(128) char rt_shared_memory[];
  return rt_shared_memory;
}

// A place in shared memory, computed here and not anew wherever it is used.
RT_DEVICE char* settled_shared(char* p) {
  uint32_t place = static_cast<uint32_t>(__cvta_generic_to_shared(p));
  asm("" : "+r"(place));
  return static_cast<char*>(__cvta_shared_to_generic(place));
}

RT_DEVICE uint32_t multiprocessor() {
  uint32_t n;
  asm volatile("mov.u32 %0, %smid;" : "=r"(n));
  return n;
}

RT_DEVICE bool all_lanes(bool predicate) { return __all_sync(0xffffffffu, predicate) != 0; }
RT_DEVICE void sync_warp() { __syncwarp(); }
RT_DEVICE bool one_lane() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  uint32_t one;
  asm volatile("{.reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 %0, 1, 0, p;}" : "=r"(one));
  return one != 0;
#else
  return threadIdx.x % 32 == 0;
#endif
}
RT_DEVICE int same_in_warp(int v) { return __shfl_sync(0xffffffffu, v, 0); }

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

// The compiler makes several instructions of it where it has moved an operand's extension to 64 bits into another
// block.
RT_DEVICE int64_t mad_wide(int a, int b, int64_t c) {
  int64_t r;
  asm("mad.wide.s32 %0, %1, %2, %3;" : "=l"(r) : "r"(a), "r"(b), "l"(c));
  return r;
}
RT_DEVICE float exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
RT_DEVICE float near_quotient(float x, float y) {
  float q;
  asm("div.approx.ftz.f32 %0, %1, %2;" : "=f"(q) : "f"(x), "f"(y));
  return q;
}
RT_DEVICE float larger(float a, float b) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
  return a > b || a != a ? a : b;
#else
  float y;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
#endif
}
RT_DEVICE uint32_t larger_pairs(uint32_t a, uint32_t b) { return __vmaxu2(a, b); }
RT_DEVICE uint32_t bits(uint32_t v) { return static_cast<uint32_t>(__popc(v)); }

// The compiler takes x for a number that came from elsewhere.
RT_DEVICE int settled(int x) {
  asm volatile("" : "+r"(x));
  return x;
}
RT_DEVICE float settled(float x) {
  asm volatile("" : "+f"(x));
  return x;
}
RT_DEVICE int64_t settled(int64_t x) {
  asm volatile("" : "+l"(x));
  return x;
}

// The block's named barriers:
//
//   0      block_barrier    all threads that compute; remaining_barrier
//   1      rtask_barrier    the running rTask's
//   2      the loader       its ring is ready
//   3      groups_barrier   all warp groups of the running rTask
//   4, 5   direct steps     descriptors are fetched, of even and of odd steps
//   6, 7   direct steps     descriptors are used, of even and of odd steps
//   8 …    group_barrier    warp groups of the running rTask
RT_DEVICE void block_barrier(int threads) { asm volatile("bar.sync 0, %0;" ::"r"(threads) : "memory"); }
RT_DEVICE void rtask_barrier(int threads) { asm volatile("bar.sync 1, %0;" ::"r"(threads) : "memory"); }
RT_DEVICE int rtask_barrier_count(int threads, bool predicate) {
  int count;
  asm volatile("{.reg .pred p; setp.ne.u32 p, %2, 0; bar.red.popc.u32 %0, 1, %1, p;}"
               : "=r"(count)
               : "r"(threads), "r"(static_cast<unsigned>(predicate))
               : "memory");
  return count;
}
RT_DEVICE void rtask_barrier_apart(int threads) { asm volatile("barrier.sync 1, %0;" ::"r"(threads) : "memory"); }
// Lanes of a warp that come from different places meet in the function before they come to the barrier, which is one
// place then. So it is never inlined: when it was, an H200 counted wrongly in blocks of which some threads had left.
RT_NOINLINE_DEVICE int rtask_barrier_count_apart(int threads, bool predicate) {
  int count;
  __syncwarp();
  asm volatile("{.reg .pred p; setp.ne.u32 p, %2, 0; barrier.red.popc.u32 %0, 1, %1, p;}"
               : "=r"(count)
               : "r"(threads), "r"(static_cast<unsigned>(predicate))
               : "memory");
  return count;
}
RT_DEVICE void remaining_barrier() { __syncthreads(); }
RT_DEVICE int remaining_barrier_count(bool predicate) { return __syncthreads_count(predicate); }
RT_DEVICE void loader_ready(int threads) { asm volatile("bar.arrive 2, %0;" ::"r"(threads) : "memory"); }
RT_DEVICE void wait_for_loader(int threads) { asm volatile("bar.sync 2, %0;" ::"r"(threads) : "memory"); }
RT_DEVICE void tell_fetched(uint32_t odd, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(4 + odd), "r"(threads) : "memory");
}
RT_DEVICE void wait_for_fetched(uint32_t odd, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(4 + odd), "r"(threads) : "memory");
}
RT_DEVICE void tell_used(uint32_t odd, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(6 + odd), "r"(threads) : "memory");
}
RT_DEVICE void wait_for_used(uint32_t odd, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(6 + odd), "r"(threads) : "memory");
}
constexpr int kMostGroups = 8;
RT_DEVICE void groups_barrier(int threads) { asm volatile("bar.sync 3, %0;" ::"r"(threads) : "memory"); }
RT_DEVICE void group_barrier(int group, int groups) {
  asm volatile("bar.sync %0, %1;" ::"r"(8 + group), "r"(128 * groups) : "memory");
}

}  // namespace rt::detail
