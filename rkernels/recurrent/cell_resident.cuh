// The cell of cell.cuh for runs of steps with the same weights. An rTask's block of the packed [W, R] is loaded once
// and stays on chip: in registers, and what does not fit there in shared memory. Inputs come through the import area,
// and the new state is given away by number, so it may travel between vEUs as tagged data.
#pragma once

#include "common/gemv.cuh"
#include "common/tile.cuh"
#include "recurrent/cell_kinds.cuh"
#include "rt/device/device.cuh"

namespace rk {

// How 8 warps divide the product. Weights are of type W: float, or 16 bits, of which twice as many fit on chip. LK
// lanes share the k of a row of weights, a run of 16 bytes each, four or eight values of k. So a warp has 32/LK rows
// side by side: a group; it has C groups. A step is LK runs. Weights are packed as [step][warp][group][lane] of runs.
// SR steps of them are kept in registers, SS in shared memory.
template <int Kind, int MB, int C, int LK, int SR, int SS, int Has, class W, class F, class G, class H>
struct CellResident {
  using Run = WeightRun<W>;
  static constexpr int kThreads = 256;
  static constexpr int kWarps = kThreads / 32, LC = 32 / LK, BN = kWarps * LC * C;
  static constexpr int kRun = kPerLoad<W>, kStep = LK * kRun;
  static constexpr int kSumBytes = 4 * MB * BN;
  static constexpr int kShared = kSumBytes + SS * kWarps * C * 32 * 16;
  static constexpr int kRows = kCellRows<Kind>;
  static constexpr int kUnits = BN / kRows;
  static_assert(BN % kRows == 0, "an rTask has whole units");
  static_assert(MB * kUnits <= kThreads, "a thread finishes one unit at most");
  static_assert(kSumBytes % 16 == 0, "the weights behind the sums are aligned");

  struct Args {
    CellMatrix state, out1;  // LSTM: previous and next c, in plain memory
    CellMatrix projection;   // x·Wᵀ as [unit][gate], in plain memory, under kCellHasProjection; inputs is 0 then
    rt::Ref w, bias;         // packed; bias is W's and R's together where the formulas allow
    rt::Ref peep;            // [unit][i, o, f], under kCellHasPeep
    rt::Ref lens;            // seq_len, under kCellHasLens
    int32_t x;               // import area: [MB][inputs + hidden], x and h; under kCellGRUState h is r·h
    int32_t h0, gate;        // import area: [MB][kUnits] previous h (GRU) and z (kCellGRUState)
    int32_t out0, out_r, y;  // numbers of results: [MB][kUnits] next h or z, r·h (kCellGRUGates), y if has_y
    int32_t batch, inputs, hidden, gates;
    Div tiles;  // slices of units
    int32_t step;
    int32_t has_y;
    typename F::Args f;
    typename G::Args g;
    typename H::Args act_h;
  };

  // An LSTM's four gates of a unit are computed by four lanes, one each, where there are enough threads and no gate
  // needs another one's value.
  static constexpr bool kGateLanes =
      Kind == kCellLSTM && MB * BN <= kThreads && (Has & (kCellHasPeep | kCellHasInputForget)) == 0;
  static constexpr int kBiases = kGateLanes ? 1 : kRows;

  // The unit that a thread finishes: its number in the rTask is `at`, and its products begin at `row`.
  struct Mine {
    int batch, unit;  // the row of the batch, and the unit among all
    int m, at, row, gate;
    bool any;
    bool idle;  // no thread of the warp has a unit
  };

  // What a thread keeps from step to step: weights; the biases of its unit, or of its gate alone; the unit's c, and
  // where c is in memory.
  struct Resident {
    Run w[SR > 0 ? SR : 1][C];
    float bias[kBiases], peep[3];
    Mine mine;
    float c;
    uint64_t c_ref;
    int64_t c_row;
    float added[kBiases];  // what the projection of this step's x adds
  };

