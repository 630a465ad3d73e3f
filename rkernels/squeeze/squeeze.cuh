// The first half of squeeze and excitation: the means of channels over all positions, and their product with a matrix.
// Both are sums, so an rTask makes both over its own channels and positions, and excite.cuh adds up what the rTasks
// have made:
//
//	out[image][part][unit] = Σ_c w[c][unit] · Σ_p x[image][c][p] / positions    over the c and p of the part
#pragma once

#include "common/operand.cuh"
#include "common/tile.cuh"
#include "rt/device/device.cuh"

namespace rk {

// An rTask has 32 channels. With ACROSS the lanes of a warp are in charge of neighbouring channels, which is right
// where these are neighbours in memory; otherwise of neighbouring positions of one channel. There is one wait for
// memory: all loads of an rTask are on their way before the first value is used, as far as registers reach, and
// weights before the channels are there. X is the element type of the channels. In memory units come in fours, with
// zeros behind the last one.
template <bool ACROSS, class X>
struct Squeeze {
  static constexpr int CB = 32;
  static constexpr int kThreads = 256, kWarps = kThreads / 32;
  static constexpr bool kEarly = true;
  static constexpr int kShared = 4 * ((ACROSS ? kWarps * CB : 0) + CB);

  struct Args {
    rt::Ref x, w, out;  // w is [channel][unit], out is [image][part][unit]
    int32_t channels, positions, units;
    int32_t chunk;       // positions of a part
    Div blocks, chunks;  // of channels, of positions: parts of an image, chunks fastest
    int64_t step_n, step_c, step_p;
  };

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    float* means = reinterpret_cast<float*>(t.smem);
    int image = rtask;
    const int p0 = take_digit(image, a.chunks) * a.chunk, c0 = take_digit(image, a.blocks) * CB;
    const int channels = a.channels - c0 < CB ? a.channels - c0 : CB;
    const int positions = a.positions - p0 < a.chunk ? a.positions - p0 : a.chunk;
    const float* w = t.ptr<const float>(a.w) + place(c0, a.units);
    float now[CB];
    if (t.tid < a.units) column(w + t.tid, a.units, channels, now);
    t.wait_for_inputs();
    const X* x = t.ptr<const X>(a.x) + place(image, a.step_n, place(c0, a.step_c, place(p0, a.step_p)));
    if constexpr (ACROSS) {
      sum_across(t, a, x, channels, positions, means);
    } else {
      sum_along(t, a, x, channels, positions, means);
    }
    t.sync();
    float* out = t.ptr<float>(a.out) + place(rtask, a.units);
    RK_UNROLL(1)
    for (int u = t.tid; u < a.units; u += kThreads) {
      if (u != t.tid) column(w + u, a.units, channels, now);
      float sum = 0.0f;
      RT_UNROLL
      for (int c = 0; c < CB; ++c) sum += now[c] * means[c];
      out[u] = sum;
    }
  }

 private:
  // The weights of one unit, with zeros behind the last channel.
  static RT_DEVICE void column(const float* w, int units, int channels, float (&out)[CB]) {
    RT_UNROLL
    for (int c = 0; c < CB; ++c) out[c] = c < channels ? rt::ld_const(ahead(w, c, units)) : 0.0f;
  }

  // A warp sums up four channels at the same time.
  static RT_DEVICE void sum_along(const rt::Task& t, const Args& a, const X* x, int channels, int positions,
                                  float* means) {
    constexpr int kRows = CB / kWarps, kAtOnce = 4;
    const int lane = t.tid % 32, first = t.tid / 32 * kRows;
    const X* at = x + place(first, a.step_c, place(lane, a.step_p));
    float sums[kRows] = {};
    RK_UNROLL(1)
    for (int p = lane; p < positions; p += 32 * kAtOnce) {
      float v[kRows][kAtOnce];
      RT_UNROLL
      for (int c = 0; c < kRows; ++c) {
        const X* row = ahead(at, c, static_cast<int>(a.step_c));
        RT_UNROLL
        for (int i = 0; i < kAtOnce; ++i) {
          const bool mine = first + c < channels && p + 32 * i < positions;
          v[c][i] = mine ? float(*ahead(row, 32 * i, static_cast<int>(a.step_p))) : 0.0f;
        }
      }
      RT_UNROLL
      for (int c = 0; c < kRows; ++c) sums[c] += (v[c][0] + v[c][1]) + (v[c][2] + v[c][3]);
      at = ahead(at, 32 * kAtOnce, static_cast<int>(a.step_p));
    }
    rt::sync_warp(t);
    RT_UNROLL
    for (int c = 0; c < kRows; ++c) {
      RT_UNROLL
      for (int mask = 16; mask > 0; mask /= 2) sums[c] += rt::shfl_xor(t, sums[c], mask);
      if (lane == 0) means[first + c] = sums[c] / static_cast<float>(a.positions);
    }
  }

  // A lane sums up its channel over the positions of its warp.
  static RT_DEVICE void sum_across(const rt::Task& t, const Args& a, const X* x, int channels, int positions,
                                   float* means) {
    constexpr int kAtOnce = 8;
    const int c = t.tid % CB;
    const X* at = x + place(c, a.step_c, place(t.tid / CB, a.step_p));
    float s = 0.0f;
    RK_UNROLL(1)
    for (int p = t.tid / CB; p < positions; p += kWarps * kAtOnce) {
      float v[kAtOnce];
      RT_UNROLL
      for (int i = 0; i < kAtOnce; ++i) {
        const bool mine = c < channels && p + kWarps * i < positions;
        v[i] = mine ? float(*ahead(at, kWarps * i, static_cast<int>(a.step_p))) : 0.0f;
      }
      s += ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7]));
      at = ahead(at, kWarps * kAtOnce, static_cast<int>(a.step_p));
    }
    float* sums = means + CB;
    sums[t.tid] = s;
    t.sync();
    if (t.tid < CB) {
      s = sums[t.tid];
      RT_UNROLL
      for (int w = 1; w < kWarps; ++w) s += sums[w * CB + t.tid];
      means[t.tid] = s / static_cast<float>(a.positions);
    }
  }
};

}  // namespace rk
