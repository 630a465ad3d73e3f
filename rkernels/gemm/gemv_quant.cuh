// C[b][m][n] = epilogue(Σ_k prologue(A[b][m][k]) · (Q[k][n] - zero)·scale) for few rows (M ≤ MB) and constant weights Q of 8
// or 4 bits, which are packed and streamed as those of gemv_stream are. What such products take is the time that their
// weights take to arrive, so weights of 4 bits take an eighth of the time of float32.
//
// Weights are not converted to floats. The bits of a weight, masked out of a word of 32 bits where they stand, are a
// subnormal float: the value u·2^(p-149) for a weight u that begins at bit p. Fused multiplications take subnormal
// numbers at full speed, so an AND and a multiplication are all that a weight takes. The input is multiplied beforehand
// by 2^(80-p), and the sum by 2^69. Sums are therefore those of float32, as long as inputs are less than 2^47 in
// magnitude; inputs below 2^-57 lose digits.
#pragma once

#include "common/gemv.cuh"
#include "common/tile.cuh"
#include "rt/device/device.cuh"

namespace rk {

// The weights that one load of a lane brings: RUN of a column, along k, the first in the lowest bits.
template <int BITS, int RUN>
struct alignas(RUN * BITS / 8) WeightBits {
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
  // What the input that meets weight i is multiplied by.
  static RT_DEVICE constexpr float factor(int i) {
    const int at = i % kPerWord;
    return at < kInPlace ? power(80 - at * BITS) : power(80);
  }
  static constexpr float kUnscale = 0x1p69f;

 private:
  static RT_DEVICE constexpr float power(int n) {
    float x = 1;
    for (int i = 0; i < n; ++i) x *= 2;
    return x;
  }
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

// The parameters MB, C, T, WK and V are those of GemvStream. A lane has KQ runs of RUN weights of each of its columns.
// BITS is the size of a weight. FORM says how scales stand in the stream; all threads' scales of one run are SB bytes.
template <int MB, int C, int T, int WK, int KQ, int V, int BITS, int RUN, int FORM, int SB, class Epi, class Pro>
struct GemvQuant {
  using Bits = WeightBits<BITS, RUN>;
  using Scale = WeightScale<FORM>;
  static constexpr int kThreads = 256;
  static constexpr int WC = 8 / WK;
  static constexpr int kColumns = WC * C;  // of a group
  static constexpr int kRuns = 32 * RUN * WK;  // values of k in one run of all lanes and warps
  static constexpr int kSpan = KQ * kRuns;
  static constexpr int kShared = 4 * WK * kThreads;               // partial sums [wk][m][column]
  static constexpr int kRunBytes = 32 * RUN * BITS;               // of the weights of a run of all threads
  static constexpr int kStreamStep = KQ * C * (kRunBytes + SB);   // bytes of a unit
  static constexpr int kSharing = SB > 0 ? kThreads * Scale::kBytes / SB : 1;  // lanes with the same scale
  static constexpr bool kCompact = MB >= 8;
  static constexpr int kSums = MB * C;
  static constexpr int kChains = kSums < 4 ? 4 / kSums : 1;
  static_assert(RUN % 4 == 0 && (V == 1 || V == 4), "single values or quads");
  static_assert(!kCompact || T == 1, "the first turn is none of several units");

  struct Args {
    rt::Ref a, b;
    rt::Operand3 out;  // [batch][m][n]
    int32_t M, N, K;
    int32_t spans;
    int32_t groups, all_groups;  // how many groups an rTask has, and B
    Div tiles_n;
    Div batch1, batch2;          // batch = (b0·batch1 + b1)·batch2 + b2
    int64_t a0, a1, a2, am, ak;  // element strides of A over b0, b1, b2, m, k
    float zero;                  // the zero point of all weights, unless FORM has pairs
    typename Epi::Args epi;
    typename Pro::Args pro;
  };

  struct Weights {
    Bits bits[KQ][C];
    Scale scales[FORM == kNoScales ? 1 : KQ][C];
  };
  struct Input {
    float v[MB][KQ][RUN];  // multiplied by Bits::factor
    float sum[MB][KQ];     // of the lane's input in a run
  };

