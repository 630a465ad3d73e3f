// One step of a recurrent cell in float32. An rTask computes a slice of hidden units for up to MB rows of the batch.
// First come all gates of these units, as one matrix-vector product of [x, h] with the packed [W, R]; then the
// pointwise part. Where another rOperator has computed the product of x and W, only h is multiplied by R, and x, which
// is that product, is added.
#pragma once

#include "common/gemv.cuh"
#include "common/tile.cuh"
#include "recurrent/cell_kinds.cuh"
#include "rt/device/device.cuh"

namespace rk {

// F, G and H are the activations f, g, h of the ONNX formulas, clipping included.
template <int Kind, int MB, int C, int LK, int WK, class F, class G, class H>
struct Cell {
  using Product = Gemv<MB, C, LK, WK>;
  static constexpr int kThreads = Product::kThreads;
  static constexpr int kShared = Product::kShared;
  static constexpr int kRows = kCellRows<Kind>;
  static constexpr int kUnits = Product::BN / kRows;
  static_assert(kUnits > 0 && Product::BN % kRows == 0, "an rTask has whole units");

  struct Args {
    CellMatrix x, h;   // what the product reads; under kCellGRUState h is r·h. If gates, x is [unit][gate]
    CellMatrix state;  // previous c (LSTM) or h (GRU)
    CellMatrix gate;   // z, under kCellGRUState
    rt::Ref w, bias;   // packed; bias is W's and R's together where the formulas allow
    rt::Ref peep;      // [unit][i, o, f], if has_peep
    rt::Ref lens;      // seq_len, if has_lens
    CellMatrix out0;   // next h; z under kCellGRUGates
    CellMatrix out1;   // next c (LSTM), r·h (kCellGRUGates)
    CellMatrix y;      // if has_y
    int32_t batch, inputs, hidden, gates;
    Div tiles;  // slices of units
    int32_t step;
    int32_t has_peep, has_lens, has_y, input_forget;
    typename F::Args f;
    typename G::Args g;
    typename H::Args act_h;
  };

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    int b0 = rtask;
    const int tile = take_digit(b0, a.tiles);
    b0 *= MB;
    const int K = a.inputs + a.hidden;
    const float* x = t.template ptr<const float>(a.x.ref);
    const float* h = t.template ptr<const float>(a.h.ref);
    const int64_t block = static_cast<int64_t>(ceil_div(K, Product::kStep)) * Product::kStep * Product::BN;
    float added[kRows];  // what x adds to the first unit: loaded before the product, so that nobody waits for it behind
    projection(t, a, b0 + t.tid / kUnits, tile * kUnits + t.tid % kUnits, added);
    typename Product::Sums sums = {};
    Product::accumulate(
        t, t.template ptr<const float>(a.w) + tile * block, K,
        [&](int m, int k) {
          if (b0 + m >= a.batch) return 0.0f;
          return k < a.inputs ? x[(b0 + m) * a.x.row + k * a.x.col] : h[(b0 + m) * a.h.row + (k - a.inputs) * a.h.col];
        },
        sums);
    const float* total = Product::total(t, sums);
    const float* bias = t.template ptr<const float>(a.bias) + tile * Product::BN;
    RK_UNROLL(1)
    for (int e = t.tid; e < MB * kUnits; e += kThreads) {
      const int m = e / kUnits, u = e % kUnits, unit = tile * kUnits + u;
      if (b0 + m >= a.batch || unit >= a.hidden) continue;
      if (e >= kThreads) projection(t, a, b0 + m, unit, added);
      float s[kRows];
      RT_UNROLL
      for (int r = 0; r < kRows; ++r) {
        s[r] = total[m * Product::BN + u * kRows + r] + rt::ld_const(bias + u * kRows + r) + added[r];
      }
      finish_unit(t, a, b0 + m, unit, s);
    }
  }

 private:
  static RT_DEVICE void projection(const rt::Task& t, const Args& a, int b, int j, float (&out)[kRows]) {
    read_projection<Kind>(t, a.x, b < a.batch && j < a.hidden ? a.gates : 0, b, j, out);
  }

  static RT_DEVICE void finish_unit(const rt::Task& t, const Args& a, int b, int j, const float (&s)[kRows]) {
    const bool live = !a.has_lens || a.step < t.template ptr<const int32_t>(a.lens)[b];
    float h = 0.0f;
    if constexpr (Kind == kCellRNN) {
      h = live ? F::apply(a.f, s[0]) : a.h.read(t, b, j);
    } else if constexpr (Kind == kCellLSTM) {
      const float c0 = a.state.read(t, b, j);
      float pi = 0, po = 0, pf = 0;
      if (a.has_peep) {
        const float* p = t.template ptr<const float>(a.peep) + 3 * j;
        pi = rt::ld_const(p), po = rt::ld_const(p + 1), pf = rt::ld_const(p + 2);
      }
      // Without peepholes nothing may be added, not even 0·state: the state may be infinite.
      const auto peep = [&](float x, float weight, float state) { return a.has_peep ? x + weight * state : x; };
      const float i = F::apply(a.f, peep(s[0], pi, c0));
      const float f = a.input_forget ? 1.0f - i : F::apply(a.f, peep(s[2], pf, c0));
      const float c = f * c0 + i * G::apply(a.g, s[3]);
      const float o = F::apply(a.f, peep(s[1], po, c));
      h = live ? o * H::apply(a.act_h, c) : a.h.read(t, b, j);
      a.out1.write(t, b, j, live ? c : c0);
    } else if constexpr (Kind == kCellGRUGates) {
      a.out1.write(t, b, j, F::apply(a.f, s[1]) * a.state.read(t, b, j));
      a.out0.write(t, b, j, F::apply(a.f, s[0]));
      return;
    } else {
      const float h0 = a.state.read(t, b, j);
      float z, candidate;
      if constexpr (Kind == kCellGRULinear) {
        z = F::apply(a.f, s[0]);
        candidate = s[2] + F::apply(a.f, s[1]) * s[3];
      } else {
        z = a.gate.read(t, b, j);
        candidate = s[0];
      }
      h = live ? (1.0f - z) * G::apply(a.g, candidate) + z * h0 : h0;
    }
    a.out0.write(t, b, j, h);
    if (a.has_y) a.y.write(t, b, j, live ? h : 0.0f);
  }
};

}  // namespace rk
