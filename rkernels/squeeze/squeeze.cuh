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
    // The first of the elements that the thread sums up, and how far positions and channels are apart.
    constexpr int kRows = CB / kWarps;  // of a warp without ACROSS
    const int first = ACROSS ? t.tid / CB : t.tid / 32 * kRows, lane = t.tid % 32;
    const X* x = t.ptr<const X>(a.x) + place(image, a.step_n, place(c0, a.step_c, place(p0, a.step_p)));
    x = rt::settled_place(x + place(ACROSS ? lane : first, a.step_c, place(ACROSS ? first : lane, a.step_p)));
    const int step_c = static_cast<int>(a.step_c), step_p = static_cast<int>(a.step_p);
    const float share = rt::settled(1.0f / static_cast<float>(a.positions));
    t.wait_for_inputs();
    if constexpr (ACROSS) {
      sum_across(t, x, step_p, lane < channels ? positions - first : 0, share, means);
    } else {
      sum_along(t, x, step_c, step_p, channels - first, positions - lane, share, means + first);
    }
    t.sync();
    float* out = t.ptr<float>(a.out) + place(rtask, a.units);
    RK_UNROLL(1)
    for (int u = t.tid; u < a.units; u += kThreads) {
      if (u != t.tid) column(w + u, a.units, channels, now);
      float sum[4] = {};
      RT_UNROLL
      for (int c = 0; c < CB; ++c) sum[c % 4] += now[c] * means[c];
      out[u] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    }
  }

 private:
  // The weights of one unit, with zeros behind the last channel.
  static RT_DEVICE void column(const float* w, int units, int channels, float (&out)[CB]) {
    RT_UNROLL
    for (int c = 0; c < CB; ++c) out[c] = c < channels ? rt::ld_const(ahead(w, c, units)) : 0.0f;
  }

  // A warp sums up four channels at the same time, of which so many exist. x is the first position of the thread's
  // lane, from which on there are so many.
  static RT_DEVICE void sum_along(const rt::Task& t, const X* x, int step_c, int step_p, int channels, int positions,
                                  float share, float* means) {
    constexpr int kRows = CB / kWarps, kAtOnce = 4;
    float sums[kRows] = {};
    RK_UNROLL(1)
    for (; positions > 0; positions -= 32 * kAtOnce) {
      float v[kRows][kAtOnce];
      RT_UNROLL
      for (int c = 0; c < kRows; ++c) {
        const X* row = ahead(x, c, step_c);
        RT_UNROLL
        for (int i = 0; i < kAtOnce; ++i) {
          v[c][i] = element_or_zero(ahead(row, 32 * i, step_p), c < channels && 32 * i < positions);
        }
      }
      RT_UNROLL
      for (int c = 0; c < kRows; ++c) sums[c] += (v[c][0] + v[c][1]) + (v[c][2] + v[c][3]);
      x = ahead(x, 32 * kAtOnce, step_p);
    }
    rt::sync_warp(t);
    RT_UNROLL
    for (int c = 0; c < kRows; ++c) {
      RT_UNROLL
      for (int mask = 16; mask > 0; mask /= 2) sums[c] += rt::shfl_xor(t, sums[c], mask);
      if (t.tid % 32 == 0) means[c] = sums[c] * share;
    }
  }

  // A lane sums up its channel over the positions of its warp, of which there are so many from x on.
  static RT_DEVICE void sum_across(const rt::Task& t, const X* x, int step_p, int positions, float share,
                                   float* means) {
    constexpr int kAtOnce = 8;
    float s = 0.0f;
    RK_UNROLL(1)
    for (; positions > 0; positions -= kWarps * kAtOnce) {
      float v[kAtOnce];
      RT_UNROLL
      for (int i = 0; i < kAtOnce; ++i) v[i] = element_or_zero(ahead(x, kWarps * i, step_p), kWarps * i < positions);
      s += ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7]));
      x = ahead(x, kWarps * kAtOnce, step_p);
    }
    float* sums = means + CB;
    sums[t.tid] = s;
    t.sync();
    if (t.tid < CB) {
      s = sums[t.tid];
      RT_UNROLL
      for (int w = 1; w < kWarps; ++w) s += sums[w * CB + t.tid];
      means[t.tid] = s * share;
    }
  }

  static RT_DEVICE float element_or_zero(const X* p, bool ok) {
    using One = Pack<X, 1>;
    return float(rt::load_or_zero(reinterpret_cast<const One*>(p), ok).v[0]);
  }
};

}  // namespace rk