  // Takes units off the stream, as those of GemvStream. A unit has the weights of all its runs, then their scales.
  class Units {
   public:
    RT_DEVICE explicit Units(const rt::Task& t) : stream_(t.stream), tid_(t.tid) {}
    RT_DEVICE void next(Weights& w, bool last) {
      if (here_ == 0) {
        at_ = reinterpret_cast<const char*>(stream_.front());
        here_ = stream_.chunk_bytes() / kStreamStep;
      }
      const Bits* bits = reinterpret_cast<const Bits*>(at_) + tid_;
      const char* scales = at_ + KQ * C * kRunBytes;
      RT_UNROLL
      for (int q = 0; q < KQ; ++q) {
        RT_UNROLL
        for (int c = 0; c < C; ++c) {
          w.bits[q][c] = bits[(q * C + c) * kThreads];
          if constexpr (FORM != kNoScales)
            w.scales[q][c] = reinterpret_cast<const Scale*>(scales + (q * C + c) * SB)[tid_ / kSharing];
        }
      }
      at_ += kStreamStep;
      if (--here_ == 0 || last) stream_.pop();
    }
    // Called after the last unit.
    RT_DEVICE void done() {
      if (here_ > 0) stream_.pop();
    }

   private:
    rt::Stream stream_;
    const char* at_ = nullptr;
    int tid_;
    int here_ = 0;  // how many units are left of the front chunk
  };

  // What a lane reads of A.
  struct Rows {
    const float* at;  // of the next span
    int64_t am, ak;
    int rows, left;  // left: how many values of k there are from `at` on

