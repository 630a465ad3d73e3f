// Global memory: addresses, loads of constants, and accesses that order what blocks do.
#pragma once

namespace rt::detail {

// What the compiler is told here turns generic loads and stores into global ones.
RT_DEVICE char* global(char* p) {
  __builtin_assume(__isGlobal(p));
  return p;
}
// Loads and stores through such a number stay global ones, too.
RT_DEVICE uint64_t global_place(const void* p) { return __cvta_generic_to_global(p); }
RT_DEVICE void* global_at(uint64_t place) { return __cvta_global_to_generic(place); }

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

template <class T>
RT_DEVICE T load_or_zero(const T* p, bool ok) {
  const size_t from = __cvta_generic_to_global(p);
  uint32_t w[(sizeof(T) + 3) / 4];
  if constexpr (sizeof(T) == 16) {
    asm volatile(
        "{.reg .pred ok; setp.ne.u32 ok, %5, 0; mov.u32 %0, 0; mov.u32 %1, 0; mov.u32 %2, 0; mov.u32 %3, 0; "
        "@ok ld.global.v4.u32 {%0, %1, %2, %3}, [%4];}"
        : "=&r"(w[0]), "=&r"(w[1]), "=&r"(w[2]), "=&r"(w[3])
        : "l"(from), "r"(uint32_t{ok}));
  } else if constexpr (sizeof(T) == 8) {
    asm volatile(
        "{.reg .pred ok; setp.ne.u32 ok, %3, 0; mov.u32 %0, 0; mov.u32 %1, 0; @ok ld.global.v2.u32 {%0, %1}, [%2];}"
        : "=&r"(w[0]), "=&r"(w[1])
        : "l"(from), "r"(uint32_t{ok}));
  } else if constexpr (sizeof(T) == 4) {
    asm volatile("{.reg .pred ok; setp.ne.u32 ok, %2, 0; mov.u32 %0, 0; @ok ld.global.u32 %0, [%1];}"
                 : "=&r"(w[0])
                 : "l"(from), "r"(uint32_t{ok}));
  } else if constexpr (sizeof(T) == 2) {
    asm volatile("{.reg .pred ok; setp.ne.u32 ok, %2, 0; mov.u32 %0, 0; @ok ld.global.u16 %0, [%1];}"
                 : "=&r"(w[0])
                 : "l"(from), "r"(uint32_t{ok}));
  } else {
    static_assert(sizeof(T) == 1);
    asm volatile("{.reg .pred ok; setp.ne.u32 ok, %2, 0; mov.u32 %0, 0; @ok ld.global.u8 %0, [%1];}"
                 : "=&r"(w[0])
                 : "l"(from), "r"(uint32_t{ok}));
  }
  T v;
  memcpy(&v, w, sizeof(T));
  return v;
}

RT_DEVICE void fence_acq_rel_gpu() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }

RT_DEVICE uint64_t load_relaxed_gpu(const uint64_t* p) {
  uint64_t v;
  asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
  return v;
}
RT_DEVICE uint64_t load_acquire_gpu(const uint64_t* p) {
  uint64_t v;
  asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
  return v;
}
RT_DEVICE void store_relaxed_gpu(uint64_t* p, uint64_t v) {
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
}
RT_DEVICE void add_relaxed_gpu(uint64_t* p) {
  asm volatile("red.relaxed.gpu.global.add.u64 [%0], 1;" ::"l"(p) : "memory");
}

// Unlike a fence, a release leaves the multiprocessor's L1 cache alone.
RT_DEVICE void store_release_gpu(uint64_t* p, uint64_t v) {
  asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
}
RT_DEVICE void add_release_gpu(uint64_t* p) {
  asm volatile("red.release.gpu.global.add.u64 [%0], 1;" ::"l"(p) : "memory");
}

RT_DEVICE uint64_t load_word(const uint64_t* p) { return load_relaxed_gpu(p); }
RT_DEVICE void store_word(uint64_t* p, uint64_t v) { store_relaxed_gpu(p, v); }

RT_DEVICE uint64_t load_word_if(bool now, const uint64_t* p) {
  uint64_t v = 0;
  asm volatile("{.reg .pred p; setp.ne.u32 p, %2, 0; @p ld.relaxed.gpu.global.u64 %0, [%1];}"
               : "+l"(v)
               : "l"(p), "r"(static_cast<unsigned>(now))
               : "memory");
  return v;
}

RT_DEVICE void load_words(const uint64_t* p, uint64_t (&v)[2]) {
  asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];" : "=l"(v[0]), "=l"(v[1]) : "l"(p) : "memory");
}

RT_DEVICE uint64_t add_gpu(uint64_t* p, uint64_t n) {
  return atomicAdd(reinterpret_cast<unsigned long long*>(p), static_cast<unsigned long long>(n));
}
RT_DEVICE uint64_t compare_swap_gpu(uint64_t* p, uint64_t expected, uint64_t v) {
  return atomicCAS(reinterpret_cast<unsigned long long*>(p), static_cast<unsigned long long>(expected),
                   static_cast<unsigned long long>(v));
}
RT_DEVICE void fence_system() { __threadfence_system(); }
RT_DEVICE void relax() { __nanosleep(100); }

RT_DEVICE unsigned shared_address(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }

}  // namespace rt::detail