  RT_DEVICE static void load(const rt::Task& t, const Args& a, int rtask, Resident& r) {
    int b0 = rtask;
    const int tile = take_digit(b0, a.tiles);
    constexpr int kLanes = kGateLanes ? kRows : 1;  // of a unit
    const int own = t.tid / (kUnits * kLanes), u = t.tid % (kUnits * kLanes) / kLanes, gate = t.tid % kLanes;
    const int m = MB > 1 ? own : 0;
    Mine& mine = r.mine;
    mine = Mine{b0 * MB + m, tile * kUnits + u, m, m * kUnits + u, m * BN + u * kRows + gate, gate, false, false};
    // Lane 0 tells all lanes, although each could compute it. nvcc then knows that the value is the same in all lanes.
    // Where the warp branches by it, exchanges behind the branch need no code for lanes that are not together.
    mine.idle = rt::shfl(t, t.tid / 32 * 32, 0) >= MB * BN;
    mine.any = (own < MB) & (mine.batch < a.batch) & (mine.unit < a.hidden);
    const int lane = t.tid % 32, warp = t.tid / 32;
    constexpr int kBlock = (SR + SS) * kStep * BN;
    const Run* w =
        reinterpret_cast<const Run*>(t.template ptr<const W>(a.w) + place(tile, kBlock)) + warp * C * 32 + lane;
    RT_UNROLL
    for (int s = 0; s < SR; ++s) {
      RT_UNROLL
      for (int c = 0; c < C; ++c) r.w[s][c] = rt::ld_const(w + (s * kWarps * C + c) * 32);
    }
    Run* shared = kept(t);
    RK_UNROLL(1)
    for (int s = 0; s < SS; ++s) {
      RT_UNROLL
      for (int c = 0; c < C; ++c) {
        shared[(s * kWarps * C + c) * 32] = rt::ld_const(w + ((SR + s) * kWarps * C + c) * 32);
      }
    }
    r.c = 0.0f, r.c_ref = ~uint64_t{0}, r.c_row = 0;
    const float* bias = t.template ptr<const float>(a.bias) + tile * BN + u * kRows + gate;
    RT_UNROLL
    for (int k = 0; k < kBiases; ++k) r.bias[k] = rt::ld_const(bias + k);
    if constexpr ((Has & kCellHasPeep) != 0) {
      const float* peep = t.template ptr<const float>(a.peep) + 3 * mine.unit;
      RT_UNROLL
      for (int k = 0; k < 3; ++k) r.peep[k] = mine.unit < a.hidden ? rt::ld_const(peep + k) : 0.0f;
    }
  }

  RT_DEVICE static void prepare(const rt::Task& t, const Args& a, int, Resident& r) {
    RT_UNROLL
    for (int k = 0; k < kBiases; ++k) r.added[k] = 0.0f;
    if constexpr ((Has & kCellHasProjection) != 0) {
      const Mine& mine = r.mine;
      if (!mine.any) return;
      const float* x = t.template ptr<const float>(a.projection.ref) +
                       place(mine.batch, a.projection.row, place(mine.unit * a.gates, a.projection.col));
      RT_UNROLL
      for (int k = 0; k < kBiases; ++k) {
        const int gate = kGateLanes ? mine.gate : cell_gate<Kind>(k);
        if (gate >= 0) r.added[k] = x[place(gate, a.projection.col)];
      }
    }
  }

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int, Resident& r) {
    const Mine& mine = r.mine;
    // Loaded while the product is computed.
    const float c0 = Kind == kCellLSTM && mine.any && mine.gate == 0 ? last_c(t, a, r, mine) : 0.0f;
    float sums[MB * C] = {};
    multiply(t, a, r, sums);
    const float* total = add_up(t, sums);
    if constexpr (kGateLanes) {
      if (mine.idle) return;
    } else {
      if (!mine.any) return;
    }
    total += mine.any ? mine.row : 0;
    float s[kBiases];
    RT_UNROLL
    for (int k = 0; k < kBiases; ++k) s[k] = total[k] + r.bias[k] + r.added[k];
    if constexpr (kGateLanes) {
      finish_gates(t, a, r, mine, c0, s[0]);
    } else {
      finish_unit(t, a, r, mine, c0, s);
    }
  }

