// The inner part of matrix-vector products: BN columns of packed weights times MB short rows of input. Their time is
// that of reading the weights. So each warp reads a contiguous run of weights of its own, each lane has eight loads of
// 16 bytes in flight, and the first of them are issued before the input has arrived.
#pragma once

#include "common/tile.cuh"
#include "rt/device/device.cuh"

namespace rk {

// Adds up N values over LK neighbouring lanes. In each of log2(LK) exchanges two lanes divide the values that they
// share into halves, and each adds up one half. In the end each lane has the sums of its own share of the values, v[0]
// to v[kLeft - 1]. Of an odd number of values one half has one less, and an unused value at the end.
template <int N, int LK>
struct LaneSums {
  static constexpr int kLeft = (N + LK - 1) / LK;
  static constexpr bool kEven = N % LK == 0 || LK % N == 0;
  int first = 0, end = N;  // the lane's share: v[0] is the sum of value number first; end is behind the last
  bool owns;               // several lanes may have the same sums; this one is the first of them

  RT_DEVICE LaneSums(const rt::Task& t, float (&v)[N]) {
    const int lane = t.tid % 32;
    int n = N, same = 1;
    RT_UNROLL
    for (int d = LK / 2; d > 0; d /= 2) {
      if (n == 1) {
        v[0] += rt::shfl_xor(t, v[0], d);
        same *= 2;
        continue;
      }
      const int half = (n + 1) / 2;
      const bool upper = (lane & d) != 0;
      if (!kEven && !upper) end = end < first + half ? end : first + half;
      first += upper ? half : 0;
      RT_UNROLL
      for (int i = 0; i < half; ++i) {
        const float beyond = i + half < n ? v[i + half] : 0.0f;
        const float give = upper ? v[i] : beyond, keep = upper ? beyond : v[i];
        v[i] = keep + rt::shfl_xor(t, give, d);
      }
      n = half;
    }
    owns = lane % same == 0;
  }

  // Whether v[i] is a sum of the lane's share.
  RT_DEVICE bool has(int i) const { return kEven || first + i < end; }
};

// The weights that one load of 16 bytes brings: neighbours along k of one column, four of float, eight of 16 bits.
template <class W>
using WeightRun = Pack<W, kPerLoad<W>>;

// How 8 warps divide a product with weights of type W. LK lanes share the k of a column, a run of values of k each. So
// a warp has 32/LK columns side by side: a group. It has C groups, one after another. WK of the warps share the k of
// the same columns; the others have other columns. A step is LK runs. Weights are packed as [step][warp
// column][group][lane] of runs, which is the order in which warps read them. Inputs are staged in float32, and so are
// sums.
template <int MB_, int C_, int LK_, int WK_, class W = float>
struct Gemv {
  static constexpr int MB = MB_, C = C_, LK = LK_, WK = WK_;
  static constexpr int kThreads = 256;
  static constexpr int LC = 32 / LK, WC = 8 / WK;
  static constexpr int BN = WC * LC * C;
  static constexpr int kRun = kPerLoad<W>;
  static constexpr int kStep = LK * kRun;
  static constexpr int kChunk = 8192 / MB;  // values of k whose input is staged in shared memory at a time
  static constexpr int kBatch = 8 / C;      // steps in flight
  static constexpr int kSums = WK * MB * BN;
  static constexpr int kShared = 4 * (MB * kChunk > kSums ? MB * kChunk : kSums);
  static_assert(kChunk % (kStep * WK) == 0, "a chunk is whole steps of all warps");
  static_assert(LK >= 2 && (MB & (MB - 1)) == 0 && (C & (C - 1)) == 0, "powers of two");

  using Run = WeightRun<W>;
  using Sums = float[MB][C];

