// C[b][m][n] = epilogue(Σ_k prologue(A[b][m][k]) · B[b][k][n]), summed in float32, for few rows (M ≤ MB) and a constant
// B, which is packed and streamed. The loader brings B to shared memory ahead of time, so what takes time is the way
// from the inputs to the outputs. Each warp keeps its share of A in registers, and multiplies it by one column of B
// after another. How the weights stand in the stream is the business of a format F, which has
//
//	kRun          how many weights of a column, neighbours along k, one load of a lane brings
//	Args          what it takes beside the stream
//	Unit<KQ, C>   the weights of KQ runs of C columns in a lane's registers, and their bytes for all threads
//	Input<MB, KQ> the values of A that meet them
//	multiply      the lane's sums of products of a unit
//
// With Norm the rows of A are normalised: C is also divided by the root of the mean square of its row of A, as it is
// behind the prologue, plus an epsilon. Each warp adds up the squares of its share of A while it takes it, so this
// costs no pass over A. With Norm = 2 it is the variance of the row in place of the mean square. The sums behind it are
// those of the distances from the row's first value, since a variance is lost in squares of rows far from 0.
//
// With Pairs = 2, groups of columns of two products with the same rows take turns, and the epilogue makes an element of
// the sums of both, as the gate and the other factor of a gated layer need it. With Joined, A is a result of attention
// that is still in parts (common/parts.cuh).
//
// If Words is 1 or 3, A is one row that comes as tagged words, which each lane polls itself; if it is 2 or 3, results,
// one row too, leave as such words (common/words.cuh).
#pragma once

#include <cmath>

#include "common/gemv.cuh"
#include "common/parts.cuh"
#include "common/tile.cuh"
#include "common/words.cuh"
#include "rt/device/device.cuh"

namespace rk {

// How 8 warps divide the product. WK warps share the k of the same columns, and the 8/WK sets of such warps have C
// columns each: together a group. X is the element type of A. A lane has KQ runs of k, 32·WK runs apart; those of all
// lanes are a span. The stream comes in units: the weights of a group over a span. T units make a turn: their products
// are kept in registers, and the lanes' sums of a turn are exchanged together. V is how many values of a run one load
// of A brings.
template <int MB, int C, int T, int WK, int KQ, int V, int Norm, int Pairs, int Joined, int Words, class X, class F,
          class Epi, class Pro>
struct StreamedRows {
  static constexpr int kThreads = 256;
  static constexpr int WC = 8 / WK;
  static constexpr int kColumns = WC * C;  // of a group
  using Weights = typename F::template Unit<KQ, C>;
  using Input = typename F::template Input<MB, KQ>;
  static constexpr int kRun = F::kRun;
  static constexpr int kRuns = 32 * kRun * WK;  // values of k in one run of all lanes and warps
  static constexpr int kSpan = KQ * kRuns;
  static constexpr int kPartial = WK * kThreads;  // partial sums [wk][m][column]
  // Behind them are, with Norm, the sums of squares [m][wk] and of distances, or the row that was joined.
  static constexpr int kShared = 4 * (kPartial + Norm * WK * MB) + JoinedRow<Joined>::kShared;
  static_assert(Joined == 0 || Norm == 0 && MB == 1, "a row that is joined is the only one");
  static constexpr int kStreamStep = Weights::kBytes;
  static constexpr bool kCompact = MB >= 8;  // one body for all units, also the first: less code, but slower
  static constexpr int kSums = MB * C;
  static_assert(kRun % V == 0, "a run is whole loads");
  static_assert(!kCompact || T == 1, "the first turn is none of several units");
  static constexpr bool kPolls = Words % 2 != 0, kGives = Words / 2 != 0;
  static_assert(Words == 0 || MB == 1, "words are of one row");
  static_assert(!kPolls || Joined == 0 && Norm < 2, "a row in words is met as it comes");

  struct Args {
    rt::Ref a, b;
    rt::Operand3 out;  // [batch][m][n]
    int32_t M, N, K;
    int32_t spans;
    int32_t groups, all_groups;  // how many groups an rTask has, and B; with pairs, of both products
    Div tiles_n;
    Div batch1, batch2;          // batch = (b0·batch1 + b1)·batch2 + b2
    int64_t a0, a1, a2, am, ak;  // element strides of A over b0, b1, b2, m, k
    float epsilon;               // added to the mean square, or the variance
    typename F::Args format;
    typename JoinedRow<Joined>::Args joined;
    typename Epi::Args epi;
    typename Pro::Args pro;
  };

