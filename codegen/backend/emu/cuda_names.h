// Names that CUDA gives to code for the device, for converted kernels: types of several numbers, functions of numbers,
// and atomic operations.
#pragma once

#include "backend/emu/system.h"

#define __device__
#define __host__
#define __global__
#define __forceinline__ inline
#define __constant__
#define __ldg(p) (*(p))
#define CUDART_INF_F std::numeric_limits<float>::infinity()

constexpr int warpSize = 32;

// ---- Types of two to four numbers ----

#define RT_EMU_VECTORS(T, name)                                                      \
  struct alignas(2 * sizeof(T)) name##2 { T x, y; };                                 \
  struct name##3 { T x, y, z; };                                                     \
  struct alignas(4 * sizeof(T) < 16 ? 4 * sizeof(T) : 16) name##4 { T x, y, z, w; }; \
  inline name##2 make_##name##2(T x, T y) { return {x, y}; }                         \
  inline name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; }                 \
  inline name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }
RT_EMU_VECTORS(signed char, char)
RT_EMU_VECTORS(unsigned char, uchar)
RT_EMU_VECTORS(short, short)
RT_EMU_VECTORS(unsigned short, ushort)
RT_EMU_VECTORS(int, int)
RT_EMU_VECTORS(unsigned, uint)
RT_EMU_VECTORS(long long, longlong)
RT_EMU_VECTORS(unsigned long long, ulonglong)
RT_EMU_VECTORS(float, float)
RT_EMU_VECTORS(double, double)
#undef RT_EMU_VECTORS

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  operator uint3() const { return {x, y, z}; }
};

// ---- Functions of numbers ----
// Where CUDA has faster ones that are less precise, these are the precise ones.

template <class A, class B>
constexpr std::common_type_t<A, B> min(A a, B b) {
  using T = std::common_type_t<A, B>;
  if constexpr (std::is_floating_point_v<T>) {
    return std::fmin(static_cast<T>(a), static_cast<T>(b));
  } else {
    return static_cast<T>(b) < static_cast<T>(a) ? static_cast<T>(b) : static_cast<T>(a);
  }
}
template <class A, class B>
constexpr std::common_type_t<A, B> max(A a, B b) {
  using T = std::common_type_t<A, B>;
  if constexpr (std::is_floating_point_v<T>) {
    return std::fmax(static_cast<T>(a), static_cast<T>(b));
  } else {
    return static_cast<T>(a) < static_cast<T>(b) ? static_cast<T>(b) : static_cast<T>(a);
  }
}
inline float __expf(float x) { return std::exp(x); }
inline float __exp10f(float x) { return std::pow(10.0f, x); }
inline float __logf(float x) { return std::log(x); }
inline float __log2f(float x) { return std::log2(x); }
inline float __sinf(float x) { return std::sin(x); }
inline float __cosf(float x) { return std::cos(x); }
inline float __tanf(float x) { return std::tan(x); }
inline float __powf(float x, float y) { return std::pow(x, y); }
inline float __fdividef(float x, float y) { return x / y; }
inline float __frcp_rn(float x) { return 1.0f / x; }
inline float __fsqrt_rn(float x) { return std::sqrt(x); }
inline float __frsqrt_rn(float x) { return 1.0f / std::sqrt(x); }
inline float __fadd_rn(float x, float y) { return x + y; }
inline float __fmul_rn(float x, float y) { return x * y; }
inline float __fdiv_rn(float x, float y) { return x / y; }
inline float __fmaf_rn(float x, float y, float z) { return std::fma(x, y, z); }
inline float __saturatef(float x) { return x > 0 ? x < 1 ? x : 1.0f : 0.0f; }
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
inline float rsqrt(float x) { return rsqrtf(x); }
inline float exp10f(float x) { return std::pow(10.0f, x); }
inline float normcdff(float x) { return 0.5f * std::erfc(-x * 0.70710678118654752440f); }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x)); }
inline int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(x)); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned __brev(unsigned x) {
  unsigned r = 0;
  for (int i = 0; i < 32; ++i) r |= (x >> i & 1u) << (31 - i);
  return r;
}
inline int __mul24(int a, int b) { return a * b; }
inline unsigned __umul24(unsigned a, unsigned b) { return a * b; }
inline int __mulhi(int a, int b) { return static_cast<int>(int64_t{a} * b >> 32); }
inline unsigned __umulhi(unsigned a, unsigned b) { return static_cast<unsigned>(uint64_t{a} * b >> 32); }
inline int __dp4a(int a, int b, int c) {
  for (int i = 0; i < 32; i += 8) c += static_cast<int8_t>(a >> i) * static_cast<int8_t>(b >> i);
  return c;
}
inline int __float_as_int(float x) {
  int r;
  std::memcpy(&r, &x, 4);
  return r;
}
inline unsigned __float_as_uint(float x) { return static_cast<unsigned>(__float_as_int(x)); }
inline float __int_as_float(int x) {
  float r;
  std::memcpy(&r, &x, 4);
  return r;
}
inline float __uint_as_float(unsigned x) { return __int_as_float(static_cast<int>(x)); }
inline long long __double_as_longlong(double x) {
  long long r;
  std::memcpy(&r, &x, 8);
  return r;
}
inline double __longlong_as_double(long long x) {
  double r;
  std::memcpy(&r, &x, 8);
  return r;
}
inline int __float2int_rn(float x) { return static_cast<int>(std::nearbyint(x)); }
inline int __float2int_rz(float x) { return static_cast<int>(x); }
inline int __float2int_rd(float x) { return static_cast<int>(std::floor(x)); }
inline int __float2int_ru(float x) { return static_cast<int>(std::ceil(x)); }
inline unsigned __float2uint_rn(float x) { return static_cast<unsigned>(std::nearbyint(x)); }
inline float __int2float_rn(int x) { return static_cast<float>(x); }
inline float __uint2float_rn(unsigned x) { return static_cast<float>(x); }
template <class T>
inline T __ldcs(const T* p) {
  return *p;
}
template <class T>
inline T __ldcg(const T* p) {
  return *p;
}
template <class T>
inline void __stcs(T* p, T v) {
  *p = v;
}

