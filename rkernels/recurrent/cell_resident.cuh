// Cell (cell.cuh) for runs of steps with the same weights: an rTask's block of the packed [W, R] is loaded
// once and stays in registers and, what does not fit there, in shared memory. Inputs come through the
// import area and the new state is given away by number, so that what travels between vEUs may be tagged
// data.
#pragma once

#include "common/tile.cuh"
#include "recurrent/cell_kinds.cuh"
#include "rt/device.cuh"

namespace rk {

// 256 threads: LK lanes share a row's k in quads, 32/LK rows stand side by side in a warp, C such groups
// one after another, 8 warps. Weights are packed as [step][warp][group][lane] of four floats; a step is
// LK·4 values of k.
template <int Kind, int MB, int C, int LK, int SR, int SS, class F, class G, class H>
struct CellResident {
  static constexpr int kThreads = 256;
  static constexpr bool kFreeWarp = false;
  static constexpr int kWarps = kThreads / 32, LC = 32 / LK, BN = kWarps * LC * C;
  static constexpr int kStep = LK * 4;
  static constexpr int kSumBytes = 4 * MB * BN;
  static constexpr int kShared = kSumBytes + SS * kWarps * C * 32 * 16;
  static constexpr int kRows = kCellRows<Kind>;
  static constexpr int kUnits = BN / kRows;
  static_assert(BN % kRows == 0, "an rTask has whole units");
  static_assert(MB * kUnits <= kThreads, "a thread finishes one unit at most");
  static_assert(kSumBytes % 16 == 0, "the weights behind the sums are aligned");

  struct Args {
    CellMatrix state, out1;  // LSTM: previous and next c, in plain memory
    CellMatrix projection;   // if gates, x·Wᵀ as [unit][gate], in plain memory; inputs is 0 then
    rt::Ref w, bias;         // packed; bias is W's and R's together where the formulas allow
    rt::Ref peep;            // [unit][i, o, f], if has_peep
    rt::Ref lens;            // seq_len, if has_lens
    int32_t x;               // import area: [MB][inputs + hidden], x and h; under kGruState h is r·h
    int32_t h0, gate;        // import area: [MB][kUnits] previous h (GRU) and z (kGruState)
    int32_t out0, out_r, y;  // numbers of results: [MB][kUnits] next h or z, r·h (kGruGates), y if has_y
    int32_t batch, inputs, hidden, gates;
    Div tiles;  // slices of units
    int32_t step;
    int32_t has_peep, has_lens, has_y, input_forget;
    typename F::Args f;
    typename G::Args g;
    typename H::Args act_h;
  };

  // Where it can be, each of the four gates of an LSTM's unit is a lane's.
  static constexpr bool kGateLanes = Kind == kLstm && MB * BN <= kThreads;

  // What a thread keeps from step to step: weights; biases of its unit, or its gate's alone; the unit's c
  // and where that is in memory.
  struct Resident {
    float4v w[SR > 0 ? SR : 1][C];
    float bias[kRows], peep[3];
    float c;
    uint64_t c_ref;
    int64_t c_row;
    float added;  // the step's projection, where gates have lanes
  };

  RT_DEVICE static void load(const rt::Task& t, const Args& a, int rtask, Resident& r) {
    int b0 = rtask;
    const int tile = take_digit(b0, a.tiles);
    const int lane = t.tid % 32, warp = t.tid / 32;
    const int64_t block = static_cast<int64_t>(SR + SS) * kStep * BN;
    const float4v* w = reinterpret_cast<const float4v*>(t.template ptr<const float>(a.w) + tile * block) + warp * C * 32 + lane;
    RT_UNROLL
    for (int s = 0; s < SR; ++s) {
      RT_UNROLL
      for (int c = 0; c < C; ++c) r.w[s][c] = rt::ld_const(w + (s * kWarps * C + c) * 32);
    }
    float4v* shared = kept(t);
    RK_UNROLL(1)
    for (int s = 0; s < SS; ++s) {
      RT_UNROLL
      for (int c = 0; c < C; ++c) shared[(s * kWarps * C + c) * 32] = rt::ld_const(w + ((SR + s) * kWarps * C + c) * 32);
    }
    r.c = 0.0f, r.c_ref = ~uint64_t{0}, r.c_row = 0;
    if (by_gates(a)) {
      r.bias[0] = rt::ld_const(t.template ptr<const float>(a.bias) + tile * BN + t.tid % BN);
      return;
    }
    const int u = t.tid % kUnits, unit = tile * kUnits + u;
    RT_UNROLL
    for (int k = 0; k < kRows; ++k) r.bias[k] = rt::ld_const(t.template ptr<const float>(a.bias) + tile * BN + u * kRows + k);
    RT_UNROLL
    for (int k = 0; k < 3; ++k) {
      r.peep[k] = a.has_peep && unit < a.hidden ? rt::ld_const(t.template ptr<const float>(a.peep) + 3 * unit + k) : 0.0f;
    }
  }

