// Element types of at most 8 bits: what quantised numbers are stored in. Each element takes a byte in memory. They are
// converted and moved, never computed with. All of this works on the host, too.
#pragma once

#include "common/types.cuh"

namespace rk {
namespace detail {

// How a narrow float stores what it has no value for.
enum class Special {
  kInfinity,  // the highest exponent is infinity, or NaN with any bit of fraction (e5m2)
  kLastNaN,   // the code after the largest value is NaN (e4m3fn)
  kOneZero,   // the code of -0 is NaN (the fnuz types)
  kNone,      // neither NaN nor infinity (e2m1)
};

// A float of 1 + E + M bits: sign, exponent with the given bias, fraction.
template <int E, int M, int Bias, Special S>
struct narrow_float {
  uint8_t bits;

  static constexpr uint32_t kSign = 1u << (E + M);
  static constexpr uint32_t kLast = S == Special::kInfinity  ? kSign - (1u << M) - 1
                                    : S == Special::kLastNaN ? kSign - 2
                                                             : kSign - 1;
  static constexpr uint32_t kNaN = S == Special::kOneZero ? kSign : S == Special::kNone ? kSign : kSign - 1;

  narrow_float() = default;
  explicit RK_ANY narrow_float(float x) : bits(uint8_t(round(x, true))) {}
  explicit RK_ANY narrow_float(double x) : bits(uint8_t(round(round_to_odd(x), true))) {}
  template <class I, class = std::enable_if_t<std::is_integral_v<I>>>
  explicit RK_ANY narrow_float(I x) : narrow_float(double(x)) {}

  static RK_ANY narrow_float from_bits(uint8_t b) {
    narrow_float f;
    f.bits = b;
    return f;
  }

  // The value's exponent is rebiased by a multiplication, which also normalises subnormal numbers.
  RK_ANY operator float() const {
    const uint32_t magnitude = bits & (kSign - 1), sign = (bits & kSign) != 0 ? 0x80000000u : 0u;
    if (S == Special::kOneZero ? bits == kSign : magnitude > kLast) {
      const bool infinite = S == Special::kInfinity && magnitude == kLast + 1;
      return bit_cast<float>(sign | (infinite ? 0x7f800000u : 0x7fc00000u));
    }
    const float f = bit_cast<float>(magnitude << (23 - M)) * bit_cast<float>(uint32_t(254 - Bias) << 23);
    return bit_cast<float>(bit_cast<uint32_t>(f) | sign);
  }

  // The code of x, rounded to nearest, ties to even. With saturate values beyond the largest one become that.
  static RK_ANY uint32_t round(float x, bool saturate) {
    const uint32_t all = bit_cast<uint32_t>(x), a = all & 0x7fffffffu;
    const uint32_t sign = all >> 31 != 0 ? kSign : 0;
    if (a > 0x7f800000u) return kNaN;
    uint32_t code;
    if (a < uint32_t(128 - Bias) << 23) {  // subnormal: an addition leaves the magnitude in units of the last place
      const uint32_t unit = uint32_t(151 - Bias - M) << 23;
      code = bit_cast<uint32_t>(bit_cast<float>(a) + bit_cast<float>(unit)) - unit;
    } else {
      const uint32_t rounded = a + (1u << (22 - M)) - 1 + (a >> (23 - M) & 1u);
      code = (rounded >> (23 - M)) - (uint32_t(127 - Bias) << M);
    }
    if (code > kLast) {
      if (saturate || S == Special::kNone)
        code = kLast;
      else if (S == Special::kInfinity)
        code = kLast + 1;
      else
        return kNaN;
    }
    return S == Special::kOneZero && code == 0 ? 0 : code | sign;
  }
};

// A power of two, given by the exponent of a float32; 255 is NaN.
struct power_of_two {
  uint8_t bits;
  power_of_two() = default;
  explicit RK_ANY power_of_two(float x) : bits(uint8_t(round(x, true, 0))) {}
  explicit RK_ANY power_of_two(double x) : bits(uint8_t(round(round_to_odd(x), true, 0))) {}
  template <class I, class = std::enable_if_t<std::is_integral_v<I>>>
  explicit RK_ANY power_of_two(I x) : power_of_two(double(x)) {}
  static RK_ANY power_of_two from_bits(uint8_t b) {
    power_of_two f;
    f.bits = b;
    return f;
  }
  RK_ANY operator float() const {
    if (bits == 255) return bit_cast<float>(0x7fc00000u);
    return bit_cast<float>(bits == 0 ? 0x00400000u : uint32_t(bits) << 23);
  }
  // mode: 0 rounds up, 1 down, 2 to nearest, ties to the even exponent.
  static RK_ANY uint32_t round(float x, bool saturate, int mode) {
    const uint32_t all = bit_cast<uint32_t>(x);
    if ((all & 0x7fffffffu) > 0x7f800000u || all > 0x80000000u) return 255;
    if (all == 0x80000000u || all <= 0x00400000u) return 0;  // 2^-127 and below
    uint32_t exponent = all >> 23, fraction = all & 0x7fffffu;
    if (exponent == 0) fraction = (fraction - 0x400000u) << 1;  // subnormal: between 2^-127 and 2^-126
    const bool up = mode == 0 ? fraction != 0 : mode == 2 && fraction + (exponent & 1u) > 0x400000u;
    exponent += up ? 1 : 0;
    return exponent < 255 ? exponent : saturate ? 254 : 255;
  }
};

// An integer of less than 8 bits. Conversions keep the lowest bits, as those between wider integers do.
template <int Bits, bool Signed>
struct narrow_int {
  using Byte = std::conditional_t<Signed, int8_t, uint8_t>;
  Byte value;
  narrow_int() = default;
  template <class I, class = std::enable_if_t<std::is_integral_v<I>>>
  explicit RK_ANY narrow_int(I x) : value(Byte(Byte(uint32_t(x) << (8 - Bits)) >> (8 - Bits))) {}
  RK_ANY operator int() const { return value; }
};

}  // namespace detail

using float8_e4m3fn = detail::narrow_float<4, 3, 7, detail::Special::kLastNaN>;
using float8_e4m3fnuz = detail::narrow_float<4, 3, 8, detail::Special::kOneZero>;
using float8_e5m2 = detail::narrow_float<5, 2, 15, detail::Special::kInfinity>;
using float8_e5m2fnuz = detail::narrow_float<5, 2, 16, detail::Special::kOneZero>;
using float8_e8m0 = detail::power_of_two;
using float4_e2m1 = detail::narrow_float<2, 1, 1, detail::Special::kNone>;
using int4_t = detail::narrow_int<4, true>;
using uint4_t = detail::narrow_int<4, false>;
using int2_t = detail::narrow_int<2, true>;
using uint2_t = detail::narrow_int<2, false>;

template <int E, int M, int Bias, detail::Special S>
struct CalcOf<detail::narrow_float<E, M, Bias, S>> {
  using type = float;
};
template <>
struct CalcOf<float8_e8m0> {
  using type = float;
};

template <class T>
inline constexpr bool is_narrow_int = false;
template <int Bits, bool Signed>
inline constexpr bool is_narrow_int<detail::narrow_int<Bits, Signed>> = true;

}  // namespace rk