    // Takes a span, with zeros where A ends.
    RT_DEVICE void take(const typename Pro::Args& pro, Input& in) {
      RT_UNROLL
      for (int m = 0; m < MB; ++m) {
        RT_UNROLL
        for (int q = 0; q < KQ; ++q) {
          const float* p = ahead(at, m, static_cast<int>(am)) + q * kRuns * (V == 4 ? 1 : ak);
          RT_UNROLL
          for (int i = 0; i < RUN; i += 4) load(p + i * (V == 4 ? 1 : ak), values(m, q) - i, in.v[m][q] + i);
        }
      }
      RT_UNROLL
      for (int m = 0; m < MB; ++m) {
        RT_UNROLL
        for (int q = 0; q < KQ; ++q) {
          float sum = 0;
          RT_UNROLL
          for (int i = 0; i < RUN; ++i) {
            float& x = in.v[m][q][i];
            if constexpr (!Pro::kIdentity) x = i < values(m, q) ? Pro::apply(pro, x) : 0.0f;
            sum += x;
            x *= Bits::factor(i);
          }
          in.sum[m][q] = sum;
        }
      }
      at += kSpan * (V == 4 ? 1 : ak), left -= kSpan;
    }
    // Loads four values of which count exist. With V = 4 there are all or none.
    RT_DEVICE void load(const float* p, int count, float* x) const {
      if constexpr (V == 4) {
        rt::float4v v = {0, 0, 0, 0};
        if (count > 0) v = *reinterpret_cast<const rt::float4v*>(p);
        x[0] = v.x, x[1] = v.y, x[2] = v.z, x[3] = v.w;
      } else {
        RT_UNROLL
        for (int i = 0; i < 4; ++i) x[i] = i < count ? p[i * ak] : 0.0f;
      }
    }
    // How many values there are in run q of row m: RUN or more stand for all.
    RT_DEVICE int values(int m, int q) const { return m == 0 || m < rows ? left - q * kRuns : 0; }
  };

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    const int lane = t.tid % 32, warp = t.tid / 32;
    const int wk = warp % WK, wc = warp / WK;
    Units units(t);
    Weights w;
    if constexpr (!kCompact) units.next(w, false);
    int b0 = rtask;
    const int tile = take_digit(b0, a.tiles_n), batch = b0;
    const int b2 = take_digit(b0, a.batch2), b1 = take_digit(b0, a.batch1);
    const float* x = t.template ptr<const float>(a.a) + place(b0, a.a0, place(b1, a.a1, place(b2, a.a2)));
    const int left = a.all_groups - tile * a.groups;
    const int groups = a.spans > 1 || a.groups < left ? a.groups : left;
    // The element of the output that this thread will write.
    const int columns = groups * kColumns;
    const int m = t.tid / columns, n = tile * a.groups * kColumns + t.tid % columns;
    const bool writes = m < a.M && n < a.N;
    typename Epi::Out* to = t.template ptr<typename Epi::Out>(a.out.ref) + (writes ? element(a.out, batch, m, n) : 0);
    typename Epi::Held held = {};
    if (writes) held = Epi::hold(t, a.epi, batch, m, n);
    float* partial = reinterpret_cast<float*>(t.smem);
    float* mine = partial + wk * MB * columns + wc * C;
    const int k = (wk * 32 + lane) * RUN, spans = a.spans;
    Rows rows{x + k * a.ak, a.am, a.ak, a.M, a.K - k};
    Input in;
    // Before the inputs are waited for, the first unit is in registers and the second on its way. Then each unit is
    // multiplied while the next one comes. After the units of a turn, the lanes' sums are added up.
    int span = spans + 1, g = 1, left_units = spans * groups;
    if constexpr (!kCompact) {
      rows.at = t.inputs(rows.at);
      rows.take(a.pro, in);
      span = spans, g = groups;
      if (--left_units == 0) units.done();
    }
    RK_UNROLL(1)
    do {
      // The sums of the latest unit are always the last ones here, so that the places of registers are known in a loop
      // of one body.
      float sums[T * kSums] = {};
      const bool first = kCompact && span > spans;
      const int turn = T == 1 || T < g ? T : g;
      const auto unit = [&] {
        if (!first) multiply(in, w, a.zero, sums + (T - 1) * kSums);
        if (left_units > 0) units.next(w, --left_units == 0);
      };
      if constexpr (T == 1) {
        unit();
      } else {
        RK_UNROLL(1)
        for (int u = 0; u < turn; ++u) {
          RT_UNROLL
          for (int i = 0; i < (T - 1) * kSums; ++i) sums[i] = sums[i + kSums];
          unit();
        }
      }
      if (!first) {
        const LaneSums<T * kSums, 32> at(t, sums);
        if (at.owns) {
          RT_UNROLL
          for (int i = 0; i < at.kLeft; ++i) {
            const int s = at.first + i - (T - turn) * kSums;
            if (T > 1 && s < 0) continue;
            float& sum = mine[s % kSums / C * columns + (groups - g + s / kSums) * kColumns + s % C];
            sum = span < spans ? sum + sums[i] : sums[i];
          }
        }
      }
      g -= turn;
      if (g == 0) {
        if (first) rows.at = t.inputs(rows.at);
        g = groups;
        if (--span > 0) rows.take(a.pro, in);
      }
    } while (span > 0);
    t.sync();
    if (writes) {
      float sum = partial[t.tid];
      RT_UNROLL
      for (int i = 1; i < WK; ++i) sum += partial[i * MB * columns + t.tid];
      *to = Epi::apply(t, a.epi, held, static_cast<typename Epi::In>(sum), batch, m, n);
    }
  }

 private:
  // The sums of the lane's products of one unit.
  static RT_DEVICE void multiply(const Input& in, const Weights& w, float zero, float* sums) {
    RT_UNROLL
    for (int i = 0; i < kSums; ++i) sums[i] = 0;
    RT_UNROLL
    for (int q = 0; q < KQ; ++q) {
      RT_UNROLL
      for (int c = 0; c < C; ++c) {
        float chains[MB][kChains] = {};
        RT_UNROLL
        for (int i = 0; i < RUN; ++i) {
          const float u = w.bits[q][c].value(i);
          RT_UNROLL
          for (int m = 0; m < MB; ++m) chains[m][i % kChains] += in.v[m][q][i] * u;
        }
        float scale = 1.0f, centre = zero;
        if constexpr (FORM != kNoScales) scale = static_cast<float>(w.scales[q][c].v[0]);
        if constexpr (Scale::kPairs) centre = static_cast<float>(w.scales[q][c].v[1]);
        RT_UNROLL
        for (int m = 0; m < MB; ++m) {
          float dot = chains[m][0];
          RT_UNROLL
          for (int j = 1; j < kChains; ++j) dot += chains[m][j];
          sums[m * C + c] += scale * (dot * Bits::kUnscale - centre * in.sum[m][q]);
        }
      }
    }
  }
};

}  // namespace rk
