// Layer normalisation of rows, (x - mean) / sqrt(variance + epsilon) · scale + bias, where x may be a sum, and one
// summand may be gathered:
//
//	x[row] = a[row] + b[row]                                         ADD; without it x is b
//	b[row] = b's units number index[row][0], index[row][1], …        GATHER: runs of elements, side by side
//	sum[row] = x[row]                                                SUM
//
// The result is stored as it is (KEPT), or Epi(result) is (CODED), which has 8 bits, or both are.
//
// A warp has ROWS rows at a time, kWarps apart, in registers, and reads them once. What it loads of all of them is on
// its way together, and their reductions overlap. Elements in memory are float32 or 16 bits, those in registers
// float32. Rows are dense and aligned to four elements.
#pragma once

#include "common/math.cuh"
#include "common/operand.cuh"
#include "common/tiles.cuh"
#include "rt/device/device.cuh"

namespace rk {

// PER is how many quads of elements a lane has of a row. A, B, Sum and Out are the element types in memory; those of
// operands that are not used do not count.
template <int PER, int ROWS, bool ADD, bool GATHER, bool SUM, bool KEPT, bool CODED, bool BIAS, class A, class B,
          class Sum, class Out, class Epi>
struct NormalizeRows {
  static constexpr int kThreads = 256, kWarps = kThreads / 32;
  static constexpr int kShared = 0;

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
    const int lane = t.tid % 32, first = rtask * args.chunk;
    const int end = args.rows < first + args.chunk ? args.rows : first + args.chunk;
    RK_UNROLL(1)
    for (int row = first + t.tid / 32; row < end; row += kWarps * ROWS) normalize(t, args, row, end, lane);
  }

 private:
  using Quad = Pack<float, 4>;

  // Normalises the rows `row`, row + kWarps, …, of which those from `end` on do not exist. What a lane has behind the
  // end of a row, and of rows that do not exist, is zero. Loads have no conditions, so that compilers put all of them
  // before the first use: where there is nothing, they repeat the last quad.
  static RT_DEVICE void normalize(const rt::Task& t, const Args& args, int row, int end, int lane) {
    const int quads = args.n / 4;
    Quad x[ROWS][PER];
    const auto each = [&](auto&& use) {
      RT_UNROLL
      for (int r = 0; r < ROWS; ++r) {
        RT_UNROLL
        for (int u = 0; u < PER; ++u) {
          const int i = row + r * kWarps, q = lane + 32 * u;
          use(x[r][u], r, i < end && q < quads, i < end ? i : end - 1, q < quads ? q : quads - 1);
        }
      }
    };
    each([&](Quad& v, int, bool, int i, int q) { v = load(source(t, args, i, q)); });
    if constexpr (ADD) {
      const A* a = t.ptr<const A>(args.a);
      each([&](Quad& v, int, bool, int i, int q) { v = plus(v, load(a + place(i, args.a_step, 4 * q))); });
    }
    Factors early;
    if constexpr (kEarly) early.load(t, args, lane);
    each([&](Quad& v, int, bool ok, int, int) { v = ok ? v : Quad{}; });
    if constexpr (SUM) {
      Sum* total = t.ptr<Sum>(args.sum);
      each([&](const Quad& v, int, bool ok, int i, int q) {
        if (ok) put(total + place(i, args.sum_step, 4 * q), v);
      });
    }
    const float n = static_cast<float>(args.n);
    float mean[ROWS] = {}, variance[ROWS] = {};
    each([&](const Quad& v, int r, bool, int, int) { mean[r] += (v.v[0] + v.v[1]) + (v.v[2] + v.v[3]); });
    all(t, mean, n);
    each([&](Quad& v, int r, bool ok, int, int) {
      RT_UNROLL
      for (int e = 0; e < 4; ++e) v.v[e] -= mean[r];
      if (ok) variance[r] += (v.v[0] * v.v[0] + v.v[1] * v.v[1]) + (v.v[2] * v.v[2] + v.v[3] * v.v[3]);
    });
    all(t, variance, n);
    Factors late;
    if constexpr (!kEarly) late.load(t, args, lane);
    const Factors& factors = kEarly ? early : late;
    RT_UNROLL
    for (int r = 0; r < ROWS; ++r) variance[r] = 1.0f / fn::real::sqrt(variance[r] + args.epsilon);
    RT_UNROLL
    for (int r = 0; r < ROWS; ++r) {
      RT_UNROLL
      for (int u = 0; u < PER; ++u) {
        const int i = row + r * kWarps, q = lane + 32 * u;
        if (i < end && q < quads) put_result(t, args, i, q, factors.apply(x[r][u], variance[r], u));
      }
    }
  }

