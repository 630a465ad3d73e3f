// Element types that C++ does not have, and traits by which all element types can be treated alike.
//
// rk::half and rk::bfloat16 are types to store elements in. Arithmetic happens in float (Calc), and is rounded once, to
// nearest even, when the result is stored. All of this works on the host, too.
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#if defined(__CUDACC__)
#define RK_ANY __host__ __device__ __forceinline__
#define RK_NO_UNROLL _Pragma("unroll 1")
#define RK_UNROLL_4 _Pragma("unroll 4")
#else
#define RK_ANY inline
#define RK_NO_UNROLL
#define RK_UNROLL_4
#endif

namespace rk {

// Bits of one type read as another of the same size.
template <class To, class From>
RK_ANY To bit_cast(From x) {
  static_assert(sizeof(To) == sizeof(From));
  To y;
  memcpy(&y, &x, sizeof y);
  return y;
}

namespace detail {

// The hardware's conversions, where there are such, give the same numbers as what stands behind them.
RK_ANY float widen_half(uint16_t h) {
#if defined(__CUDA_ARCH__)
  float wide;
  asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(h));
  return wide;
#endif
  // The exponent is rebiased by a multiplication, which also normalises subnormal numbers.
  const uint32_t magnitude = (h & 0x7fffu) << 13;
  const uint32_t sign = (h & 0x8000u) << 16;
  float f = bit_cast<float>(magnitude) * bit_cast<float>(0x77800000u);         // 2^112
  if (magnitude >= 0x0f800000u) f = bit_cast<float>(magnitude | 0x7f800000u);  // infinite or NaN
  return bit_cast<float>(bit_cast<uint32_t>(f) | sign);
}

RK_ANY uint16_t narrow_half(float x) {
#if defined(__CUDA_ARCH__)
  uint16_t h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x));
  return h;
#endif
  const uint32_t bits = bit_cast<uint32_t>(x);
  const uint32_t sign = bits >> 16 & 0x8000u;
  const uint32_t a = bits & 0x7fffffffu;
  if (a > 0x7f800000u) return uint16_t(sign | 0x7e00u);
  if (a >= 0x477ff000u) return uint16_t(sign | 0x7c00u);  // 65520 and above
  if (a < 0x38800000u) {                                  // below 2^-14: subnormal
    // Adding 1/2 leaves the magnitude in units of 2^-24, rounded by the addition itself.
    const float f = bit_cast<float>(a) + 0.5f;
    return uint16_t(sign | (bit_cast<uint32_t>(f) - 0x3f000000u));
  }
  return uint16_t(sign | ((a - 0x38000000u + 0xfffu + (a >> 13 & 1u)) >> 13));
}

RK_ANY uint16_t narrow_bfloat16(float x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  uint16_t h;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"(x));
  return h;
#endif
  const uint32_t bits = bit_cast<uint32_t>(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return uint16_t(bits >> 16 | 0x40u);  // stays a NaN
  return uint16_t((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

// The float next to x that has an odd mantissa unless x is exact: rounding it again, to a type with
// at least two bits less, gives the same as rounding x once.
RK_ANY float round_to_odd(double x) {
  const float f = float(x);
  if (double(f) == x || x != x) return f;
  uint32_t bits = bit_cast<uint32_t>(f);
  const double away = f < 0 ? -double(f) : double(f);
  if (away > (x < 0 ? -x : x)) bits--;
  return bit_cast<float>(bits | 1u);
}

}  // namespace detail

struct half {
  uint16_t bits;
  half() = default;
  explicit RK_ANY half(float x) : bits(detail::narrow_half(x)) {}
  explicit RK_ANY half(double x) : bits(detail::narrow_half(detail::round_to_odd(x))) {}
  template <class I, class = std::enable_if_t<std::is_integral_v<I>>>
  explicit RK_ANY half(I x) : half(float(x)) {}
  RK_ANY operator float() const { return detail::widen_half(bits); }
  static RK_ANY half from_bits(uint16_t b) {
    half h;
    h.bits = b;
    return h;
  }
};

struct bfloat16 {
  uint16_t bits;
  bfloat16() = default;
  explicit RK_ANY bfloat16(float x) : bits(detail::narrow_bfloat16(x)) {}
  explicit RK_ANY bfloat16(double x) : bits(detail::narrow_bfloat16(float(x))) {}
  template <class I, class = std::enable_if_t<std::is_integral_v<I>>>
  explicit RK_ANY bfloat16(I x) : bfloat16(double(x)) {}
  RK_ANY operator float() const { return bit_cast<float>(uint32_t(bits) << 16); }
  static RK_ANY bfloat16 from_bits(uint16_t b) {
    bfloat16 h;
    h.bits = b;
    return h;
  }
};

// Two numbers rounded to T, half or bfloat16, as neighbours in memory are: x in the lower half of the word.
template <class T>
RK_ANY uint32_t narrow_pair(float x, float y) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  uint32_t pair;
  if constexpr (std::is_same_v<T, half>) {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(y), "f"(x));
  } else {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(y), "f"(x));
  }
  return pair;
#endif
  return T(x).bits | uint32_t(T(y).bits) << 16;
}

// The type that arithmetic on elements of type T happens in: float for the 16-bit floats, T itself
// for float and double, a 64-bit integer of the same signedness for integers.
template <class T>
struct CalcOf {
  using type = std::conditional_t<std::is_same_v<T, uint64_t>, uint64_t, int64_t>;
};
template <>
struct CalcOf<float> {
  using type = float;
};
template <>
struct CalcOf<double> {
  using type = double;
};
template <>
struct CalcOf<half> {
  using type = float;
};
template <>
struct CalcOf<bfloat16> {
  using type = float;
};
template <class T>
using Calc = typename CalcOf<T>::type;

// The floating-point type that functions of real numbers use for elements of type T.
template <class T>
using Real = std::conditional_t<std::is_same_v<Calc<T>, float>, float, double>;

// The ends of an integer type's range; bool counts as 0 and 1.
template <class T>
inline constexpr T kLowest = std::numeric_limits<T>::min();
template <class T>
inline constexpr T kHighest = std::numeric_limits<T>::max();

template <class T>
inline constexpr bool is_float = std::is_floating_point_v<Calc<T>>;

// The type as which a tile on tensor cores, whose stages hold elements of type E, reads an operand in memory. Bytes are
// read as what a stage holds, so that they are copied as they are; the instruction knows which of them have a sign.
template <class E, class Memory>
using StagedAs = std::conditional_t<sizeof(E) == 1, E, Memory>;

}  // namespace rk