  // sums += weights · input. input(m, k) is an element of the input, for m < MB and k < K; it must be 0 for rows that
  // do not exist. The sums are those over the lane's own values of k.
  template <class Input>
  static RT_DEVICE void accumulate(const rt::Task& t, const W* weights, int K, const Input& input, Sums& sums) {
    float* staged = reinterpret_cast<float*>(t.smem);
    const int lane = t.tid % 32, warp = t.tid / 32;
    const int wk = warp % WK, wc = warp / WK;
    const int steps = ceil_div(K, kStep);
    const Run* w = reinterpret_cast<const Run*>(weights) + wc * C * 32 + lane;
    const int kl = lane % LK * kRun;
    RK_UNROLL(1)
    for (int k0 = 0; k0 < K; k0 += kChunk) {
      const int first = k0 / kStep;
      const int last = first + kChunk / kStep < steps ? first + kChunk / kStep : steps;
      Run w_now[kBatch][C];
      RT_UNROLL
      for (int b = 0; b < kBatch; ++b) load_step(w, first + wk + b * WK, last, w_now[b]);
      t.sync();
      stage(t, staged, k0, last * kStep - k0, K, input);
      t.sync();
      RK_UNROLL(1)
      for (int s = first + wk; s < last; s += kBatch * WK) {
        RT_UNROLL
        for (int b = 0; b < kBatch; ++b) {
          if (s + b * WK < last) multiply(staged + (s + b * WK - first) * kStep + kl, w_now[b], sums);
          load_step(w, s + (b + kBatch) * WK, last, w_now[b]);
        }
      }
    }
  }

  // Adds the sums of all lanes and warps. The result is at total[m·BN + column] in shared memory, where all threads may
  // read it.
  static RT_DEVICE const float* total(const rt::Task& t, Sums& sums) {
    float* shared = reinterpret_cast<float*>(t.smem);
    const int lane = t.tid % 32, warp = t.tid / 32;
    const int wk = warp % WK, wc = warp / WK;
    float v[MB * C];
    RT_UNROLL
    for (int i = 0; i < MB * C; ++i) v[i] = sums[i / C][i % C];
    const LaneSums<MB * C, LK> at(t, v);
    t.sync();
    if (at.owns) {
      RT_UNROLL
      for (int i = 0; i < at.kLeft; ++i) {
        const int m = (at.first + i) / C, c = (at.first + i) % C;
        shared[(wk * MB + m) * BN + (wc * C + c) * LC + lane / LK] = v[i];
      }
    }
    t.sync();
    if constexpr (WK > 1) {
      RK_UNROLL(1)
      for (int e = t.tid; e < MB * BN; e += kThreads) {
        float x = shared[e];
        RT_UNROLL
        for (int k = 1; k < WK; ++k) x += shared[k * MB * BN + e];
        shared[e] = x;
      }
      t.sync();
    }
    return shared;
  }

 private:
  // The weights of a step. Behind the last step there are none; what is loaded then is not multiplied.
  static RT_DEVICE void load_step(const Run* w, int step, int last, Run (&out)[C]) {
    if (step >= last) return;
    const Run* p = w + step * static_cast<int64_t>(WC * C * 32);
    RT_UNROLL
    for (int c = 0; c < C; ++c) out[c] = rt::ld_const(p + c * 32);
  }

  static constexpr int kAtOnce = 4;  // elements of the input that a thread loads at a time

  template <class Input>
  static RT_DEVICE void stage(const rt::Task& t, float* staged, int k0, int count, int K, const Input& input) {
    RK_UNROLL(1)
    for (int m = 0; m < MB; ++m) {
      RK_UNROLL(1)
      for (int k = t.tid; k < count; k += kAtOnce * kThreads) {
        float x[kAtOnce];
        RT_UNROLL
        for (int b = 0; b < kAtOnce; ++b) x[b] = b * kThreads < K - k0 - k ? input(m, k0 + k + b * kThreads) : 0.0f;
        RT_UNROLL
        for (int b = 0; b < kAtOnce; ++b) {
          if (b * kThreads < count - k) staged[m * kChunk + k + b * kThreads] = x[b];
        }
      }
    }
  }

  static RT_DEVICE void multiply(const float* x, const Run (&w)[C], Sums& sums) {
    RT_UNROLL
    for (int m = 0; m < MB; ++m) {
      RT_UNROLL
      for (int i = 0; i < kRun; i += 4) {
        const float4v v = *reinterpret_cast<const float4v*>(x + m * kChunk + i);
        RT_UNROLL
        for (int c = 0; c < C; ++c) {
          sums[m][c] += v.x * float(w[c].v[i]);
          sums[m][c] += v.y * float(w[c].v[i + 1]);
          sums[m][c] += v.z * float(w[c].v[i + 2]);
          sums[m][c] += v.w * float(w[c].v[i + 3]);
        }
      }
    }
  }
};

}  // namespace rk
