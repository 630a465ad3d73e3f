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

// An rTask has CB channels. With ACROSS the lanes of a warp are in charge of neighbouring channels, which is right
// where these are neighbours in memory; otherwise of neighbouring positions of one channel.
template <int CB, bool ACROSS>
struct Squeeze {
  static constexpr int kThreads = 256, kWarps = kThreads / 32;
  static constexpr int kSums = ACROSS ? kWarps * CB : 0;
  static constexpr int kShared = 4 * (kSums + CB);
  static_assert(!ACROSS || CB == 32, "a lane for each channel");

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
    // The weights are on their way while the means are made.
    const float* w = t.ptr<const float>(a.w) + place(c0, a.units);
    float now[CB];
    if (t.tid < a.units) column(w + t.tid, a.units, channels, now);
    const float* x = t.ptr<const float>(a.x) + place(image, a.step_n, place(c0, a.step_c, place(p0, a.step_p)));
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

  // Positions from `first` on, every step-th one.
  static RT_DEVICE float sum(const float* x, int first, int step, int positions, int64_t step_p) {
    float s = 0.0f;
    const float* at = ahead(x, 1, first * static_cast<int>(step_p));
    RK_UNROLL(8)
    for (int p = first; p < positions; p += step) {
      s += *at;
      at = ahead(at, step, static_cast<int>(step_p));
    }
    return s;
  }

  // A warp sums up a channel at a time.
  static RT_DEVICE void sum_along(const rt::Task& t, const Args& a, const float* x, int channels, int positions,
                                  float* means) {
    const int lane = t.tid % 32;
    RK_UNROLL(1)
    for (int c = t.tid / 32; c < CB; c += kWarps) {
      float s = 0.0f;
      if (c < channels) s = sum(x + place(c, a.step_c), lane, 32, positions, a.step_p);
      RT_UNROLL
      for (int mask = 16; mask > 0; mask /= 2) s += rt::shfl_xor(t, s, mask);
      if (lane == 0) means[c] = s / static_cast<float>(a.positions);
    }
  }

  // A lane sums up its channel over the positions of its warp.
  static RT_DEVICE void sum_across(const rt::Task& t, const Args& a, const float* x, int channels, int positions,
                                   float* means) {
    float* sums = means + CB;
    const int c = t.tid % 32;
    sums[t.tid] = c < channels ? sum(x + place(c, a.step_c), t.tid / 32, kWarps, positions, a.step_p) : 0.0f;
    t.sync();
    if (t.tid < CB) {
      float s = sums[t.tid];
      RT_UNROLL
      for (int w = 1; w < kWarps; ++w) s += sums[w * CB + t.tid];
      means[t.tid] = s / static_cast<float>(a.positions);
    }
  }
};

}  // namespace rk
