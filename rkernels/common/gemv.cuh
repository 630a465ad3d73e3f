// The inner part of matrix-vector contractions: BN columns of packed weights against MB short rows of
// input. Bandwidth is everything here: each warp streams its own contiguous run of weights, eight
// 16-byte loads a lane in flight, the first of them issued before the input has arrived.
#pragma once

#include "common/tile.cuh"
#include "rt/device/device.cuh"

namespace rk {

// Adds N values of each of LK neighbouring lanes. Lanes halve the values among them while they add: after
// log2(LK) exchanges each lane has the sums of its own share of the values, v[0] to v[kLeft-1]; of an odd
// number of values one half has one less, and a value of nobody at the end.
template <int N, int LK>
struct LaneSums {
  static constexpr int kLeft = (N + LK - 1) / LK;
  static constexpr bool kEven = N % LK == 0 || LK % N == 0;
  int first = 0, end = N;  // numbers of the value whose sum is in v[0], and behind that of the lane's last
  bool owns;               // of the lanes that have the same sums this one is the first

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

  // Whether v[i] is a sum of the lane's.
  RT_DEVICE bool has(int i) const { return kEven || first + i < end; }
};

// LK lanes share a column's k in quads, 32/LK columns stand side by side in a warp, C such groups one
// after another; WK of the 8 warps share the columns' k. Weights are packed as
// [step][warp column][group][lane] of four floats; a step is LK·4 values of k.
template <int MB_, int C_, int LK_, int WK_>
struct Gemv {
  static constexpr int MB = MB_, C = C_, LK = LK_, WK = WK_;
  static constexpr int kThreads = 256;
  static constexpr int LC = 32 / LK, WC = 8 / WK;
  static constexpr int BN = WC * LC * C;
  static constexpr int kStep = LK * 4;
  static constexpr int kChunk = 8192 / MB;  // of k, staged in shared memory at a time
  static constexpr int kBatch = 8 / C;      // steps in flight
  static constexpr int kSums = WK * MB * BN;
  static constexpr int kShared = 4 * (MB * kChunk > kSums ? MB * kChunk : kSums);
  static_assert(kChunk % (kStep * WK) == 0, "a chunk is whole steps of all warps");
  static_assert(LK >= 2 && (MB & (MB - 1)) == 0 && (C & (C - 1)) == 0, "powers of two");

  using Sums = float[MB][C];

  // sums += weights · input; input(m, k) reads an element for m < MB, k < K and gives 0 for rows that do
  // not exist. The sums are partial: over the lane's quads alone.
  template <class Input>
  static RT_DEVICE void accumulate(const rt::Task& t, const float* weights, int K, const Input& input, Sums& sums) {
    float* staged = reinterpret_cast<float*>(t.smem);
    const int lane = t.tid % 32, warp = t.tid / 32;
    const int wk = warp % WK, wc = warp / WK;
    const int steps = ceil_div(K, kStep);
    const float4v* w = reinterpret_cast<const float4v*>(weights) + wc * C * 32 + lane;
    const int kl = lane % LK * 4;
    RK_UNROLL(1)
    for (int k0 = 0; k0 < K; k0 += kChunk) {
      const int first = k0 / kStep;
      const int last = first + kChunk / kStep < steps ? first + kChunk / kStep : steps;
      float4v w_now[kBatch][C];
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

  // Adds the lanes' and warps' shares and leaves the result at total[m·BN + column] of shared memory,
  // for all threads to read.
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
  // The weights of a step; there is nothing behind the last one, and nobody multiplies it.
  static RT_DEVICE void load_step(const float4v* w, int step, int last, float4v (&out)[C]) {
    if (step >= last) return;
    const float4v* p = w + step * static_cast<int64_t>(WC * C * 32);
    RT_UNROLL
    for (int c = 0; c < C; ++c) out[c] = rt::ld_const(p + c * 32);
  }

  static constexpr int kAtOnce = 4;  // elements that a thread has on their way

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

  static RT_DEVICE void multiply(const float* x, const float4v (&w)[C], Sums& sums) {
    RT_UNROLL
    for (int m = 0; m < MB; ++m) {
      const float4v v = *reinterpret_cast<const float4v*>(x + m * kChunk);
      RT_UNROLL
      for (int c = 0; c < C; ++c) {
        sums[m][c] += v.x * w[c].x;
        sums[m][c] += v.y * w[c].y;
        sums[m][c] += v.z * w[c].z;
        sums[m][c] += v.w * w[c].w;
      }
    }
  }
};

}  // namespace rk
