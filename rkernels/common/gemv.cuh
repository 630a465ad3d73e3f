// The inner part of matrix-vector contractions: BN columns of packed weights against MB short rows of
// input. Bandwidth is everything here: each warp streams its own contiguous run of weights, eight
// 16-byte loads a lane in flight, the first of them issued before the input has arrived.
#pragma once

#include "common/tile.cuh"
#include "rt/device.cuh"

namespace rk {

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
      float4v now[kBatch][C];
      load_batch(w, first + wk, last, now);
      t.sync();
      stage(t, staged, k0, last * kStep - k0, K, input);
      t.sync();
      RK_UNROLL(1)
      for (int s = first + wk; s < last; s += kBatch * WK) {
        float4v next[kBatch][C];
        load_batch(w, s + kBatch * WK, last, next);
        RT_UNROLL
        for (int b = 0; b < kBatch; ++b) {
          if (s + b * WK < last) multiply(staged + (s + b * WK - first) * kStep + kl, now[b], sums);
        }
        RT_UNROLL
        for (int b = 0; b < kBatch; ++b) {
          RT_UNROLL
          for (int c = 0; c < C; ++c) now[b][c] = next[b][c];
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
    t.sync();
    RT_UNROLL
    for (int m = 0; m < MB; ++m) {
      RT_UNROLL
      for (int c = 0; c < C; ++c) {
        float x = sums[m][c];
        RT_UNROLL
        for (int d = LK / 2; d > 0; d /= 2) x += rt::shfl_xor(t, x, d);
        if (lane % LK == 0) shared[(wk * MB + m) * BN + (wc * C + c) * LC + lane / LK] = x;
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
  static RT_DEVICE void load_batch(const float4v* w, int step, int last, float4v (&out)[kBatch][C]) {
    RT_UNROLL
    for (int b = 0; b < kBatch; ++b) {
      const int s = step + b * WK;
      RT_UNROLL
      for (int c = 0; c < C; ++c) {
        out[b][c] = float4v{0, 0, 0, 0};
        if (s < last) out[b][c] = rt::ld_const(w + (static_cast<int64_t>(s) * WC * C + c) * 32);
      }
    }
  }

  template <class Input>
  static RT_DEVICE void stage(const rt::Task& t, float* staged, int k0, int count, int K, const Input& input) {
    RT_UNROLL
    for (int m = 0; m < MB; ++m) {
      RK_UNROLL(MB == 1 ? 4 : 1)
      for (int k = t.tid; k < count; k += kThreads) staged[m * kChunk + k] = k0 + k < K ? input(m, k0 + k) : 0.0f;
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
