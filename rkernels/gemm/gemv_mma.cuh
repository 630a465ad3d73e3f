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
// behind the prologue, plus an epsilon. Pairs, Joined and Words are as in streamed_rows.cuh.
#pragma once

#include <cmath>

#include "common/mma_narrow.cuh"
#include "common/parts.cuh"
#include "common/tile.cuh"
#include "gemm/chunked_slices.cuh"
#include "gemm/line_rows.cuh"
#include "rt/device/device.cuh"

namespace rk {

// How 8 warps divide the product. WK warps share the k of the same 16 columns, and the 8/WK sets of such warps have 16
// columns each: together a group. A slice is what all warps take of a group's weights at a time, U lines each. The
// parts of A are in shared memory, for at most KS values of k at a time, a span. The stream has, for each span, the
// slices of one group after another. X is the element type of A, of which one load brings V values.
template <int MB, int P, int WK, int U, int KS, int V, int Norm, int Pairs, int Joined, int Words, class X, class F,
          class Epi, class Pro>
struct GemvLines {
  using A = LineRows<MB, P, WK, U, KS, V, Norm, Words, X, F, Pro>;
  using E = typename A::E;
  using Place = typename A::Place;
  using Right = typename A::Right;
  static constexpr int kThreads = A::kThreads, kSlice = A::kSlice, kRows = A::kRows, kFragments = A::kFragments;
  static constexpr int kColumns = 16 * (8 / WK);  // of a group
  static constexpr int kStreamStep = U * (16 * kThreads + F::kScales);
  // Shared memory: what is staged of A, partial sums [wk][part][row][column], and sums of squares [row][warp].
  static constexpr int kOutputs = P == 1 ? 256 : 128;  // of an rTask, at most
  static constexpr int kPartial = 4 * WK * P * kOutputs;
  static constexpr int kOwn = A::kStaged + kPartial + 4 * Norm * 8 * MB;
  static constexpr int kShared = kOwn + JoinedRow<Joined>::kShared;
  static_assert(Joined == 0 || Norm == 0 && MB == 1, "a row that is joined is the only one");
  static constexpr bool kPolls = Words % 2 != 0, kGives = Words / 2 != 0;
  static_assert(Words == 0 || MB == 1, "words are of one row");
  static_assert(!kPolls || Joined == 0, "a row in words is met as it comes");

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

  // Of the lane's two columns, and two rows of each right fragment: [fragment][(g, 2t), (g, 2t+1), (g+8, 2t), (g+8,
  // 2t+1)].
  using Sums = float[kFragments][4];

  struct Staged : A::Staged {
    float* partial;
    RT_DEVICE explicit Staged(char* smem)
        : A::Staged{smem, reinterpret_cast<float*>(smem + A::kParts),
                    reinterpret_cast<float*>(smem + A::kStaged + kPartial)},
          partial(reinterpret_cast<float*>(smem + A::kStaged)) {}
  };

  // Where a span is one slice, all groups meet the same share of A, which stays in registers. Then the lines of a slice
  // are multiplied together, so that instructions need not wait for each other.
  static constexpr bool kKeeps = KS == kSlice && kFragments == 1;
  static constexpr int kTogether = kKeeps ? U : 1;  // lines
  using Rights = Right[kTogether];

  static RT_DEVICE void take(const Staged& s, const Place& at, int slice, int first, Rights& rights) {
    RT_UNROLL
    for (int u = 0; u < kTogether; ++u) rights[u].take(s, at, ((slice * WK + at.wk) * U + first + u) * A::kLine);
  }

  // The products of a group's weights of the span that is staged.
  static RT_DEVICE void multiply_group(const Args& a, Slices& slices, const Staged& s, const Place& at, Rights& rights,
                                       Sums& sums) {
    RT_UNROLL
    for (int f = 0; f < kFragments; ++f) {
      RT_UNROLL
      for (int i = 0; i < 4; ++i) sums[f][i] = 0;
    }
    RK_UNROLL(1)
    for (int i = 0; i < a.slices; ++i) {
      const char* slice = slices.next();
      RT_UNROLL
      for (int u = 0; u < U; u += kTogether) {
        if constexpr (!kKeeps) take(s, at, i, u, rights);
        multiply_lines(a, slice, u, rights, at, sums);
      }
      slices.done();
    }
  }

  // Adds the products of the lines of a slice from number `first` on.
  static RT_DEVICE void multiply_lines(const Args& a, const char* slice, int first, const Rights& rights,
                                       const Place& at, Sums& sums) {
    WeightLine lines[kTogether];
    RT_UNROLL
    for (int u = 0; u < kTogether; ++u) {
      lines[u] = reinterpret_cast<const WeightLine*>(slice)[at.tid + (first + u) * kThreads];
    }
    Sums dots[kTogether] = {};  // of the steps that share a scale
    RT_UNROLL
    for (int step = 0; step < F::kSteps; ++step) {
      RT_UNROLL
      for (int u = 0; u < kTogether; ++u) {
        uint32_t left[4];
        F::fragment(left, lines[u], step);
        RT_UNROLL
        for (int f = 0; f < kFragments; ++f) {
          const WeightLine& in = rights[u].in[step / 2][f];
          const uint32_t words[2] = {in.words[2 * (step % 2)], in.words[2 * (step % 2) + 1]};
          HalfProducts<E>::multiply(dots[u][f], left, words);
        }
      }
      if ((step + 1) % F::kGroup != 0) continue;
      RT_UNROLL
      for (int u = 0; u < kTogether; ++u) {
        const int group = step / F::kGroup;
        add_scaled(a.format, slice + U * 16 * kThreads, rights[u].totals[group],
                   (first + u) * (F::kSteps / F::kGroup) + group, at, dots[u], sums);
      }
    }
  }

