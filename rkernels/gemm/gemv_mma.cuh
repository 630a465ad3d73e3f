// C[b][m][n] = epilogue(Σ_k prologue(A[b][m][k]) · B[b][k][n]), summed in float32 on tensor cores, for few rows (M ≤
// MB) and a constant B of 8 or 4 bits, which is packed and streamed. The time of such a product is that in which its
// weights arrive. So what a weight takes in instructions must be little: mma.sync multiplies 16 columns by 16 values of
// k at once, and adds up over the lanes of a warp on the way. B's columns are the rows of the instruction's left
// fragment; its right fragment, which is eight wide, has the rows of A:
//
//	          16 values of k                rows of A, in P parts each
//	       ┌────────────────────┐          ┌──┬──┬──┬──┐
//	    16 │  weights as they   │        16│p0│p0│p1│…0│  → 16 columns × 8 sums
//	 cols. │  come from the ring│     of k │m0│m1│m0│  │
//	       └────────────────────┘          └──┴──┴──┴──┘
//
// A value of A with more digits than 16 bits hold is the sum of P parts, of which each has the digits that those before
// it lack; a float32 is three parts with eight digits each. Parts are columns of the right fragment that would be zero
// otherwise, so they cost nothing. Products are exact in float32.
//
// With Norm the rows of A are normalised: C is also divided by the root of the mean square of its row of A, as it is
// behind the prologue, plus an epsilon. Pairs and Joined are as in streamed_rows.cuh.
#pragma once

#include <cmath>

#include "common/mma_narrow.cuh"
#include "common/parts.cuh"
#include "common/tile.cuh"
#include "gemm/chunked_slices.cuh"
#include "gemm/weight_lines.cuh"
#include "rt/device/device.cuh"

namespace rk {

// How 8 warps divide the product. WK warps share the k of the same 16 columns, and the 8/WK sets of such warps have 16
// columns each: together a group. A slice is what all warps take of a group's weights at a time, U lines each. The
// parts of A are in shared memory, for at most KS values of k at a time, a span. The stream has, for each span, the
// slices of one group after another. X is the element type of A, of which one load brings V values.
template <int MB, int P, int WK, int U, int KS, int V, int Norm, int Pairs, int Joined, class X, class F, class Epi,
          class Pro>
struct GemvLines {
  using E = typename F::Element;
  static constexpr int kThreads = 256;
  static constexpr int WC = 8 / WK;
  static constexpr int kColumns = 16 * WC;             // of a group
  static constexpr int kLine = kMmaDepth * F::kSteps;  // values of k of a line
  static constexpr int kSlice = WK * U * kLine;        // values of k
  static constexpr int kStreamStep = U * (16 * kThreads + F::kScales);
  // The right fragments' columns: each part has those of all rows, at least two, so that a lane's sums are of one part.
  static constexpr int kRows = MB < 2 ? 2 : MB;
  static constexpr int kFragments = (P * kRows + 7) / 8;
  // Shared memory: A's parts [pair of steps][part][row][quarter of a fragment's depth] of 16 bytes, their sums over the
  // values that share a scale [group of steps][row], partial sums [wk][part][row][column], and sums of squares
  // [row][warp].
  static constexpr int kOutputs = P == 1 ? 256 : 128;  // of an rTask, at most
  static constexpr int kPair = P * MB * 64, kStaged = KS / 32 * kPair;
  static constexpr int kTotals = 4 * KS / (kMmaDepth * F::kGroup) * kRows;
  static constexpr int kPartial = 4 * WK * P * kOutputs;
  static constexpr int kOwn = kStaged + kTotals + kPartial + 4 * Norm * 8 * MB;
  static constexpr int kShared = kOwn + JoinedRow<Joined>::kShared;
  static_assert(Joined == 0 || Norm == 0 && MB == 1, "a row that is joined is the only one");
  static_assert(KS % kSlice == 0, "a span is whole slices");

  struct Args {
    rt::Ref a, b;
    rt::Operand3 out;  // [batch][m][n]
    int32_t M, N, K;
    int32_t spans, slices;       // slices of a group in a span
    int32_t groups, all_groups;  // how many groups an rTask has, and B; with pairs, of both products
    Div tiles_n;
    Div batch1, batch2;          // batch = (b0·batch1 + b1)·batch2 + b2
    int64_t a0, a1, a2, am, ak;  // element strides of A over b0, b1, b2, m, k
    float epsilon;               // added to the mean square
    typename F::Args format;
    typename JoinedRow<Joined>::Args joined;
    typename Epi::Args epi;
    typename Pro::Args pro;
  };

