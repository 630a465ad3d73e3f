// Few rows against streamed weights of 8 or 4 bits, which stand for (w - zero)·scale; see streamed_rows.cuh. What such
// products take is the time that their weights take to arrive: weights of 4 bits take an eighth of that of float32.
//
// Weights are not converted to floats. The bits of a weight, masked out of a word of 32 bits where they stand, are a
// subnormal float: the value u·2^(p-149) for a weight u that begins at bit p. Fused multiplications take subnormal
// numbers at full speed, so an AND and a multiplication are all that a weight takes. The input is multiplied beforehand
// by 2^(80-p), and the sum by 2^69. Sums are therefore those of float32, as long as inputs are less than 2^47 in
// magnitude; inputs below 2^-57 lose digits.
#pragma once

#include "gemm/streamed_rows.cuh"

namespace rk {

// The weights that one load of a lane brings: RUN of a column, along k, the first in the lowest bits.
template <int BITS, int RUN>
struct alignas(RUN* BITS / 8) WeightBits {
  static constexpr int kWords = RUN * BITS / 32;
  static constexpr int kPerWord = 32 / BITS;
  static constexpr int kInPlace = 24 / BITS;  // weights of a word whose bits are a float's as they stand
  static constexpr uint32_t kMask = (1u << BITS) - 1;
  uint32_t words[kWords];

  // Weight i as a float. Those in the upper 8 bits of a word, where a float's exponent is, are moved down first.
  RT_DEVICE float value(int i) const {
    const uint32_t word = words[i / kPerWord];
    const int at = i % kPerWord;
    if (at < kInPlace) return bit_cast<float>(word & kMask << at * BITS);
    const uint32_t low = word >> at * BITS;
    return bit_cast<float>(at == kPerWord - 1 ? low : low & kMask);
  }
  // What the input that meets weight i is multiplied by. It is made of bits, which compilers fold where i is known.
  static RT_DEVICE float factor(int i) {
    const int at = i % kPerWord;
    return bit_cast<float>((127u + 80u - (at < kInPlace ? at * BITS : 0)) << 23);
  }
  static constexpr float kUnscale = 0x1p69f;
};

// How the scales of groups of weights along k stand in the stream, beside the weights.
enum ScaleForm {
  kNoScales = 0,     // each column has one scale, which the epilogue applies
  kHalfScales = 1,   // float16
  kHalfPairs = 2,    // float16 scales, each with its zero point
  kFloatScales = 3,  // float32
  kFloatPairs = 4,
};

template <int FORM>
struct WeightScale {
  static constexpr int kBytes = FORM == kHalfScales ? 2 : FORM == kFloatPairs ? 8 : 4;
  static constexpr bool kPairs = FORM == kHalfPairs || FORM == kFloatPairs;
  using Number = std::conditional_t<FORM == kHalfScales || FORM == kHalfPairs, half, float>;
  Number v[kPairs ? 2 : 1];
};

// Weights of BITS bits, RUN of which one load brings. FORM says how scales stand in the stream, behind the weights of a
// unit; the scales of one run of all threads are SB bytes.
template <int BITS, int RUN, int FORM, int SB>
struct QuantizedWeights {
  using Bits = WeightBits<BITS, RUN>;
  using Scale = WeightScale<FORM>;
  static constexpr int kRun = RUN;
  struct Args {
    float zero;  // the zero point of all weights, unless FORM has pairs
  };

  template <int KQ, int C>
  struct Unit {
    static constexpr int kThreads = 256;
    static constexpr int kRunBytes = 32 * RUN * BITS;  // of the weights of a run of all threads
    static constexpr int kBytes = KQ * C * (kRunBytes + SB);
    static constexpr int kSharing = SB > 0 ? kThreads* Scale::kBytes / SB : 1;  // lanes with the same scale
    Bits bits[KQ][C];
    Scale scales[FORM == kNoScales ? 1 : KQ][C];
    RT_DEVICE void load(const char* unit, int tid) {
      const Bits* at = reinterpret_cast<const Bits*>(unit) + tid;
      const char* scale = unit + KQ * C * kRunBytes;
      RT_UNROLL
      for (int q = 0; q < KQ; ++q) {
        RT_UNROLL
        for (int c = 0; c < C; ++c) {
          bits[q][c] = at[(q * C + c) * kThreads];
          if constexpr (FORM != kNoScales) {
            scales[q][c] = reinterpret_cast<const Scale*>(scale + (q * C + c) * SB)[tid / kSharing];
          }
        }
      }
    }
  };

  template <int MB, int KQ>
  struct Input {
    float v[MB][KQ][RUN];  // multiplied by Bits::factor
    float sum[MB][KQ];     // of the lane's values in a run
    RT_DEVICE void set(int m, int q, int i, float x) {
      sum[m][q] = i == 0 ? x : sum[m][q] + x;
      v[m][q][i] = x * Bits::factor(i);
    }
  };

  // The sums of the lane's products of one unit. All columns of a run take turns, and each is summed up in several
  // chains where there are few columns, so that no addition waits for the one before it.
  template <int MB, int KQ, int C>
  static RT_DEVICE void multiply(const Input<MB, KQ>& in, const Unit<KQ, C>& unit, const Args& args, float* sums) {
    constexpr int kSums = MB * C, kChains = kSums < 8 ? 8 / kSums : 1;
    RT_UNROLL
    for (int i = 0; i < kSums; ++i) sums[i] = 0;
    RT_UNROLL
    for (int q = 0; q < KQ; ++q) {
      float chains[kSums][kChains] = {};
      RT_UNROLL
      for (int i = 0; i < RUN; ++i) {
        RT_UNROLL
        for (int c = 0; c < C; ++c) {
          const float u = unit.bits[q][c].value(i);
          RT_UNROLL
          for (int m = 0; m < MB; ++m) chains[m * C + c][i % kChains] += in.v[m][q][i] * u;
        }
      }
      RT_UNROLL
      for (int c = 0; c < C; ++c) {
        float scale = 1.0f, zero = args.zero;
        if constexpr (FORM != kNoScales) scale = static_cast<float>(unit.scales[q][c].v[0]);
        if constexpr (Scale::kPairs) zero = static_cast<float>(unit.scales[q][c].v[1]);
        RT_UNROLL
        for (int m = 0; m < MB; ++m) {
          float dot = chains[m * C + c][0];
          RT_UNROLL
          for (int j = 1; j < kChains; ++j) dot += chains[m * C + c][j];
          sums[m * C + c] += scale * (dot * Bits::kUnscale - zero * in.sum[m][q]);
        }
      }
    }
  }
};

template <int MB, int C, int T, int WK, int KQ, int V, int Norm, class X, int BITS, int RUN, int FORM, int SB,
          class Epi, class Pro>
using GemvQuant = StreamedRows<MB, C, T, WK, KQ, V, Norm, X, QuantizedWeights<BITS, RUN, FORM, SB>, Epi, Pro>;

}  // namespace rk