  // sums += scale · (dots - zero · total), for a group of steps, and dots = 0.
  static RT_DEVICE void add_scaled(const typename F::Args& format, const char* scales,
                                   const Pack<float, 2> (&totals)[kFragments], int group, const Place& at, Sums& dots,
                                   Sums& sums) {
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
      RT_UNROLL
      for (int i = 0; i < 4; ++i) {
        sums[f][i] += scale[i / 2] * (dots[f][i] * F::unscale(i / 2) - zero[i / 2] * totals[f].v[i % 2]);
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
    const Staged s(t.smem);
    int b0 = rtask;
    const int tile = take_digit(b0, a.tiles_n), batch = b0;
    const int b2 = take_digit(b0, a.batch2), b1 = take_digit(b0, a.batch1);
    const X* x = nullptr;
    if constexpr (!kPolls) x = t.template ptr<const X>(a.a) + place(b0, a.a0, place(b1, a.a1, place(b2, a.a2)));
    const int left = a.all_groups - tile * a.groups;
    const int groups = a.spans > 1 || a.groups < left ? a.groups : left;
    Slices slices(t, a.spans * groups * a.slices);
    // The element of the output that this thread will write.
    const int columns = groups * kColumns, outputs = columns / Pairs;
    const int m = t.tid / outputs, in = t.tid % outputs, n = tile * (a.groups / Pairs) * kColumns + in;
    const bool writes = m < a.M && n < a.N;
    const int64_t result_at = writes ? element(a.out, batch, m, n) : 0;
    typename Epi::Out* to = nullptr;
    uint64_t* word = nullptr;
    if constexpr (kGives) {
      word = word_at<typename Epi::Out>(t, a.out.ref, result_at);
      prepare_word<typename Epi::Out>(t, word, writes);
    } else {
      to = t.template ptr<typename Epi::Out>(a.out.ref) + result_at;
    }
    typename Epi::Held held = {};
    if (writes) held = Epi::hold(t, a.epi, batch, m, n);
    if constexpr (Joined > 0) {
      t.wait_for_inputs();
      x = JoinedRow<Joined>::join(t, a.joined, a.K, reinterpret_cast<float*>(t.smem + kOwn));
    } else if constexpr (kPolls) {
      t.wait_for_inputs();
    } else {
      x = t.inputs(x);
    }
    typename Epi::Brought brought = {};
    if (writes) brought = Epi::bring(t, a.epi, batch, m, n);
    typename A::Matrix rows{x, nullptr, a.am, a.ak, a.M, a.K, a.slices * kSlice};
    if constexpr (kPolls) rows.words = word_at<X>(t, a.a, 0);
    typename A::Runs runs;
    A::fetch(t, rows, at, 0, 0, 0, runs);
    RK_UNROLL(1)
    for (int span = 0; span < a.spans; ++span) {
      if (span > 0) A::meet(t);  // the parts of the span before have been read
      A::stage(t, a.pro, rows, s, at, span, runs);
      A::meet(t);
      if (span + 1 < a.spans) A::fetch(t, rows, at, span + 1, 0, 0, runs);
      Rights rights;
      if constexpr (kKeeps) take(s, at, 0, 0, rights);
      RK_UNROLL(1)
      for (int g = 0; g < groups; ++g) {
        Sums sums;
        multiply_group(a, slices, s, at, rights, sums);
        store_sums(s, at, g, columns, span == 0, sums);
      }
    }
    t.sync();
    if (!kGives && !writes) return;
    const typename Epi::Out result = writes ? finish(t, a, s, held, brought, m, columns, in) : typename Epi::Out{};
    if constexpr (kGives) {
      give_word(t, word, writes, result);
    } else {
      *to = result;
    }
  }

  // The thread's element of the output, of row m. It is number `in` of the row in the rTask, whose groups have so many
  // columns.
  static RT_DEVICE typename Epi::Out finish(const rt::Task& t, const Args& a, const Staged& s,
                                            const typename Epi::Held& held, const typename Epi::Brought& brought, int m,
                                            int columns, int in) {
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
      return Epi::apply(a.epi, held, brought, sum(first), sum(first + kColumns));
    } else {
      return Epi::apply(a.epi, held, brought, sum(t.tid));
    }
  }
};

// Weights have BITS bits, and groups of GROUP steps share a scale of SB bytes a line.
template <int MB, int P, int WK, int U, int KS, int V, int Norm, int Pairs, int Joined, int Words, class X, class E,
          int BITS, int FORM, int GROUP, int SB, class Epi, class Pro>
struct GemvMma
    : GemvLines<MB, P, WK, U, KS, V, Norm, Pairs, Joined, Words, X, CodeLines<E, BITS, FORM, GROUP>, Epi, Pro> {
  static_assert(CodeLines<E, BITS, FORM, GROUP>::kScales == SB);
};

}  // namespace rk