 private:
  // The c that the step before left. If that was a step of this run, this thread has made it and kept it.
  static RT_DEVICE float last_c(const rt::Task& t, const Args& a, const Resident& r, const Mine& mine) {
    return a.state.ref.bits == r.c_ref && a.state.row == r.c_row ? r.c : *at<const float>(t, a.state, mine);
  }
  static RT_DEVICE void next_c(const rt::Task& t, const Args& a, Resident& r, const Mine& mine, float c) {
    r.c = c, r.c_ref = a.out1.ref.bits, r.c_row = a.out1.row;
    *at<float>(t, a.out1, mine) = c;
  }
  template <class T>
  static RT_DEVICE T* at(const rt::Task& t, const CellMatrix& x, const Mine& mine) {
    return t.template ptr<T>(x.ref) + place(mine.batch, x.row, place(mine.unit, x.col));
  }

  // Whether this step is within the sequence of the row of the batch: sequences may have different lengths.
  static RT_DEVICE bool live(const rt::Task& t, const Args& a, const Mine& mine) {
    if constexpr ((Has & kCellHasLens) == 0) return true;
    return a.step < t.template ptr<const int32_t>(a.lens)[mine.batch];
  }

  // The h before this step.
  static RT_DEVICE float last_h(const rt::Task& t, const Args& a, const Mine& mine) {
    return t.in[a.x + mine.m * (a.inputs + a.hidden) + a.inputs + mine.unit];
  }

  // h is given away first, since other vEUs wait for it; nobody waits for y.
  static RT_DEVICE void give(const rt::Task& t, const Args& a, const Mine& mine, float h, bool live) {
    RT_NO_UNROLL
    for (int k = 0; k <= a.has_y; ++k) {
      t.put((k == 0 ? a.out0 : a.y) + mine.at, k == 0 || live ? h : 0.0f);
    }
  }

  // With four lanes for each unit: each applies the activation to its gate, and the first one computes the new state.
  static RT_DEVICE void finish_gates(const rt::Task& t, const Args& a, Resident& r, const Mine& mine, float c0,
                                     float s) {
    const float x = mine.gate == 3 ? G::apply(a.g, s) : F::apply(a.f, s);
    const int lane = t.tid % 32 / 4 * 4;
    const float o = rt::shfl(t, x, lane + 1), f = rt::shfl(t, x, lane + 2), g = rt::shfl(t, x, lane + 3);
    if (!mine.any || mine.gate != 0) return;
    const bool live = CellResident::live(t, a, mine);
    const float c = f * c0 + x * g;
    give(t, a, mine, live ? o * H::apply(a.act_h, c) : last_h(t, a, mine), live);
    next_c(t, a, r, mine, live ? c : c0);
  }

  static RT_DEVICE Run* kept(const rt::Task& t) {
    return reinterpret_cast<Run*>(t.smem + kSumBytes) + (t.tid / 32) * C * 32 + t.tid % 32;
  }

  static RT_DEVICE void multiply(const rt::Task& t, const Args& a, const Resident& r, float (&sums)[MB * C]) {
    const int K = a.inputs + a.hidden, kl = t.tid % LK * kRun;
    const float* x = t.in + a.x + kl;
    const Run* shared = kept(t);
    RT_UNROLL
    for (int s = 0; s < SR; ++s) {
      multiply_step(x + s * kStep, K, SS == 0 && s == SR - 1 ? K - s * kStep - kl : kRun, r.w[s], sums);
    }
    RK_UNROLL(2)
    for (int s = 0; s < SS; ++s) {
      const int k = (SR + s) * kStep;
      Run w[C];
      RT_UNROLL
      for (int c = 0; c < C; ++c) w[c] = shared[(s * kWarps * C + c) * 32];
      multiply_step(x + k, K, s == SS - 1 ? K - k - kl : kRun, w, sums);
    }
  }