  // Stores quad q of row i of the result.
  static RT_DEVICE void put_result(const rt::Task& t, const Args& args, int i, int q, const Quad& y) {
    if constexpr (KEPT) put(t.ptr<Out>(args.out) + place(i, args.out_step, 4 * q), y);
    if constexpr (CODED) {
      using Code = typename Epi::Out;
      Pack<Code, 4> codes;
      RT_UNROLL
      for (int e = 0; e < 4; ++e) codes.v[e] = Epi::apply(t, args.epi, y.v[e], 0, i, 4 * q + e);
      *reinterpret_cast<Pack<Code, 4>*>(t.ptr<Code>(args.codes) + place(i, args.codes_step, 4 * q)) = codes;
    }
  }

  // Scale and bias of a lane's quads. Few of them are loaded together with the rows.
  static constexpr bool kEarly = PER <= 4;
  struct Factors {
    Quad scale[PER], bias[BIAS ? PER : 1];

    RT_DEVICE void load(const rt::Task& t, const Args& args, int lane) {
      const int quads = args.n / 4;
      RT_UNROLL
      for (int u = 0; u < PER; ++u) {
        const int q = lane + 32 * u < quads ? lane + 32 * u : quads - 1;
        scale[u] = rt::ld_const(t.ptr<const Quad>(args.scale) + q);
        if constexpr (BIAS) bias[u] = rt::ld_const(t.ptr<const Quad>(args.bias) + q);
      }
    }
    RT_DEVICE Quad apply(const Quad& x, float inverse, int u) const {
      Quad y;
      RT_UNROLL
      for (int e = 0; e < 4; ++e) y.v[e] = x.v[e] * inverse * scale[u].v[e];
      if constexpr (BIAS) return plus(y, bias[u]);
      return y;
    }
  };

  // Where quad q of a row is in b.
  static RT_DEVICE const B* source(const rt::Task& t, const Args& args, int row, int q) {
    const B* b = t.ptr<const B>(args.b);
    if constexpr (!GATHER) return b + place(row, args.b_step, 4 * q);
    const int unit = args.unit.quotient(q);
    const int from = rt::ld_const(t.ptr<const int>(args.index) + place(row, args.units, unit));
    return b + place(from, args.b_step, 4 * (q - unit * static_cast<int>(args.unit.d)));
  }

  template <class T>
  static RT_DEVICE Quad load(const T* p) {
    const Pack<T, 4> held = *reinterpret_cast<const Pack<T, 4>*>(p);
    Quad x;
    RT_UNROLL
    for (int i = 0; i < 4; ++i) x.v[i] = float(held.v[i]);
    return x;
  }
  template <class T>
  static RT_DEVICE void put(T* p, const Quad& x) {
    Pack<T, 4> out;
    RT_UNROLL
    for (int i = 0; i < 4; ++i) out.v[i] = T(x.v[i]);
    *reinterpret_cast<Pack<T, 4>*>(p) = out;
  }

  static RT_DEVICE Quad plus(const Quad& x, const Quad& y) {
    return Quad{{x.v[0] + y.v[0], x.v[1] + y.v[1], x.v[2] + y.v[2], x.v[3] + y.v[3]}};
  }

  // The sums over the lanes of a warp, divided by n, for all of them.
  static RT_DEVICE void all(const rt::Task& t, float (&s)[ROWS], float n) {
    RT_UNROLL
    for (int mask = 16; mask > 0; mask /= 2) {
      RT_UNROLL
      for (int r = 0; r < ROWS; ++r) s[r] += rt::shfl_xor(t, s[r], mask);
    }
    RT_UNROLL
    for (int r = 0; r < ROWS; ++r) s[r] /= n;
  }
};

}  // namespace rk