  RT_DEVICE static void prepare(const rt::Task& t, const Args& a, int rtask, Resident& r) {
    if (!by_gates(a)) return;
    int b0 = rtask;
    const int tile = take_digit(b0, a.tiles);
    b0 *= MB;
    const int m = t.tid / BN, row = t.tid % BN, u = row / 4, gate = row % 4, unit = tile * kUnits + u;
    const bool mine = m < MB && b0 + m < a.batch && unit < a.hidden;
    r.added = mine && a.gates != 0 ? a.projection.read(t, b0 + m, unit * a.gates + gate) : 0.0f;
  }

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask, Resident& r) {
    int b0 = rtask;
    const int tile = take_digit(b0, a.tiles);
    b0 *= MB;
    if constexpr (kGateLanes) {
      if (by_gates(a)) return finish_gates(t, a, r, b0, tile);
    }
    const int m = t.tid / kUnits, u = t.tid % kUnits, unit = tile * kUnits + u;
    const bool mine = m < MB && b0 + m < a.batch && unit < a.hidden;
    // On its way while the product is made.
    const float c0 = Kind == kLstm && mine ? last_c(t, a, r, b0 + m, unit) : 0.0f;
    float added[kRows];
    read_projection<Kind>(t, a.projection, mine ? a.gates : 0, b0 + m, unit, added);
    float sums[MB][C] = {};
    multiply(t, a, r, sums);
    const float* total = add_up(t, sums);
    if (!mine) return;
    float s[kRows];
    RT_UNROLL
    for (int k = 0; k < kRows; ++k) s[k] = total[m * BN + u * kRows + k] + r.bias[k] + added[k];
    finish_unit(t, a, r, b0, m, u, unit, c0, s);
  }

 private:
  // All threads of an rTask agree.
  static RT_DEVICE bool by_gates(const Args& a) { return kGateLanes && !a.has_peep && !a.input_forget; }

  // The state that the step before left, which this thread made itself if it was a step of the run.
  static RT_DEVICE float last_c(const rt::Task& t, const Args& a, const Resident& r, int b, int unit) {
    return a.state.ref.bits == r.c_ref && a.state.row == r.c_row ? r.c : a.state.read(t, b, unit);
  }
  static RT_DEVICE void next_c(const rt::Task& t, const Args& a, Resident& r, int b, int unit, float c) {
    r.c = c, r.c_ref = a.out1.ref.bits, r.c_row = a.out1.row;
    a.out1.write(t, b, unit, c);
  }

  // Four lanes a unit: each activates its gate, the first makes the state.
  static RT_DEVICE void finish_gates(const rt::Task& t, const Args& a, Resident& r, int b0, int tile) {
    const int m = t.tid / BN, row = t.tid % BN, u = row / 4, gate = row % 4, unit = tile * kUnits + u;
    const bool mine = m < MB && b0 + m < a.batch && unit < a.hidden;
    const float c0 = mine && gate == 0 ? last_c(t, a, r, b0 + m, unit) : 0.0f;
    float sums[MB][C] = {};
    multiply(t, a, r, sums);
    const float* total = add_up(t, sums);
    if (t.tid / 32 * 32 >= MB * BN) return;  // whole warps
    const float s = total[mine ? m * BN + row : 0] + r.bias[0] + r.added;
    const float x = gate == 3 ? G::apply(a.g, s) : F::apply(a.f, s);
    const int lane = t.tid % 32 / 4 * 4;
    const float o = rt::shfl(t, x, lane + 1), f = rt::shfl(t, x, lane + 2), g = rt::shfl(t, x, lane + 3);
    if (!mine || gate != 0) return;
    const bool live = !a.has_lens || a.step < t.template ptr<const int32_t>(a.lens)[b0 + m];
    const float c = f * c0 + x * g;
    const float h = live ? o * H::apply(a.act_h, c) : t.in[a.x + m * (a.inputs + a.hidden) + a.inputs + unit];
    t.put(a.out0 + m * kUnits + u, h);  // first, others wait for it
    next_c(t, a, r, b0 + m, unit, live ? c : c0);
    if (a.has_y) t.put(a.y + m * kUnits + u, live ? h : 0.0f);
  }

  static RT_DEVICE float4v* kept(const rt::Task& t) {
    return reinterpret_cast<float4v*>(t.smem + kSumBytes) + (t.tid / 32) * C * 32 + t.tid % 32;
  }

