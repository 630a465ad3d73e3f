// Layer normalisation of rows, (x - mean) / sqrt(variance + epsilon) · scale + bias, where x may be a sum, and one
// summand may be gathered:
//
//	x[row] = a[row] + b[row]                                         ADD; without it x is b
//	b[row] = b's units number index[row][0], index[row][1], …        GATHER: runs of elements, side by side
//	sum[row] = x[row]                                                SUM
//
// The result is stored as it is (KEPT), or Epi(result) is (CODED), which has 8 bits, or both are.
//
// A block reads its rows once (row_lanes.cuh), and what a thread loads of all of them is on its way together. What does
// not depend on inputs (scale, bias, which units are gathered) is asked for before the launches before have ended.
// Elements in memory are float32 or 16 bits, those in registers float32. Rows are dense and aligned to four elements.
#pragma once

#include "common/operand.cuh"
#include "common/tiles.cuh"
#include "norm/row_lanes.cuh"

namespace rk {

// A, B, Sum and Out are the element types in memory; those of operands that are not used do not count.
template <int LANES, int PER, int ROWS, bool EVEN, bool ADD, bool GATHER, bool SUM, bool KEPT, bool CODED, bool BIAS,
          class A, class B, class Sum, class Out, class Epi>
struct NormalizeRows {
  using Rows = RowLanes<LANES, PER, ROWS, EVEN, BIAS>;
  static constexpr int kThreads = Rows::kThreads, kTogether = Rows::kTogether, kShared = Rows::kShared;
  static constexpr bool kEarly = true;

  struct Args {
    rt::Ref a, b, index, sum, out, codes, scale, bias;  // those that are not used are any
    // Elements from one row to the next; from one unit to the next for b.
    int64_t a_step, b_step, sum_step, out_step, codes_step;
    Div unit;             // quads of a unit
    int32_t units;        // of a row
    int32_t rows, chunk;  // of all rTasks, and of one
    int32_t n;            // elements of a row
    float epsilon;
    typename Epi::Args epi;
  };

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& args, int rtask) {
    const int first = rtask * args.chunk;
    const Rows rows(t, args.rows < first + args.chunk ? args.rows : first + args.chunk, args.n);
    const Factors factors(rows, t.ptr<const RowQuad>(args.scale), t.ptr<const RowQuad>(args.bias));
    Units next(t, args, rows, first);
    t.wait_for_inputs();
    int turn = 0;
    RK_UNROLL(1)
    for (int at = first; at < rows.end; at += kTogether, turn ^= 1) {
      const Units units = next;
      if (GATHER && at + kTogether < rows.end) next = Units(t, args, rows, at + kTogether);
      normalize(t, args, rows, at, turn, units, factors);
    }
  }

 private:
  using Factors = typename Rows::Factors;

  // Where the quads of a thread begin in b, if they are gathered.
  struct Units {
    int64_t from[GATHER ? ROWS : 1][GATHER ? PER : 1];

    RT_DEVICE Units(const rt::Task& t, const Args& args, const Rows& rows, int at) {
      if constexpr (GATHER) {
        rows.each(at, [&](int r, int u, bool, int i, int q) {
          const int unit = args.unit.quotient(q);
          const int row = rt::ld_const(t.ptr<const int>(args.index) + place(i, args.units, unit));
          from[r][u] = place(row, args.b_step, 4 * (q - unit * static_cast<int>(args.unit.d)));
        });
      }
    }
  };

  // Normalises the rows from `at` on. Loads have no conditions, so that compilers put all of them before the first use.
  static RT_DEVICE void normalize(const rt::Task& t, const Args& args, const Rows& rows, int at, int turn,
                                  const Units& units, const Factors& factors) {
    RowQuad x[ROWS][PER], y[ADD ? ROWS : 1][ADD ? PER : 1];
    rows.each(at, [&](int r, int u, bool, int i, int q) {
      const B* b = t.ptr<const B>(args.b) + (GATHER ? units.from[r][u] : place(i, args.b_step, 4 * q));
      x[r][u] = load_quad(b);
      if constexpr (ADD) y[r][u] = load_quad(t.ptr<const A>(args.a) + place(i, args.a_step, 4 * q));
    });
    rows.each(at, [&](int r, int u, bool ok, int i, int q) {
      if constexpr (ADD) {
        RT_UNROLL
        for (int e = 0; e < 4; ++e) x[r][u].v[e] += y[r][u].v[e];
      }
      if constexpr (SUM) {
        if (ok) store_quad(t.ptr<Sum>(args.sum) + place(i, args.sum_step, 4 * q), x[r][u]);
      }
    });
    typename Rows::Moments m[ROWS];
    rows.moments(turn, x, args.epsilon, m);
    rows.each(at, [&](int r, int u, bool ok, int i, int q) {
      if (ok) put_result(t, args, i, q, factors.apply(x[r][u], m[r], u));
    });
  }

  // Stores quad q of row i of the result.
  static RT_DEVICE void put_result(const rt::Task& t, const Args& args, int i, int q, const RowQuad& y) {
    if constexpr (KEPT) store_quad(t.ptr<Out>(args.out) + place(i, args.out_step, 4 * q), y);
    if constexpr (CODED) {
      using Code = typename Epi::Out;
      Pack<Code, 4> codes;
      RT_UNROLL
      for (int e = 0; e < 4; ++e) codes.v[e] = Epi::apply(t, args.epi, y.v[e], 0, i, 4 * q + e);
      *reinterpret_cast<Pack<Code, 4>*>(t.ptr<Code>(args.codes) + place(i, args.codes_step, 4 * q)) = codes;
    }
  }
};

}  // namespace rk
