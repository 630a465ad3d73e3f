// What the elementwise operators in math.cuh compute with: the C library's functions under one name for both widths,
// and integer arithmetic in which no case is undefined.
#pragma once

#include <cmath>

#include "common/types.cuh"
#include "rt/device/device.cuh"

namespace rk {
namespace fn {

RK_ANY float nan_f() { return bit_cast<float>(0x7fc00000u); }
RK_ANY float inf_f() { return bit_cast<float>(0x7f800000u); }

namespace real {  // the C library under one name for both widths

#define RK_REAL1(name, f32, f64)                  \
  RK_ANY float name(float x) { return ::f32(x); } \
  RK_ANY double name(double x) { return ::f64(x); }
RK_REAL1(exp, expf, exp)
RK_REAL1(expm1, expm1f, expm1)
RK_REAL1(log, logf, log)
RK_REAL1(log1p, log1pf, log1p)
RK_REAL1(sqrt, sqrtf, sqrt)
RK_REAL1(abs, fabsf, fabs)
RK_REAL1(floor, floorf, floor)
RK_REAL1(ceil, ceilf, ceil)
RK_REAL1(trunc, truncf, trunc)
RK_REAL1(rint, rintf, rint)
RK_REAL1(sin, sinf, sin)
RK_REAL1(cos, cosf, cos)
RK_REAL1(tan, tanf, tan)
RK_REAL1(asin, asinf, asin)
RK_REAL1(acos, acosf, acos)
RK_REAL1(atan, atanf, atan)
RK_REAL1(sinh, sinhf, sinh)
RK_REAL1(cosh, coshf, cosh)
RK_REAL1(tanh, tanhf, tanh)
RK_REAL1(asinh, asinhf, asinh)
RK_REAL1(acosh, acoshf, acosh)
RK_REAL1(atanh, atanhf, atanh)
RK_REAL1(erf, erff, erf)
RK_REAL1(erfc, erfcf, erfc)
#undef RK_REAL1

RK_ANY float pow(float x, float y) { return ::powf(x, y); }
RK_ANY double pow(double x, double y) { return ::pow(x, y); }
RK_ANY float mod(float x, float y) { return ::fmodf(x, y); }
RK_ANY double mod(double x, double y) { return ::fmod(x, y); }

// 1 / sqrt(x), off by two units in the last place at most.
RK_ANY float rsqrt(float x) {
#if defined(__CUDA_ARCH__)
  return ::rsqrtf(x);
#else
  return 1.0f / ::sqrtf(x);
#endif
}

// 2^x for x from -126 on, in one instruction.
RK_ANY float exp2_normal(float x) {
#if defined(__CUDA_ARCH__)
  return rt::exp2(x);
#else
  return ::exp2f(x);
#endif
}

// x·Φ(x), where Φ is the normal distribution's function. With a = |x| it is max(x, 0) - a·Φ(-a), and Φ(-a) = 2^P(a) for
// a polynomial P that is fitted such that Φ is off by 5e-8 at most. From 5.5 on a·Φ(-a) is less than 1.1e-7, and stays
// what it is there. erfc, which is exact for the smallest numbers as well, takes four times as many instructions, of
// which epilogues of wide products were bound.
RK_ANY float gelu(float x) {
  const float a = fminf(fabsf(x), 5.5f);
  float p = 1.858524e-7f;
  p = p * a - 4.464814950596e-6f;
  p = p * a + 4.273956610636e-5f;
  p = p * a - 1.7776641560416e-4f;
  p = p * a - 1.8299340387834e-4f;
  p = p * a + 7.138434876870858e-3f;
  p = p * a - 5.255140100213448e-2f;
  p = p * a - 0.4591900715510185f;
  p = p * a - 1.1511073730071293f;
  p = p * a - 0.999999950519423f;
  return (x - fminf(x, 0.0f)) - a * exp2_normal(p);  // of NaN, and of minus infinity, it is NaN
}
RK_ANY double gelu(double x) { return 0.5 * x * erfc(x * -0.70710678118654752440); }

template <class R>
RK_ANY R softplus(R x) {
  return (x < R(0) ? R(0) : x) + log1p(exp(-abs(x)));
}

}  // namespace real

namespace detail {

// Arithmetic on integers happens in an unsigned type: overflow wraps around instead of being
// undefined.
template <class R>
RK_ANY R wrap(uint64_t x) {
  return R(x);
}

template <class R, class F>
RK_ANY R saturate(F x) {
  constexpr R least = kLowest<R>, most = kHighest<R>;
  constexpr F above = F(most / 2 + 1) * F(2);  // the power of two behind the largest value
  if (!(x == x)) return R(0);
  if (x <= F(least)) return least;
  if (x >= above) return most;
  return R(x);
}

template <class C>
RK_ANY bool negative(C x) {
  if constexpr (std::is_unsigned_v<C>) {
    return false;
  } else {
    return x < C(0);
  }
}

template <class R>
RK_ANY Calc<R> floor_mod(Calc<R> b, Calc<R> m) {
  return m != Calc<R>(0) && negative(m) != negative(b) ? m + b : m;
}

// The quotient and the remainder of integers, cut off towards zero. Cases that C++ leaves undefined are defined here.
template <class I>
RK_ANY I int_div(I a, I b) {
  if (b == I(0)) return I(0);
  if constexpr (std::is_signed_v<I>) {
    if (b == I(-1)) return I(0 - uint64_t(a));
  }
  return a / b;
}

template <class I>
RK_ANY I int_mod(I a, I b) {
  if (b == I(0)) return I(0);
  if constexpr (std::is_signed_v<I>) {
    if (b == I(-1)) return I(0);
  }
  return a % b;
}

// base^exp modulo 2^64; a negative exponent gives the power cut off towards zero, and 0 for base 0.
RK_ANY uint64_t int_pow(uint64_t base, int64_t exp) {
  if (exp < 0) {
    if (base == 1) return 1;
    if (base == ~uint64_t(0)) return exp & 1 ? base : 1;
    return 0;
  }
  uint64_t p = 1;
  for (; exp > 0; exp >>= 1) {
    if (exp & 1) p *= base;
    base *= base;
  }
  return p;
}

}  // namespace detail

}  // namespace fn
}  // namespace rk