  // Adds the products of a step, of whose runs so many values of k exist at least; the rest are zeros.
  static RT_DEVICE void multiply_step(const float* x, int K, int left, const Run (&w)[C], float (&sums)[MB * C]) {
    RT_UNROLL
    for (int m = 0; m < MB; ++m) {
      RT_UNROLL
      for (int i = 0; i < kRun; i += 4) {
        const float4v v = left > i ? quad(x + m * K + i) : float4v{0.0f, 0.0f, 0.0f, 0.0f};
        RT_UNROLL
        for (int c = 0; c < C; ++c) add(sums[m * C + c], v, w[c].v + i);
      }
    }
  }

  // Four inputs at once. Rows of x are contiguous, and K and the place of x are multiples of four, so the address is
  // aligned.
  static RT_DEVICE float4v quad(const float* p) { return *reinterpret_cast<const float4v*>(p); }
  static RT_DEVICE void add(float& sum, const float4v& v, const W* w) {
    sum += v.x * float(w[0]);
    sum += v.y * float(w[1]);
    sum += v.z * float(w[2]);
    sum += v.w * float(w[3]);
  }

  // Adds up the lanes' shares. The sums are at [m·BN + row] of the result, in shared memory.
  static RT_DEVICE const float* add_up(const rt::Task& t, float (&sums)[MB * C]) {
    float* shared = reinterpret_cast<float*>(t.smem);
    const int lane = t.tid % 32, warp = t.tid / 32;
    rt::sync_warp(t);  // otherwise nvcc makes code for lanes that are not together at each exchange
    const LaneSums<MB * C, LK> at(t, sums);
    if (at.owns) {
      RT_UNROLL
      for (int i = 0; i < at.kLeft; ++i) {
        const int m = MB > 1 ? (at.first + i) / C : 0, c = at.first + i - m * C;
        if (at.has(i)) shared[m * BN + (warp * C + c) * LC + lane / LK] = sums[i];
      }
    }
    t.sync();
    return shared;
  }

  static RT_DEVICE void finish_unit(const rt::Task& t, const Args& a, Resident& r, const Mine& mine, float c0,
                                    const float (&s)[kBiases]) {
    const bool live = CellResident::live(t, a, mine);
    const int at = mine.at;
    float h = 0.0f, c = 0.0f;
    if constexpr (Kind == kCellRNN) {
      h = live ? F::apply(a.f, s[0]) : last_h(t, a, mine);
    } else if constexpr (Kind == kCellLSTM) {
      constexpr bool kPeep = (Has & kCellHasPeep) != 0;
      const float i = F::apply(a.f, kPeep ? s[0] + r.peep[0] * c0 : s[0]);
      const float f = (Has & kCellHasInputForget) != 0 ? 1.0f - i : F::apply(a.f, kPeep ? s[2] + r.peep[2] * c0 : s[2]);
      c = f * c0 + i * G::apply(a.g, s[3]);
      const float o = F::apply(a.f, kPeep ? s[1] + r.peep[1] * c : s[1]);
      h = live ? o * H::apply(a.act_h, c) : last_h(t, a, mine);
    } else if constexpr (Kind == kCellGRUGates) {
      t.put(a.out_r + at, F::apply(a.f, s[1]) * t.in[a.h0 + at]);
      t.put(a.out0 + at, F::apply(a.f, s[0]));
      return;
    } else {
      const float h0 = t.in[a.h0 + at];
      float z, candidate;
      if constexpr (Kind == kCellGRULinear) {
        z = F::apply(a.f, s[0]);
        candidate = s[2] + F::apply(a.f, s[1]) * s[3];
      } else {
        z = t.in[a.gate + at];
        candidate = s[0];
      }
      h = live ? (1.0f - z) * G::apply(a.g, candidate) + z * h0 : h0;
    }
    give(t, a, mine, h, live);
    if constexpr (Kind == kCellLSTM) next_c(t, a, r, mine, live ? c : c0);
  }
};

}  // namespace rk
