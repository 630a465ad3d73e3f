// Products of float32 numbers out of products of float16, which tensor cores multiply twice as fast as tf32.
//
// A number x is split in two of float16, with a power of two s that is its scale:
//
//   hi = half(x·s)    lo = half(x·s - hi)    x·y = (hi·hi' + hi·lo' + lo·hi') / (s·s')
//
// Either part has 11 bits of the mantissa, so that three products have the accuracy of one of float32: lo·lo' is below
// half a unit in the last place. The scale is there because float16 ends at 2^16, and has fewer bits below 2^-14. A
// packed constant has one scale, which is found when it is packed. A row of A has one of its own, which is found when
// the row's first numbers come, and again when there comes one that is too large for it; numbers that are small beside
// others of their row lose bits that their sum could not hold. Tensor cores cut off the bits that do not fit while they
// add, always towards zero, which shows as a bias over many additions. So each sum that is one stage deep starts from
// zero, and is added to the rest in float32, divided by the row's scale.
#pragma once

#include "common/mma.cuh"
#include "common/types.cuh"

namespace rk {

// A fragment of 16 rows of A, 16 deep, as it comes by two load_fragments, each of 8 numbers of float32 a row. A word of
// a fragment of float16 pairs numbers that are neighbours along the depth, but a thread has those that are 4 apart. So
// these pairs are taken for neighbours, and constants are packed with their depths in the same order:
//
//   depth of A in memory    0 4 1 5 2 6 3 7   8 12 9 13 10 14 11 15
//   depth of the fragment   0 1 2 3 4 5 6 7   8  9 10 11 12 13 14 15
struct WideFragment {
  uint32_t words[8];  // the even ones are of row g, the odd ones of row g + 8
  RT_DEVICE void load(const float* row) {
    uint32_t r[2][4];
    rt::load_fragments(r[0], row);
    rt::load_fragments(r[1], row + 8);
    take(r);
  }
  // Takes what the two loads bring.
  RT_DEVICE void take(const uint32_t (&r)[2][4]) {
    RT_UNROLL
    for (int i = 0; i < 8; ++i) words[i] = r[i / 4][i % 4];
  }
};

// The scales of a thread's two rows of a fragment.
class RowScales {
 public:
  // Makes the scales serve the numbers of these fragments too.
  template <int N>
  RT_DEVICE void cover(const WideFragment (&fragments)[N]) {
    float top[2] = {0.0f, 0.0f};
    RT_UNROLL
    for (int n = 0; n < N; ++n) {
      RT_UNROLL
      for (int i = 0; i < 8; ++i) {
        top[i % 2] = fmaxf(top[i % 2], __builtin_fabsf(rk::bit_cast<float>(fragments[n].words[i])));
      }
    }
    if (!rt::all_lanes(top[0] * up_[0] <= kMost && top[1] * up_[1] <= kMost)) find(top);
  }
  RT_DEVICE float up(int row) const { return up_[row]; }
  // The inverse of up.
  RT_DEVICE float down(int row) const { return rk::bit_cast<float>(0x7f000000u - rk::bit_cast<uint32_t>(up_[row])); }

 private:
  // The largest number that parts are made of, and the power of two up to which numbers are brought. In between there
  // is room for later numbers of a row to be larger than its first ones.
  static constexpr float kMost = 32768.0f;
  static constexpr uint32_t kBrought = 8;
  // Exponents in the form of float32: that of 1, and the least one for which the scale is a number. Numbers that are
  // smaller stay smaller.
  static constexpr uint32_t kOne = 127, kLeast = kBrought + 1;

  RT_DEVICE void find(const float (&top)[2]) {
    RT_UNROLL
    for (int i = 0; i < 2; ++i) {
      const uint32_t exponent = rk::bit_cast<uint32_t>(rt::row_maximum(top[i])) >> 23;
      up_[i] = rk::bit_cast<float>((2 * kOne + kBrought - (exponent > kLeast ? exponent : kLeast)) << 23);
    }
  }

  float up_[2] = {__builtin_inff(), __builtin_inff()};  // before the first numbers
};

// The parts of a fragment 16 deep.
struct SplitFragment {
  uint32_t hi[4], lo[4];
  RT_DEVICE void take(const WideFragment& wide, const RowScales& scales) {
    RT_UNROLL
    for (int i = 0; i < 4; ++i) {
      const uint32_t* w = wide.words + i / 2 * 4 + i % 2;
      const float up = scales.up(i % 2), x = rk::bit_cast<float>(w[0]) * up, y = rk::bit_cast<float>(w[2]) * up;
      hi[i] = narrow_pair<half>(x, y);
      lo[i] = narrow_pair<half>(x - half::from_bits(static_cast<uint16_t>(hi[i])),
                                y - half::from_bits(static_cast<uint16_t>(hi[i] >> 16)));
    }
  }
};

}  // namespace rk