  using Slices = ChunkedSlices<kStreamStep>;

  // Where a lane stands: it has the columns g and g + 8 of its warp's tile, the values 4t to 4t + 3 of each step, and
  // the sums of the rows 2t and 2t + 1 of each right fragment.
  struct Place {
    int tid, lane, warp, wk, wc, g, t;
    RT_DEVICE explicit Place(int id)
        : tid(id), lane(id % 32), warp(id / 32), wk(warp % WK), wc(warp / WK), g(lane / 4), t(lane % 4) {}
  };

  // Of the lane's two columns, and two rows of each right fragment: [fragment][(g, 2t), (g, 2t+1), (g+8, 2t), (g+8,
  // 2t+1)].
  using Sums = float[kFragments][4];

  struct Staged {
    char* parts;
    float* totals;
    float* partial;
    float* squares;
    RT_DEVICE explicit Staged(const rt::Task& t)
        : parts(reinterpret_cast<char*>(t.smem)),
          totals(reinterpret_cast<float*>(parts + kStaged)),
          partial(reinterpret_cast<float*>(parts + kStaged + kTotals)),
          squares(reinterpret_cast<float*>(parts + kStaged + kTotals + kPartial)) {}
  };

  // Writes the parts of 8 values of row m, from k of the span on, and returns what they add up to.
  static RT_DEVICE float store_parts(const Staged& s, int m, int k, float (&x)[8]) {
    char* to = s.parts + k / 32 * kPair + m * 64 + k % 16 / 4 * 16 + k / 16 % 2 * 8;
    float total = 0;
    RT_UNROLL
    for (int i = 0; i < 8; ++i) total += x[i], x[i] *= F::kFactor;
    RT_UNROLL
    for (int p = 0; p < P; ++p) {
      Pack<E, 4> part[2];
      RT_UNROLL
      for (int i = 0; i < 8; ++i) {
        const E rounded(x[i]);
        part[i / 4].v[i % 4] = rounded;
        if (p + 1 < P) {
          const float rest = x[i] - float(rounded);
          x[i] = rest == rest ? rest : 0.0f;  // nothing is left of what is infinite
        }
      }
      RT_UNROLL
      for (int i = 0; i < 2; ++i) *reinterpret_cast<Pack<E, 4>*>(to + p * MB * 64 + i * 16) = part[i];
    }
    return total;
  }

  // Brings the values of all rows from k0 on to shared memory, zeros where A ends. All of the V values that a load
  // brings exist, or none. Runs of 8 values are loaded together, as far as a thread has several.
  static RT_DEVICE void stage(const rt::Task& t, const Args& a, const X* x, const Staged& s, const Place& at,
                              int span) {
    constexpr int kTurn = 8 * kThreads, kMost = P == 1 ? 4 : 2, kWant = ceil_div(KS, kTurn);
    constexpr int kRuns = kWant < kMost ? kWant : kMost;
    const int64_t ak = V > 1 ? 1 : a.ak;
    const int k0 = span * a.slices * kSlice, depth = a.slices * kSlice;
    RK_UNROLL(1)
    for (int m = 0; m < MB; ++m) {
      const int left = m < a.M ? (a.K - k0 < depth ? a.K - k0 : depth) : 0;
      const X* row = x + m * a.am + k0 * ak;
      float square = 0;
      RK_UNROLL(1)
      for (int first = 8 * at.tid; first - 8 * at.lane < depth; first += kRuns * kTurn) {
        Pack<X, V> held[kRuns][8 / V];
        RT_UNROLL
        for (int r = 0; r < kRuns; ++r) {
          RT_UNROLL
          for (int i = 0; i < 8; i += V) {
            const int k = first + r * kTurn + i;
            held[r][i / V] = Pack<X, V>{};
            if (k < left) held[r][i / V] = *reinterpret_cast<const Pack<X, V>*>(row + k * ak);
          }
        }
        RT_UNROLL
        for (int r = 0; r < kRuns; ++r) {
          const int k = first + r * kTurn;
          if (k - 8 * at.lane >= depth) break;
          float v[8];
          RT_UNROLL
          for (int i = 0; i < 8; ++i) {
            v[i] = Pro::kIdentity || k + i < left ? float(Pro::apply(a.pro, held[r][i / V].v[i % V])) : 0.0f;
            if constexpr (Norm) square += v[i] * v[i];
          }
          float total = 0;
          if (k < depth) total = store_parts(s, m, k, v);
          RT_UNROLL
          for (int d = 1; d < 2 * F::kGroup; d *= 2) total += rt::shfl_xor(t, total, d);
          if (k < depth && at.lane % (2 * F::kGroup) == 0) s.totals[k / (kMmaDepth * F::kGroup) * kRows + m] = total;
        }
      }
      if constexpr (Norm) {
        RT_UNROLL
        for (int d = 16; d > 0; d /= 2) square += rt::shfl_xor(t, square, d);
        if (at.lane == 0) s.squares[m * 8 + at.warp] = span > 0 ? s.squares[m * 8 + at.warp] + square : square;
      }
    }
  }