// ---- Fences and atomic operations ----

inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_block() { __threadfence(); }
inline void __threadfence_system() { __threadfence(); }
inline void __nanosleep(unsigned) {}

namespace rt::emu {

// Replaces *p by op(*p), and returns what was there.
template <class T, class Op>
inline T update(T* p, Op op) {
  T old, next;
  __atomic_load(p, &old, __ATOMIC_RELAXED);
  do {
    next = op(old);
  } while (!__atomic_compare_exchange(p, &old, &next, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  return old;
}

}  // namespace rt::emu

template <class T>
inline T atomicAdd(T* p, std::type_identity_t<T> v) {
  return rt::emu::update(p, [v](T x) { return static_cast<T>(x + v); });
}
template <class T>
inline T atomicSub(T* p, std::type_identity_t<T> v) {
  return rt::emu::update(p, [v](T x) { return static_cast<T>(x - v); });
}
template <class T>
inline T atomicMax(T* p, std::type_identity_t<T> v) {
  return rt::emu::update(p, [v](T x) { return x < v ? v : x; });
}
template <class T>
inline T atomicMin(T* p, std::type_identity_t<T> v) {
  return rt::emu::update(p, [v](T x) { return v < x ? v : x; });
}
template <class T>
inline T atomicAnd(T* p, std::type_identity_t<T> v) {
  return rt::emu::update(p, [v](T x) { return x & v; });
}
template <class T>
inline T atomicOr(T* p, std::type_identity_t<T> v) {
  return rt::emu::update(p, [v](T x) { return x | v; });
}
template <class T>
inline T atomicXor(T* p, std::type_identity_t<T> v) {
  return rt::emu::update(p, [v](T x) { return x ^ v; });
}
template <class T>
inline T atomicExch(T* p, std::type_identity_t<T> v) {
  return rt::emu::update(p, [v](T) { return v; });
}
template <class T>
inline T atomicCAS(T* p, std::type_identity_t<T> expected, std::type_identity_t<T> v) {
  return rt::emu::update(p, [=](T x) { return x == expected ? v : x; });
}
inline unsigned atomicInc(unsigned* p, unsigned most) {
  return rt::emu::update(p, [most](unsigned x) { return x >= most ? 0u : x + 1; });
}
inline unsigned atomicDec(unsigned* p, unsigned most) {
  return rt::emu::update(p, [most](unsigned x) { return x == 0 || x > most ? most : x - 1; });
}
