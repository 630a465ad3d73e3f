// The second half of squeeze and excitation: the units are what inner makes of the parts' sums (squeeze.cuh); the scale
// of a channel is what gate makes of its product with the units; and the channel is multiplied by it:
//
//	h[unit]          = inner(Σ_part part[image][part][unit])
//	out[image][c][p] = x[image][c][p] · gate(Σ_unit w[c][unit] · h[unit])
//
// Every rTask computes all units again. That is little work, and saves a step between two waits.
#pragma once

#include "common/operand.cuh"
#include "common/tile.cuh"
#include "rt/device/device.cuh"

namespace rk {

// An rTask has CB channels and a chunk of the positions. ACROSS is as in squeeze.cuh. Inner and Gate are functors in
// the form of epilogues, on [image][unit][0] and [image][channel][0].
template <int CB, bool ACROSS, class Inner, class Gate>
struct Excite {
  static constexpr int kThreads = 256, kWarps = kThreads / 32;
  static constexpr int kMostUnits = 1024;
  static constexpr int kShared = 4 * (kThreads + kMostUnits + CB);
  static constexpr int kPer = kThreads / CB;  // threads that share a channel's product
  static_assert(kPer <= 32 && (!ACROSS || CB == 32), "they are in one warp; across, a lane for each channel");

  struct Args {
    rt::Ref x, w, part, out;  // w is [channel][unit], part is [image][part][unit]
    int32_t channels, positions, units, parts;
    int32_t chunk;       // positions of an rTask
    Div blocks, chunks;  // of channels, of positions: chunks fastest
    int64_t step_n, step_c, step_p;
    int64_t out_n, out_c, out_p;
    typename Inner::Args inner;
    typename Gate::Args gate;
  };

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    float* units = reinterpret_cast<float*>(t.smem);
    float* scales = units + kMostUnits;
    int image = rtask;
    const int p0 = take_digit(image, a.chunks) * a.chunk, c0 = take_digit(image, a.blocks) * CB;
    const int channels = a.channels - c0 < CB ? a.channels - c0 : CB;
    const int positions = a.positions - p0 < a.chunk ? a.positions - p0 : a.chunk;
    make_units(t, a, image, units, scales + CB);
    make_scales(t, a, image, c0, channels, units, scales);
    const float* x = t.ptr<const float>(a.x) + place(image, a.step_n, place(c0, a.step_c, place(p0, a.step_p)));
    float* out = t.ptr<float>(a.out) + place(image, a.out_n, place(c0, a.out_c, place(p0, a.out_p)));
    const int lane = t.tid % 32, warp = t.tid / 32;
    if constexpr (ACROSS) {
      if (lane < channels) {
        scale(x + place(lane, a.step_c), out + place(lane, a.out_c), a, scales[lane], warp, kWarps, positions);
      }
    } else {
      RK_UNROLL(1)
      for (int c = warp; c < channels; c += kWarps) {
        scale(x + place(c, a.step_c), out + place(c, a.out_c), a, scales[c], lane, 32, positions);
      }
    }
  }

 private:
  // Up to 256 units at a time. Each has as many threads as there are, which share its parts.
  static RT_DEVICE void make_units(const rt::Task& t, const Args& a, int image, float* units, float* sums) {
    const float* part = t.ptr<const float>(a.part) + place(image * a.parts, a.units);
    RK_UNROLL(1)
    for (int first = 0; first < a.units; first += kThreads) {
      const int n = a.units - first < kThreads ? a.units - first : kThreads;
      const int sharers = kThreads / n, share = t.tid / n, unit = t.tid % n;
      float s = 0.0f;
      if (share < sharers) {
        const float* at = part + place(share, a.units, first + unit);
        RK_UNROLL(8)
        for (int r = share; r < a.parts; r += sharers) {
          s += *at;
          at = ahead(at, sharers, a.units);
        }
      }
      sums[t.tid] = s;
      t.sync();
      if (t.tid < n) {
        RK_UNROLL(4)
        for (int i = 1; i < sharers; ++i) s += sums[i * n + unit];
        units[first + unit] = Inner::apply(t, a.inner, s, image, first + unit, 0);
      }
      t.sync();
    }
  }

  static RT_DEVICE void make_scales(const rt::Task& t, const Args& a, int image, int c0, int channels,
                                    const float* units, float* scales) {
    const int c = t.tid / kPer, part = t.tid % kPer;
    float s = 0.0f;
    if (c < channels) {
      const float* w = t.ptr<const float>(a.w) + place(c0 + c, a.units);
      RK_UNROLL(4)
      for (int u = part; u < a.units; u += kPer) s += rt::ld_const(w + u) * units[u];
    }
    RT_UNROLL
    for (int mask = kPer / 2; mask > 0; mask /= 2) s += rt::shfl_xor(t, s, mask);
    if (part == 0 && c < channels) scales[c] = Gate::apply(t, a.gate, s, image, c0 + c, 0);
    t.sync();
  }

  // Positions from `first` on, every step-th one.
  static RT_DEVICE void scale(const float* x, float* out, const Args& a, float by, int first, int step, int positions) {
    x = ahead(x, 1, first * static_cast<int>(a.step_p)), out = ahead(out, 1, first * static_cast<int>(a.out_p));
    RK_UNROLL(4)
    for (int p = first; p < positions; p += step) {
      *out = *x * by;
      x = ahead(x, step, static_cast<int>(a.step_p)), out = ahead(out, step, static_cast<int>(a.out_p));
    }
  }
};

}  // namespace rk