  // The products of a group's weights of the span that is staged.
  static RT_DEVICE void multiply_group(const Args& a, Slices& slices, const Staged& s, const Place& at, Sums& sums) {
    RT_UNROLL
    for (int f = 0; f < kFragments; ++f) {
      RT_UNROLL
      for (int i = 0; i < 4; ++i) sums[f][i] = 0;
    }
    RK_UNROLL(1)
    for (int i = 0; i < a.slices; ++i) {
      const int k = (i * WK + at.wk) * U * kLine;
      multiply_slice(a, slices.next(), s.parts + k / 32 * kPair + at.t * 16,
                     s.totals + k / (kMmaDepth * F::kGroup) * kRows, at, sums);
      slices.done();
    }
  }

  // Adds the products of a slice. parts and totals are those of the warp's first value of k.
  static RT_DEVICE void multiply_slice(const Args& a, const char* slice, const char* parts, const float* totals,
                                       const Place& at, Sums& sums) {
    const WeightLine* lines = reinterpret_cast<const WeightLine*>(slice) + at.tid;
    Sums dots = {};  // of the steps that share a scale
    RT_UNROLL
    for (int u = 0; u < U; ++u) {
      const WeightLine line = lines[u * kThreads];
      RT_UNROLL
      for (int pair = 0; pair < F::kSteps / 2; ++pair) {
        WeightLine in[kFragments];
        load_parts(parts + (u * F::kSteps / 2 + pair) * kPair, at, in);
        RT_UNROLL
        for (int i = 0; i < 2; ++i) {
          const int step = 2 * pair + i;
          uint32_t left[4];
          F::fragment(left, line, step);
          RT_UNROLL
          for (int f = 0; f < kFragments; ++f) {
            const uint32_t right[2] = {in[f].words[2 * i], in[f].words[2 * i + 1]};
            HalfProducts<E>::multiply(dots[f], left, right);
          }
          if ((step + 1) % F::kGroup == 0) {
            const int group = (u * F::kSteps + step) / F::kGroup;
            add_scaled(a.format, slice + U * 16 * kThreads, totals + group * kRows, group, at, dots, sums);
          }
        }
      }
    }
  }

  // A lane's share of the right fragments of two steps: zeros in columns that no part has.
  static RT_DEVICE void load_parts(const char* parts, const Place& at, WeightLine (&in)[kFragments]) {
    RT_UNROLL
    for (int f = 0; f < kFragments; ++f) {
      const int column = 8 * f + at.g, p = column / kRows, m = column % kRows;
      in[f] = WeightLine{};
      if (p < P && m < MB) in[f] = *reinterpret_cast<const WeightLine*>(parts + (p * MB + m) * 64);
    }
  }

  // sums += scale · (dots - zero · total), for a group of steps, and dots = 0.
  static RT_DEVICE void add_scaled(const typename F::Args& format, const char* scales, const float* totals, int group,
                                   const Place& at, Sums& dots, Sums& sums) {
    using Scales = typename F::Scales;
    float scale[2] = {1.0f, 1.0f}, zero[2] = {format.zero, format.zero};
    if constexpr (F::kScales > 0) {
      const Scales both = reinterpret_cast<const Scales*>(scales)[(group * 8 + at.warp) * 8 + at.g];
      RT_UNROLL
      for (int i = 0; i < 2; ++i) {
        scale[i] = static_cast<float>(both.v[i][0]);
        if constexpr (Scales::kPairs) zero[i] = static_cast<float>(both.v[i][1]);
      }
    }
    RT_UNROLL
    for (int f = 0; f < kFragments; ++f) {
      Pack<float, 2> total = {};
      if (8 * f + 2 * at.t < kRows) total = *reinterpret_cast<const Pack<float, 2>*>(totals + 8 * f + 2 * at.t);
      RT_UNROLL
      for (int i = 0; i < 4; ++i) {
        sums[f][i] += scale[i / 2] * (dots[f][i] * F::unscale(i / 2) - zero[i / 2] * total.v[i % 2]);
        dots[f][i] = 0;
      }
    }
  }

