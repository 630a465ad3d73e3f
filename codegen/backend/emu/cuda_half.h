// CUDA's numbers of 16 bits, as cuda_fp16.h and cuda_bf16.h declare them, for converted kernels. Arithmetic is that of
// float32, rounded once: what a GPU computes of one operation.
#pragma once

#include "backend/emu/cuda_names.h"

namespace rt::emu {

// Rounds to the nearest number with so many bits of mantissa and the exponents of float16 or of bfloat16, ties to even.
inline uint16_t to_half(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  const uint32_t sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return 0x7fff;
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);
  if (magnitude < 0x38800000u) {  // a subnormal number: units of 2^-24
    float units;
    std::memcpy(&units, &magnitude, 4);
    return static_cast<uint16_t>(sign | static_cast<uint32_t>(std::nearbyint(units * 16777216.0f)));
  }
  return static_cast<uint16_t>(sign | ((magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1u)) >> 13));
}
inline float from_half(uint16_t h) {
  const uint32_t sign = (h & 0x8000u) << 16, exponent = h >> 10 & 31u, mantissa = h & 0x3ffu;
  if (exponent == 0) {
    const float units = static_cast<float>(mantissa) / 16777216.0f;
    return sign != 0 ? -units : units;
  }
  uint32_t bits = sign | (exponent + 112) << 23 | mantissa << 13;
  if (exponent == 31) bits = sign | 0x7f800000u | mantissa << 13;
  float x;
  std::memcpy(&x, &bits, 4);
  return x;
}
inline uint16_t to_bfloat16(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fff;
  return static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}
inline float from_bfloat16(uint16_t h) {
  const uint32_t bits = uint32_t{h} << 16;
  float x;
  std::memcpy(&x, &bits, 4);
  return x;
}

}  // namespace rt::emu

#define RT_EMU_NARROW(name, to, from)                                                                 \
  struct name {                                                                                       \
    uint16_t bits;                                                                                    \
    name() = default;                                                                                 \
    name(float x) : bits(rt::emu::to(x)) {}                                                           \
    name(double x) : bits(rt::emu::to(static_cast<float>(x))) {}                                      \
    name(int x) : bits(rt::emu::to(static_cast<float>(x))) {}                                         \
    operator float() const { return rt::emu::from(bits); }                                            \
    name& operator+=(name o) { return *this = name(float(*this) + float(o)); }                        \
    name& operator-=(name o) { return *this = name(float(*this) - float(o)); }                        \
    name& operator*=(name o) { return *this = name(float(*this) * float(o)); }                        \
    name& operator/=(name o) { return *this = name(float(*this) / float(o)); }                        \
  };                                                                                                  \
  inline name operator+(name a, name b) { return name(float(a) + float(b)); }                         \
  inline name operator-(name a, name b) { return name(float(a) - float(b)); }                         \
  inline name operator*(name a, name b) { return name(float(a) * float(b)); }                         \
  inline name operator/(name a, name b) { return name(float(a) / float(b)); }                         \
  inline name operator-(name a) { return name(-float(a)); }                                           \
  inline bool operator<(name a, name b) { return float(a) < float(b); }                               \
  inline bool operator>(name a, name b) { return float(a) > float(b); }                               \
  inline bool operator<=(name a, name b) { return float(a) <= float(b); }                             \
  inline bool operator>=(name a, name b) { return float(a) >= float(b); }                             \
  inline bool operator==(name a, name b) { return float(a) == float(b); }                             \
  inline bool operator!=(name a, name b) { return float(a) != float(b); }                             \
  struct alignas(4) name##2 { name x, y; };                                                           \
  inline name __hadd(name a, name b) { return a + b; }                                                \
  inline name __hsub(name a, name b) { return a - b; }                                                \
  inline name __hmul(name a, name b) { return a * b; }                                                \
  inline name __hdiv(name a, name b) { return a / b; }                                                \
  inline name __hneg(name a) { return -a; }                                                           \
  inline name __hmax(name a, name b) { return a > b ? a : b; }                                        \
  inline name __hmin(name a, name b) { return a < b ? a : b; }                                        \
  inline name __hfma(name a, name b, name c) { return name(std::fma(float(a), float(b), float(c))); } \
  inline bool __hlt(name a, name b) { return a < b; }                                                 \
  inline bool __hgt(name a, name b) { return a > b; }                                                 \
  inline name##2 __hadd2(name##2 a, name##2 b) { return {a.x + b.x, a.y + b.y}; }                     \
  inline name##2 __hsub2(name##2 a, name##2 b) { return {a.x - b.x, a.y - b.y}; }                     \
  inline name##2 __hmul2(name##2 a, name##2 b) { return {a.x * b.x, a.y * b.y}; }                     \
  inline name##2 __hfma2(name##2 a, name##2 b, name##2 c) { return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)}; }
RT_EMU_NARROW(__half, to_half, from_half)
RT_EMU_NARROW(__nv_bfloat16, to_bfloat16, from_bfloat16)
#undef RT_EMU_NARROW

using half = __half;
using half2 = __half2;

inline float __half2float(__half x) { return x; }
inline __half __float2half(float x) { return __half(x); }
inline __half __float2half_rn(float x) { return __half(x); }
inline float2 __half22float2(__half2 v) { return {float(v.x), float(v.y)}; }
inline __half2 __float22half2_rn(float2 v) { return {__half(v.x), __half(v.y)}; }
inline __half2 __floats2half2_rn(float x, float y) { return {__half(x), __half(y)}; }
inline __half2 __halves2half2(__half x, __half y) { return {x, y}; }
inline __half2 __half2half2(__half x) { return {x, x}; }
inline __half2 __float2half2_rn(float x) { return {__half(x), __half(x)}; }
inline __half __low2half(__half2 v) { return v.x; }
inline __half __high2half(__half2 v) { return v.y; }
inline float __low2float(__half2 v) { return v.x; }
inline float __high2float(__half2 v) { return v.y; }
inline __half __ushort_as_half(unsigned short bits) {
  __half h;
  h.bits = bits;
  return h;
}
inline unsigned short __half_as_ushort(__half h) { return h.bits; }
inline float __bfloat162float(__nv_bfloat16 x) { return x; }
inline __nv_bfloat16 __float2bfloat16(float x) { return __nv_bfloat16(x); }
inline __nv_bfloat16 __float2bfloat16_rn(float x) { return __nv_bfloat16(x); }
inline float2 __bfloat1622float2(__nv_bfloat162 v) { return {float(v.x), float(v.y)}; }
inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y) { return {__nv_bfloat16(x), __nv_bfloat16(y)}; }