  // Takes units off the stream. A chunk goes back to the loader as soon as its last unit is in registers. So the next
  // chunk comes while this one is multiplied, or while the rTask waits for its inputs.
  class Units {
   public:
    RT_DEVICE explicit Units(const rt::Task& t) : stream_(t.stream), tid_(t.tid) {}
    // The last chunk of a block may be shorter.
    RT_DEVICE void next(Weights& w, bool last) {
      if (here_ == 0) {
        at_ = reinterpret_cast<const char*>(stream_.front());
        here_ = stream_.chunk_bytes() / kStreamStep;
      }
      w.load(at_, tid_);
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
    const X* at;  // of the next span
    int64_t am, ak;
    int rows, left;  // left: how many values of k there are from `at` on
    // Where A comes in words: that of the lane's first value of the next span, and that of the row.
    const uint64_t *words, *first_word;
    // Of what was taken: the sums of the squares, and of the distances from the first value of the row.
    float squares[Norm ? MB : 1];
    float sums[Norm == 2 ? MB : 1], first[Norm == 2 ? MB : 1];

    // Takes the first values of the rows, which begin at `row`.
    RT_DEVICE void take_first(const typename Pro::Args& pro, const X* row) {
      RT_UNROLL
      for (int m = 0; m < MB; ++m) {
        if (m == 0 || m < rows) first[m] = float(Pro::apply(pro, *ahead(row, m, static_cast<int>(am))));
      }
    }

    // Takes a span, with zeros where A ends. All of a run's loads of V values exist, or none of their values.
    RT_DEVICE void take(const rt::Task& t, const typename Pro::Args& pro, Input& in) {
      Pack<X, V> held[MB][KQ][kRun / V];
      if constexpr (kPolls) {
        poll(t, held[0]);
      } else {
        load(held);
      }
      set(pro, held, in);
      if constexpr (kPolls) {
        words += kSpan / kPerWord<X>;
      } else {
        at += kSpan * (V > 1 ? 1 : ak);
      }
      left -= kSpan;
    }
    RT_DEVICE void load(Pack<X, V> (&held)[MB][KQ][kRun / V]) const {
      RT_UNROLL
      for (int m = 0; m < MB; ++m) {
        RT_UNROLL
        for (int q = 0; q < KQ; ++q) {
          // A row that was joined lies in shared memory, of which `ahead` knows nothing.
          const X* p = (Joined > 0 ? at : ahead(at, m, static_cast<int>(am))) + q * kRuns * (V > 1 ? 1 : ak);
          RT_UNROLL
          for (int i = 0; i < kRun / V; ++i) {
            held[m][q][i] = Pack<X, V>{};
            if (i * V < values(m, q)) {
              held[m][q][i] = *reinterpret_cast<const Pack<X, V>*>(p + i * V * (V > 1 ? 1 : ak));
            }
          }
        }
      }
    }
    // The same of words. Where A has ended, the lane looks at the row's first words, and takes zeros.
    RT_DEVICE void poll(const rt::Task& t, Pack<X, V> (&held)[KQ][kRun / V]) const {
      const uint64_t* from[KQ];
      Pack<X, kRun> runs[KQ];
      RT_UNROLL
      for (int q = 0; q < KQ; ++q) from[q] = values(0, q) > 0 ? words + q * (kRuns / kPerWord<X>) : first_word;
      take_runs(t, from, runs);
      RT_UNROLL
      for (int q = 0; q < KQ; ++q) {
        RT_UNROLL
        for (int i = 0; i < kRun; ++i) held[q][i / V].v[i % V] = values(0, q) > 0 ? runs[q].v[i] : X{};
      }
    }
    RT_DEVICE void set(const typename Pro::Args& pro, const Pack<X, V> (&held)[MB][KQ][kRun / V], Input& in) {
      RT_UNROLL
      for (int m = 0; m < MB; ++m) {
        RT_UNROLL
        for (int q = 0; q < KQ; ++q) {
          RT_UNROLL
          for (int i = 0; i < kRun; ++i) {
            const X held_x = held[m][q][i / V].v[i % V];
            const float x = Pro::kIdentity || i < values(m, q) ? float(Pro::apply(pro, held_x)) : 0.0f;
            in.set(m, q, i, x);
            if constexpr (Norm == 1) squares[m] += x * x;
            if constexpr (Norm == 2) {
              const float d = i < values(m, q) ? x - first[m] : 0.0f;
              sums[m] += d, squares[m] += d * d;
            }
          }
        }
      }
    }
    // How many values there are in run q of row m: kRun or more stand for all.
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
    const X* x = nullptr;
    if constexpr (!kPolls) x = t.template ptr<const X>(a.a) + place(b0, a.a0, place(b1, a.a1, place(b2, a.a2)));
    const int left = a.all_groups - tile * a.groups;
    const int groups = a.spans > 1 || a.groups < left ? a.groups : left;
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
    typename Epi::Brought brought = {};
    if (writes) held = Epi::hold(t, a.epi, batch, m, n);
    float* partial = reinterpret_cast<float*>(t.smem);
    float* mine = partial + wk * MB * columns + wc * C;
    const int k = (wk * 32 + lane) * kRun, spans = a.spans;
    Rows rows{kPolls ? nullptr : x + k * a.ak, a.am, a.ak, a.M, a.K - k, nullptr, nullptr, {}, {}, {}};
    if constexpr (kPolls) rows.first_word = word_at<X>(t, a.a, 0), rows.words = word_at<X>(t, a.a, k);
    Input input;
    const auto begin = [&] {
      if constexpr (Joined > 0) {
        t.wait_for_inputs();
        rows.at = JoinedRow<Joined>::join(t, a.joined, a.K, partial + kPartial) + k;
      } else if constexpr (kPolls) {
        t.wait_for_inputs();
      } else {
        rows.at = t.inputs(rows.at);
        if constexpr (Norm == 2) rows.take_first(a.pro, rows.at - k * a.ak);
      }
      if (writes) brought = Epi::bring(t, a.epi, batch, m, n);
    };
    // Before the inputs are waited for, the first unit is in registers and the second on its way. Then each unit is
    // multiplied while the next one comes. After the units of a turn, the lanes' sums are added up.
    int span = spans + 1, g = 1, left_units = spans * groups;
    if constexpr (!kCompact) {
      begin();
      rows.take(t, a.pro, input);
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
        if (!first) F::multiply(input, w, a.format, sums + (T - 1) * kSums);
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
        if (first) begin();
        g = groups;
        if (--span > 0) rows.take(t, a.pro, input);
      }
    } while (span > 0);
    float* squares = partial + kPartial;
    if constexpr (Norm) {
      RT_UNROLL
      for (int i = 0; i < MB; ++i) {
        float sum = rows.squares[i], distance = Norm == 2 ? rows.sums[Norm == 2 ? i : 0] : 0.0f;
        RT_UNROLL
        for (int d = 16; d > 0; d /= 2) {
          sum += rt::shfl_xor(t, sum, d);
          if constexpr (Norm == 2) distance += rt::shfl_xor(t, distance, d);
        }
        if (lane == 0 && wc == 0) {
          squares[i * WK + wk] = sum;
          if constexpr (Norm == 2) squares[(MB + i) * WK + wk] = distance;
        }
      }
    }
    t.sync();
    typename Epi::Out result = {};
    if (writes) {
      float by = 1.0f;
      if constexpr (Norm) {
        float square = squares[m * WK];
        RT_UNROLL
        for (int i = 1; i < WK; ++i) square += squares[m * WK + i];
        square /= static_cast<float>(a.K);
        if constexpr (Norm == 2) {
          float mean = squares[(MB + m) * WK];
          RT_UNROLL
          for (int i = 1; i < WK; ++i) mean += squares[(MB + m) * WK + i];
          mean /= static_cast<float>(a.K);
          square = fmaxf(square - mean * mean, 0.0f);
        }
        by = sqrtf(square + a.epsilon);
      }
      const auto sum = [&](int column) {
        float x = partial[column];
        RT_UNROLL
        for (int i = 1; i < WK; ++i) x += partial[i * MB * columns + column];
        return static_cast<typename Epi::In>(Norm ? x / by : x);
      };
      if constexpr (Pairs == 2) {
        const int first = m * columns + in / kColumns * 2 * kColumns + in % kColumns;
        result = Epi::apply(a.epi, held, brought, sum(first), sum(first + kColumns));
      } else {
        result = Epi::apply(a.epi, held, brought, sum(t.tid));
      }
      if constexpr (!kGives) *to = result;
    }
    if constexpr (kGives) give_word(t, word, writes, result);
  }
};

}  // namespace rk