  // Adds a lane's sums of group g, of so many columns of the rTask, to the partial ones, or stores them in the first
  // span.
  static RT_DEVICE void store_sums(const Staged& s, const Place& at, int g, int columns, bool first, const Sums& sums) {
    RT_UNROLL
    for (int f = 0; f < kFragments; ++f) {
      RT_UNROLL
      for (int i = 0; i < 4; ++i) {
        const int column = 8 * f + 2 * at.t + i % 2, p = column / kRows, m = column % kRows;
        if (p >= P || m >= MB) continue;
        float& to = s.partial[((at.wk * P + p) * MB + m) * columns + g * kColumns + at.wc * 16 + i / 2 * 8 + at.g];
        to = first ? sums[f][i] : to + sums[f][i];
      }
    }
  }

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    const Place at(t.tid);
    const Staged s(t);
    int b0 = rtask;
    const int tile = take_digit(b0, a.tiles_n), batch = b0;
    const int b2 = take_digit(b0, a.batch2), b1 = take_digit(b0, a.batch1);
    const X* x = t.template ptr<const X>(a.a) + place(b0, a.a0, place(b1, a.a1, place(b2, a.a2)));
    const int left = a.all_groups - tile * a.groups;
    const int groups = a.spans > 1 || a.groups < left ? a.groups : left;
    Slices slices(t, a.spans * groups * a.slices);
    // The element of the output that this thread will write.
    const int columns = groups * kColumns, outputs = columns / Pairs;
    const int m = t.tid / outputs, in = t.tid % outputs, n = tile * (a.groups / Pairs) * kColumns + in;
    const bool writes = m < a.M && n < a.N;
    typename Epi::Out* to = t.template ptr<typename Epi::Out>(a.out.ref) + (writes ? element(a.out, batch, m, n) : 0);
    typename Epi::Held held = {};
    if (writes) held = Epi::hold(t, a.epi, batch, m, n);
    if constexpr (Joined > 0) {
      t.wait_for_inputs();
      x = JoinedRow<Joined>::join(t, a.joined, a.K, reinterpret_cast<float*>(t.smem + kOwn));
    } else {
      x = t.inputs(x);
    }
    typename Epi::Brought brought = {};
    if (writes) brought = Epi::bring(t, a.epi, batch, m, n);
    RK_UNROLL(1)
    for (int span = 0; span < a.spans; ++span) {
      if (span > 0) t.sync();  // all warps have read the parts of the span before
      stage(t, a, x, s, at, span);
      t.sync();
      RK_UNROLL(1)
      for (int g = 0; g < groups; ++g) {
        Sums sums;
        multiply_group(a, slices, s, at, sums);
        store_sums(s, at, g, columns, span == 0, sums);
      }
    }
    t.sync();
    if (!writes) return;
    float by = 1.0f;
    if constexpr (Norm) {
      float square = 0;
      RT_UNROLL
      for (int i = 0; i < 8; ++i) square += s.squares[m * 8 + i];
      by = sqrtf(square / static_cast<float>(a.K) + a.epsilon);
    }
    const auto sum = [&](int column) {
      float x = 0;
      RT_UNROLL
      for (int i = 0; i < WK * P; ++i) x += s.partial[i * MB * columns + column];
      return static_cast<typename Epi::In>(Norm ? x / by : x);
    };
    if constexpr (Pairs == 2) {
      const int first = m * columns + in / kColumns * 2 * kColumns + in % kColumns;
      *to = Epi::apply(a.epi, held, brought, sum(first), sum(first + kColumns));
    } else {
      *to = Epi::apply(a.epi, held, brought, sum(t.tid));
    }
  }
};

// Weights have BITS bits, and groups of GROUP steps share a scale of SB bytes a line.
template <int MB, int P, int WK, int U, int KS, int V, int Norm, int Pairs, int Joined, class X, class E, int BITS,
          int FORM, int GROUP, int SB, class Epi, class Pro>
struct GemvMma : GemvLines<MB, P, WK, U, KS, V, Norm, Pairs, Joined, X, CodeLines<E, BITS, FORM, GROUP>, Epi, Pro> {
  static_assert(CodeLines<E, BITS, FORM, GROUP>::kScales == SB);
};

}  // namespace rk
