// The elementwise ONNX operators as functions rk::fn::Operator<Result>(operands…, attributes…).
//
// Operations on floats are computed in Calc<Result> (float for 16-bit types) and rounded once; a NaN gives a NaN.
// Operations on integers wrap around, and a division by zero gives 0. Conversions from floats to integers cut off the
// fraction and saturate; NaN becomes 0.
#pragma once

#include "common/arithmetic.cuh"
#include "common/narrow.cuh"
#include "common/rounding.cuh"
#include "common/types.cuh"

namespace rk {
namespace fn {

struct None {};  // an optional operand that is absent

// Values of string attributes.
struct Tag {
  int id;
};
inline constexpr Tag none_{0}, tanh_{1}, left_{0}, right_{1}, up_{0}, down_{1}, nearest_{2};

template <class R, class T>
RK_ANY R Cast(T x) {
  if constexpr (std::is_same_v<R, T>) {
    return x;
  } else if constexpr (is_narrow_int<T>) {
    return Cast<R>(int32_t(x));
  } else if constexpr (std::is_same_v<R, float> && (std::is_same_v<T, int8_t> || std::is_same_v<T, uint8_t>)) {
    // In the lowest bits of 2^23, which takes no conversion. Of a sign the bit is 0 for negative numbers.
    constexpr uint32_t kSign = std::is_same_v<T, int8_t> ? 0x80 : 0;
    return bit_cast<float>(0x4b000000u | (uint8_t(x) ^ kSign)) - (8388608.0f + float(kSign));
  } else if constexpr (std::is_same_v<R, bool>) {
    return !(Calc<T>(x) == Calc<T>(0));
  } else if constexpr (is_narrow_int<R> && is_float<T>) {
    return R(detail::saturate<int32_t>(Calc<T>(x)));
  } else if constexpr (!is_float<R> && is_float<T>) {
    return detail::saturate<R>(Calc<T>(x));
  } else if constexpr (is_float<T>) {
    return R(Calc<T>(x));
  } else {
    return R(x);
  }
}

// Cast to a narrow float, with ONNX's attributes saturate and round_mode, which is for powers of two alone.
template <class R, class T>
RK_ANY R Cast(T x, int saturate, Tag mode) {
  float f;
  if constexpr (std::is_same_v<R, T>) return x;
  if constexpr (std::is_same_v<Calc<T>, float>)
    f = float(x);
  else
    f = rk::detail::round_to_odd(double(x));
  if constexpr (std::is_same_v<R, float8_e8m0>)
    return R::from_bits(uint8_t(R::round(f, saturate != 0, mode.id)));
  else
    return R::from_bits(uint8_t(R::round(f, saturate != 0)));
}

// The bits of x as another type of the same size.
template <class R, class T>
RK_ANY R BitCast(T x) {
  static_assert(sizeof(R) == sizeof(T));
  if constexpr (std::is_same_v<R, bool>) {
    return __builtin_bit_cast(unsigned char, x) != 0;
  } else {
    return __builtin_bit_cast(R, x);
  }
}

// Unary operators on floats.
#define RK_UNARY(Name, expression)      \
  template <class R, class T>           \
  RK_ANY R Name(T operand) {            \
    const Calc<R> x = Calc<R>(operand); \
    return R(expression);               \
  }
#define RK_ONE Calc<R>(1)
RK_UNARY(Exp, real::exp(x))
RK_UNARY(Log, real::log(x))
RK_UNARY(Sqrt, real::sqrt(x))
RK_UNARY(Reciprocal, RK_ONE / x)
RK_UNARY(Floor, real::floor(x))
RK_UNARY(Ceil, real::ceil(x))
RK_UNARY(Round, real::rint(x))
RK_UNARY(Sin, real::sin(x))
RK_UNARY(Cos, real::cos(x))
RK_UNARY(Tan, real::tan(x))
RK_UNARY(Asin, real::asin(x))
RK_UNARY(Acos, real::acos(x))
RK_UNARY(Atan, real::atan(x))
RK_UNARY(Sinh, real::sinh(x))
RK_UNARY(Cosh, real::cosh(x))
RK_UNARY(Tanh, real::tanh(x))
RK_UNARY(Asinh, real::asinh(x))
RK_UNARY(Acosh, real::acosh(x))
RK_UNARY(Atanh, real::atanh(x))
RK_UNARY(Erf, real::erf(x))
RK_UNARY(Sigmoid, RK_ONE / (RK_ONE + real::exp(-x)))
RK_UNARY(Softplus, real::softplus(x))
RK_UNARY(Softsign, x / (RK_ONE + real::abs(x)))
RK_UNARY(Mish, x* real::tanh(real::softplus(x)))
#undef RK_UNARY
#undef RK_ONE

// Extremes: NaN wins.
template <class R, class T, class U>
RK_ANY R Max(T a, U b) {
  const Calc<R> x = Calc<R>(a), y = Calc<R>(b);
  return R(x > y || !(x == x) ? x : y);
}

template <class R, class T, class U>
RK_ANY R Min(T a, U b) {
  const Calc<R> x = Calc<R>(a), y = Calc<R>(b);
  return R(x < y || !(x == x) ? x : y);
}

// min(max(x, lo), hi): where lo > hi the result is hi.
template <class R, class T, class L, class H>
RK_ANY R Clip(T x, L lo, H hi) {
  R v = R(x);
  if constexpr (!std::is_same_v<L, None>) v = Max<R>(v, lo);
  if constexpr (!std::is_same_v<H, None>) v = Min<R>(v, hi);
  return v;
}

template <class R, class T, class L>
RK_ANY R Clip(T x, L lo) {
  return Clip<R>(x, lo, None{});
}

template <class R, class T>
RK_ANY R Clip(T x) {
  return R(x);
}

// Unary operators on floats and integers.
template <class R, class T>
RK_ANY R Abs(T x) {
  if constexpr (is_float<R>)
    return R(real::abs(Calc<R>(x)));
  else
    return detail::negative(Calc<R>(x)) ? detail::wrap<R>(0 - uint64_t(x)) : R(x);
}

template <class R, class T>
RK_ANY R Neg(T x) {
  if constexpr (is_float<R>)
    return R(-Calc<R>(x));
  else
    return detail::wrap<R>(0 - uint64_t(x));
}

template <class R, class T>
RK_ANY R Sign(T operand) {
  const Calc<R> x = Calc<R>(operand), zero = Calc<R>(0);
  if (x > zero) return R(1);
  if (detail::negative(x)) return R(-1);
  return R(x);  // keeps NaN and the zeros
}

template <class R, class T>
RK_ANY R Relu(T x) {
  return Calc<R>(x) < Calc<R>(0) ? R(0) : R(x);
}

// The same with another smallest result than 0.
template <class R, class T>
RK_ANY R Relu(T x, float least) {
  return x < least ? R(least) : R(x);
}

template <class R, class T, class S>
RK_ANY R PRelu(T operand, S slope) {
  if constexpr (is_float<R>) {
    const Calc<R> x = Calc<R>(operand);
    return R(x < Calc<R>(0) ? Calc<R>(slope) * x : x);
  } else {
    return detail::negative(Calc<R>(operand)) ? detail::wrap<R>(uint64_t(operand) * uint64_t(slope)) : R(operand);
  }
}

template <class R, class T>
RK_ANY R LeakyRelu(T operand, float alpha) {
  const Calc<R> x = Calc<R>(operand);
  return R(x < Calc<R>(0) ? Calc<R>(alpha) * x : x);
}

template <class R, class T>
RK_ANY R Elu(T operand, float alpha) {
  const Calc<R> x = Calc<R>(operand);
  return R(x < Calc<R>(0) ? Calc<R>(alpha) * real::expm1(x) : x);
}

template <class R, class T>
RK_ANY R Selu(T operand, float alpha, float gamma) {
  const Calc<R> x = Calc<R>(operand);
  return R(Calc<R>(gamma) * (x < Calc<R>(0) ? Calc<R>(alpha) * real::expm1(x) : x));
}

template <class R, class T>
RK_ANY R Celu(T operand, float alpha) {
  const Calc<R> x = Calc<R>(operand), a = Calc<R>(alpha), zero = Calc<R>(0);
  const Calc<R> low = a * real::expm1(x / a);
  return R((x < zero ? zero : x) + (low > zero ? zero : low));
}

template <class R, class T>
RK_ANY R HardSigmoid(T operand, float alpha, float beta) {
  const Calc<R> x = Calc<R>(alpha) * Calc<R>(operand) + Calc<R>(beta);
  return Clip<R>(R(x), R(0), R(1));
}

template <class R, class T>
RK_ANY R HardSwish(T operand) {
  const Calc<R> x = Calc<R>(operand);
  return R(x * Clip<Calc<R>>(x / Calc<R>(6) + Calc<R>(0.5), Calc<R>(0), Calc<R>(1)));
}

template <class R, class T>
RK_ANY R Swish(T operand, float alpha) {
  const Calc<R> x = Calc<R>(operand);
  return R(x / (Calc<R>(1) + real::exp(-Calc<R>(alpha) * x)));
}

template <class R, class T>
RK_ANY R ThresholdedRelu(T x, float alpha) {
  return Calc<R>(x) <= Calc<R>(alpha) ? R(0) : R(x);
}

template <class R, class T>
RK_ANY R Gelu(T operand, Tag approximate) {
  using C = Calc<R>;
  const C x = C(operand);
  if (approximate.id == tanh_.id) {
    const C inner = C(0.79788456080286535588) * (x + C(0.044715) * x * x * x);
    return R(C(0.5) * x * (C(1) + real::tanh(inner)));
  }
  return R(real::gelu(x));
}

// Shrink computes with real numbers also where x is an integer, since bias and lambd are floats.
template <class R, class T>
RK_ANY R Shrink(T operand, float bias, float lambd) {
  using F = Real<T>;
  const F x = F(operand);
  if (x < F(-lambd)) return Cast<R>(x + F(bias));
  if (x > F(lambd)) return Cast<R>(x - F(bias));
  return Cast<R>(x == x ? F(0) : x);
}

template <class R, class T>
RK_ANY R IsNaN(T x) {
  return R(!(Calc<T>(x) == Calc<T>(x)));
}

template <class R, class T>
RK_ANY R IsInf(T operand, int negative, int positive) {
  const Calc<T> x = Calc<T>(operand), inf = Calc<T>(inf_f());
  return R((negative != 0 && x == -inf) || (positive != 0 && x == inf));
}

// Arithmetic.
template <class R, class T, class U>
RK_ANY R Add(T a, U b) {
  if constexpr (is_float<R>)
    return R(Calc<R>(a) + Calc<R>(b));
  else
    return detail::wrap<R>(uint64_t(a) + uint64_t(b));
}

template <class R, class T, class U>
RK_ANY R Sub(T a, U b) {
  if constexpr (is_float<R>)
    return R(Calc<R>(a) - Calc<R>(b));
  else
    return detail::wrap<R>(uint64_t(a) - uint64_t(b));
}

template <class R, class T, class U>
RK_ANY R Mul(T a, U b) {
  if constexpr (is_float<R>)
    return R(Calc<R>(a) * Calc<R>(b));
  else
    return detail::wrap<R>(uint64_t(a) * uint64_t(b));
}

template <class R, class T, class U>
RK_ANY R Div(T a, U b) {
  if constexpr (is_float<R>)
    return R(Calc<R>(a) / Calc<R>(b));
  else
    return R(detail::int_div<Calc<R>>(Calc<R>(a), Calc<R>(b)));
}

// The remainder: with the divisor's sign, or the dividend's when truncated is set (attribute fmod).
template <class R, class T, class U>
RK_ANY R Mod(T a, U b, int truncated) {
  const Calc<R> x = Calc<R>(a), y = Calc<R>(b);
  Calc<R> m;
  if constexpr (is_float<R>)
    m = real::mod(x, y);
  else
    m = detail::int_mod<Calc<R>>(x, y);
  return R(truncated != 0 ? m : detail::floor_mod<R>(y, m));
}

// x^y has x's element type. A power of two integers is exact, and wraps around. An integer exponent of a float stays an
// integer, since its parity decides the sign.
template <class R, class T, class U>
RK_ANY R Pow(T x, U y) {
  if constexpr (is_float<R>) {
    using C = std::conditional_t<(sizeof(U) >= 4 && !is_float<U>) || std::is_same_v<U, double>, double, Calc<R>>;
    return R(Calc<R>(real::pow(C(Calc<T>(x)), C(Calc<U>(y)))));
  } else if constexpr (is_float<U>) {
    return Cast<R>(real::pow(double(x), double(Calc<U>(y))));
  } else {
    return detail::wrap<R>(detail::int_pow(uint64_t(x), int64_t(y)));
  }
}

// Bits.
template <class R, class T>
RK_ANY R BitwiseNot(T x) {
  return R(~x);
}

template <class R, class T, class U>
RK_ANY R BitwiseAnd(T a, U b) {
  return R(a & b);
}

template <class R, class T, class U>
RK_ANY R BitwiseOr(T a, U b) {
  return R(a | b);
}

template <class R, class T, class U>
RK_ANY R BitwiseXor(T a, U b) {
  return R(a ^ b);
}

template <class R, class T, class U>
RK_ANY R BitShift(T a, U b, Tag direction) {
  if (uint64_t(b) >= 64) return R(0);
  const uint64_t x = uint64_t(a);
  return R(direction.id == left_.id ? x << b : x >> b);
}

// Logic and comparisons.
template <class R>
RK_ANY R Not(bool x) {
  return R(!x);
}

template <class R>
RK_ANY R And(bool a, bool b) {
  return R(a && b);
}

template <class R>
RK_ANY R Or(bool a, bool b) {
  return R(a || b);
}

template <class R>
RK_ANY R Xor(bool a, bool b) {
  return R(a != b);
}

#define RK_COMPARISON(Name, op)         \
  template <class R, class T>           \
  RK_ANY R Name(T a, T b) {             \
    return R(Calc<T>(a) op Calc<T>(b)); \
  }
RK_COMPARISON(Equal, ==)
RK_COMPARISON(Greater, >)
RK_COMPARISON(GreaterOrEqual, >=)
RK_COMPARISON(Less, <)
RK_COMPARISON(LessOrEqual, <=)
#undef RK_COMPARISON

template <class R, class T, class U>
RK_ANY R Where(bool condition, T x, U y) {
  return condition ? R(x) : R(y);
}

}  // namespace fn
}  // namespace rk