  static RT_DEVICE void multiply(const rt::Task& t, const Args& a, const Resident& r, float (&sums)[MB][C]) {
    const int K = a.inputs + a.hidden, kl = t.tid % LK * 4;
    const float* x = t.in + a.x + kl;
    const float4v* shared = kept(t);
    RT_UNROLL
    for (int s = 0; s < SR; ++s) {
      const bool last = SS == 0 && s == SR - 1;
      RT_UNROLL
      for (int m = 0; m < MB; ++m) {
        const float4v v = last ? quad_at_end(x + m * K + s * kStep, K - s * kStep - kl) : quad(x + m * K + s * kStep);
        RT_UNROLL
        for (int c = 0; c < C; ++c) add(sums[m][c], v, r.w[s][c]);
      }
    }
    RK_UNROLL(2)
    for (int s = 0; s < SS; ++s) {
      const int k = (SR + s) * kStep;
      RT_UNROLL
      for (int m = 0; m < MB; ++m) {
        const float4v v = s == SS - 1 ? quad_at_end(x + m * K + k, K - k - kl) : quad(x + m * K + k);
        RT_UNROLL
        for (int c = 0; c < C; ++c) add(sums[m][c], v, shared[(s * kWarps * C + c) * 32]);
      }
    }
  }

  // Rows of x are contiguous and K, x's place and so every quad are multiples of four floats.
  static RT_DEVICE float4v quad(const float* p) { return *reinterpret_cast<const float4v*>(p); }
  static RT_DEVICE float4v quad_at_end(const float* p, int left) {
    return left > 0 ? quad(p) : float4v{0.0f, 0.0f, 0.0f, 0.0f};
  }
  static RT_DEVICE void add(float& sum, const float4v& v, const float4v& w) {
    sum += v.x * w.x;
    sum += v.y * w.y;
    sum += v.z * w.z;
    sum += v.w * w.w;
  }

  // Adds the lanes' shares and leaves the sums at [m·BN + row]. Lanes halve the values among them while
  // there is an even number of them.
  static RT_DEVICE const float* add_up(const rt::Task& t, float (&sums)[MB][C]) {
    float* shared = reinterpret_cast<float*>(t.smem);
    const int lane = t.tid % 32, warp = t.tid / 32;
    float v[MB * C];
    RT_UNROLL
    for (int i = 0; i < MB * C; ++i) v[i] = sums[i / C][i % C];
    int first = 0, n = MB * C, same = 1;
    RT_UNROLL
    for (int d = LK / 2; d > 0; d /= 2) {
      if (n % 2 != 0) {
        RT_UNROLL
        for (int i = 0; i < n; ++i) v[i] += rt::shfl_xor(t, v[i], d);
        same *= 2;
        continue;
      }
      n /= 2;
      const bool upper = (lane & d) != 0;
      first += upper ? n : 0;
      RT_UNROLL
      for (int i = 0; i < n; ++i) {
        const float give = upper ? v[i] : v[i + n], keep = upper ? v[i + n] : v[i];
        v[i] = keep + rt::shfl_xor(t, give, d);
      }
    }
    if (lane % LK % same == 0) {
      RT_UNROLL
      for (int i = 0; i < n; ++i) {
        const int m = (first + i) / C, c = (first + i) % C;
        shared[m * BN + (warp * C + c) * LC + lane / LK] = v[i];
      }
    }
    t.sync();
    return shared;
  }

  static RT_DEVICE void finish_unit(const rt::Task& t, const Args& a, Resident& r, int b0, int m, int u, int unit,
                                    float c0, const float (&s)[kRows]) {
    const bool live = !a.has_lens || a.step < t.template ptr<const int32_t>(a.lens)[b0 + m];
    const int K = a.inputs + a.hidden, at = m * kUnits + u;
    float h = 0.0f;
    if constexpr (Kind == kRnn) {
      h = live ? F::apply(a.f, s[0]) : t.in[a.x + m * K + a.inputs + unit];
    } else if constexpr (Kind == kLstm) {
      const float i = F::apply(a.f, s[0] + r.peep[0] * c0);
      const float f = a.input_forget ? 1.0f - i : F::apply(a.f, s[2] + r.peep[2] * c0);
      const float c = f * c0 + i * G::apply(a.g, s[3]);
      const float o = F::apply(a.f, s[1] + r.peep[1] * c);
      h = live ? o * H::apply(a.act_h, c) : t.in[a.x + m * K + a.inputs + unit];
      next_c(t, a, r, b0 + m, unit, live ? c : c0);
    } else if constexpr (Kind == kGruGates) {
      t.put(a.out_r + at, F::apply(a.f, s[1]) * t.in[a.h0 + at]);
      t.put(a.out0 + at, F::apply(a.f, s[0]));
      return;
    } else {
      const float h0 = t.in[a.h0 + at];
      float z, candidate;
      if constexpr (Kind == kGruLinear) {
        z = F::apply(a.f, s[0]);
        candidate = s[2] + F::apply(a.f, s[1]) * s[3];
      } else {
        z = t.in[a.gate + at];
        candidate = s[0];
      }
      h = live ? (1.0f - z) * G::apply(a.g, candidate) + z * h0 : h0;
    }
    t.put(a.out0 + at, h);
    if (a.has_y) t.put(a.y + at, live ? h : 0.0f);
  }
};

}  // namespace rk
