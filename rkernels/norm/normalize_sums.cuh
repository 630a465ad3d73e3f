// Layer normalisation of rows that a product leaves in parts:
//
//	x[row] = Sum(Σ_s part[s][row])                                   Sum is the product's epilogue, such as a residual
//	out[row] = (x - mean) / sqrt(variance + epsilon) · scale + bias
//
// x is stored, too, if others read it (SUM). The order of summation is fixed. What does not depend on inputs is asked
// for before the launches before have ended, the epilogue's operands together with the first parts.
#pragma once

#include "common/operand.cuh"
#include "common/tiles.cuh"
#include "norm/row_lanes.cuh"

namespace rk {

// Out is the element type of the result in memory; that of x is the epilogue's, and x is rounded to it.
template <int LANES, int PER, bool EVEN, bool SUM, bool BIAS, class Out, class Epi>
struct NormalizeSums {
  using Rows = RowLanes<LANES, PER, 1, EVEN, BIAS>;
  static constexpr int kThreads = Rows::kThreads, kShared = Rows::kShared;
  static constexpr bool kEarly = true;
  static constexpr int kBatch = PER == 1 ? 8 : 4;  // parts of each quad that are on their way at the same time

  struct Args {
    rt::Ref part, sum, out, scale, bias;  // those that are not used are any
    int64_t sum_step, out_step;           // elements from one row to the next
    int32_t splits;
    int32_t rows, chunk;  // of all rTasks, and of one
    int32_t n;            // elements of a row
    float epsilon;
    typename Epi::Args epi;
  };

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& args, int rtask) {
    const int first = rtask * args.chunk;
    const Rows rows(t, args.rows < first + args.chunk ? args.rows : first + args.chunk, args.n);
    const Factors factors(rows, t.ptr<const RowQuad>(args.scale), t.ptr<const RowQuad>(args.bias));
    normalize(t, args, rows, first, factors);
  }

 private:
  using Factors = typename Rows::Factors;
  using Sum = typename Epi::Out;

  static RT_DEVICE void normalize(const rt::Task& t, const Args& args, const Rows& rows, int at,
                                  const Factors& factors) {
    typename Epi::Held held[PER][4] = {};
    typename Epi::Brought brought[PER][4] = {};
    rows.each(at, [&](int, int u, bool, int i, int q) {
      RT_UNROLL
      for (int e = 0; e < 4; ++e) held[u][e] = Epi::hold(t, args.epi, 0, i, 4 * q + e);
    });
    t.wait_for_inputs();
    rows.each(at, [&](int, int u, bool ok, int i, int q) {
      RT_UNROLL
      for (int e = 0; e < 4; ++e) {
        if (ok) brought[u][e] = Epi::bring(t, args.epi, 0, i, 4 * q + e);
      }
    });
    RowQuad x[1][PER] = {};
    const int64_t plane = static_cast<int64_t>(args.rows) * args.n;
    const float* part = t.ptr<const float>(args.part);
    int s = 0;
    RK_UNROLL(1)
    do {
      RowQuad parts[PER][kBatch];
      rows.each(at, [&](int, int u, bool, int i, int q) {
        const float* from = part + place(i, args.n, 4 * q);
        RT_UNROLL
        for (int b = 0; b < kBatch; ++b) {
          parts[u][b] = RowQuad{};
          if (s + b < args.splits) parts[u][b] = *reinterpret_cast<const RowQuad*>(from + b * plane);
        }
      });
      RT_UNROLL
      for (int u = 0; u < PER; ++u) {
        RT_UNROLL
        for (int b = 0; b < kBatch; ++b) {
          RT_UNROLL
          for (int e = 0; e < 4; ++e) x[0][u].v[e] += parts[u][b].v[e];
        }
      }
      s += kBatch, part += kBatch * plane;
    } while (s < args.splits);
    rows.each(at, [&](int r, int u, bool ok, int i, int q) {
      Pack<Sum, 4> sum;
      RT_UNROLL
      for (int e = 0; e < 4; ++e) {
        sum.v[e] = Epi::apply(args.epi, held[u][e], brought[u][e], static_cast<typename Epi::In>(x[r][u].v[e]));
        x[r][u].v[e] = float(sum.v[e]);
      }
      if constexpr (SUM) {
        if (ok) *reinterpret_cast<Pack<Sum, 4>*>(t.ptr<Sum>(args.sum) + place(i, args.sum_step, 4 * q)) = sum;
      }
    });
    typename Rows::Moments m[1];
    rows.moments(0, x, args.epsilon, m);
    rows.each(at, [&](int r, int u, bool ok, int i, int q) {
      if (ok) {
        store_quad(t.ptr<Out>(args.out) + place(i, args.out_step, 4 * q), factors.apply(x[r][u], m[r], u));
      }
    });
  }
};

}  // namespace rk
