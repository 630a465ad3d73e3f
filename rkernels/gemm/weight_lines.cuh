// How weights of 8 and 4 bits stand in the stream of gemv_mma.cuh: in lines, of which each lane of a warp takes 16
// bytes. A line has 16 columns and as many values of k as that is. In each step of 16 values, lane 4·g + t has those of
// the columns g and g + 8 for the values 4t to 4t + 3.
//
// Weights of 8 or 4 bits stand for (w - zero)·scale. They are not converted. A weight u, masked out of its word where
// it stands, in the lower bits of a half of the word, is a subnormal number u·2^k of 16 bits, and the instruction takes
// these as they are. So eight weights of 4 bits take four masks and a shift. In bfloat16, k is -133 or less far down,
// so A is multiplied by 2^80 beforehand, and the sums by what is then missing: they are those of float32 as long as A
// is less than 2^47 in magnitude.
#pragma once

#include <cstdint>
#include <type_traits>

#include "common/types.cuh"
#include "rt/device/device.cuh"

namespace rk {

constexpr int kMmaDepth = 16;  // values of k that one instruction takes

// What a lane takes with one load: its share of 16 columns over kSteps·16 values of k.
struct alignas(16) WeightLine {
  uint32_t words[4];
};

// How the scales of groups of weights along k stand in the stream, beside the weights.
enum ScaleForm {
  kNoScales = 0,     // each column has one scale, which the epilogue applies
  kHalfScales = 1,   // float16
  kHalfPairs = 2,    // float16 scales, each with its zero point
  kFloatScales = 3,  // float32
  kFloatPairs = 4,
};

// The scales of two columns, eight apart, for one group of weights.
template <int FORM>
struct WeightScales {
  static constexpr bool kPairs = FORM == kHalfPairs || FORM == kFloatPairs;
  using Number = std::conditional_t<FORM == kHalfScales || FORM == kHalfPairs, half, float>;
  Number v[2][kPairs ? 2 : 1];
};

// How weights of BITS bits stand in the stream: word number s of a line has the fragment of step s if BITS is 4, two
// words have it if BITS is 8. Groups of GROUP steps share a scale; FORM says how scales stand behind the lines.
template <class E, int BITS, int FORM, int GROUP>
struct CodeLines {
  using Element = E;
  using Scales = WeightScales<FORM>;
  static constexpr int kSteps = 16 / BITS;
  static constexpr int kGroup = GROUP;  // steps that share a scale
  static constexpr int kScales = FORM == kNoScales ? 0 : 8 * 8 * static_cast<int>(sizeof(Scales)) * (kSteps / GROUP);
  static_assert(kSteps % kGroup == 0, "a line is whole groups");
  struct Args {
    float zero;  // the zero point of all weights, unless FORM has pairs
  };
  static RT_DEVICE void fragment(uint32_t (&a)[4], const WeightLine& line, int step) {
    if constexpr (BITS == 4) {
      const uint32_t low = line.words[step], high = low >> 8;
      a[0] = low & 0x000f000fu, a[1] = low & 0x00f000f0u, a[2] = high & 0x000f000fu, a[3] = high & 0x00f000f0u;
    } else {
      const uint32_t first = line.words[2 * step], second = line.words[2 * step + 1];
      a[0] = first & 0x00ff00ffu, a[1] = second & 0x00ff00ffu;
      a[2] = first >> 8 & 0x00ff00ffu, a[3] = second >> 8 & 0x00ff00ffu;
    }
  }
  // What A is multiplied by, and what sums of the columns 0 to 7 and 8 to 15 of a tile are multiplied by in turn.
  // Weights of 4 bits stand four bits higher in the latter.
  static constexpr bool kWide = std::is_same_v<E, bfloat16>;
  static constexpr float kFactor = kWide ? 0x1p80f : 1.0f;
  static RT_DEVICE float unscale(int upper) {
    return (kWide ? 0x1p53f : 0x1p24f) * (BITS == 4 && upper != 0 ? 0.0625f : 1.0f);
  }
};

}  // namespace rk
