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

// An rTask has a chunk of the positions of 8 channels, each of which is one warp's; with ACROSS, which is as in
// squeeze.cuh, of 32 channels, each of which is one lane's. A thread has at most kMost elements. Inner and Gate are
// functors in the form of epilogues, on [image][unit][0] and [image][channel][0]. X is the element type of the
// channels, Y that of the result.
template <bool ACROSS, class X, class Y, class Inner, class Gate>
struct Excite {
  static constexpr int kThreads = 256, kWarps = kThreads / 32;
  static constexpr int CB = ACROSS ? 32 : kWarps;
  static constexpr int kMost = 8;
  static constexpr int kChunk = kMost * (ACROSS ? kWarps : 32);  // the most positions of an rTask
  static constexpr int kMostUnits = 1024;
  static constexpr int kShared = 4 * (kThreads + kMostUnits + CB);
  static constexpr int kPer = kThreads / CB;    // threads that share a channel's product
  static constexpr int kHeld = ACROSS ? 8 : 2;  // weights of a channel that a thread loads in advance

  struct Args {
    rt::Ref x, w, part, out;  // w is [channel][unit], part is [image][part][unit]
    int32_t channels, positions, parts;
    int32_t chunk;       // positions of an rTask
    Div blocks, chunks;  // of channels, of positions: chunks fastest
    Div units;
    int64_t step_n, step_c, step_p;
    int64_t out_n, out_c, out_p;
    typename Inner::Args inner;
    typename Gate::Args gate;
  };

  // Where a thread's elements are: one channel, and every kStep-th position from its first one on.
  static constexpr int kStep = ACROSS ? kWarps : 32;
  struct Mine {
    int c, first, count;
    RT_DEVICE Mine(int tid, int channels, int positions)
        : c(ACROSS ? tid % 32 : tid / 32),
          first(ACROSS ? tid / 32 : tid % 32),
          count(c < channels ? positions - first : 0) {}
  };

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    float* units = reinterpret_cast<float*>(t.smem);
    float* scales = units + kMostUnits;
    int image = rtask;
    const int p0 = take_digit(image, a.chunks) * a.chunk, c0 = take_digit(image, a.blocks) * CB;
    const int channels = a.channels - c0 < CB ? a.channels - c0 : CB;
    const int positions = a.positions - p0 < a.chunk ? a.positions - p0 : a.chunk;
    // What does not depend on the units is on its way while they are made.
    const Mine mine(t.tid, channels, positions);
    const X* x =
        t.ptr<const X>(a.x) + place(image, a.step_n, place(c0 + mine.c, a.step_c, place(p0 + mine.first, a.step_p)));
    float v[kMost];
    RT_UNROLL
    for (int i = 0; i < kMost; ++i)
      v[i] = i * kStep < mine.count ? float(*ahead(x, i * kStep, static_cast<int>(a.step_p))) : 0.0f;
    const int c = t.tid / kPer;
    typename Gate::Held gate = {};
    if (c < channels) gate = Gate::hold(t, a.gate, image, c0 + c, 0);
    float now[kHeld];
    weights(t, a, c0, channels, 0, now);
    make_units(t, a, image, units, scales + CB);
    const float scale = channel_product(t, a, c0, channels, units, now);
    if (t.tid % kPer == 0 && c < channels) {
      scales[c] = Gate::apply(a.gate, gate, Gate::bring(t, a.gate, image, c0 + c, 0), scale);
    }
    t.sync();
    Y* out = t.ptr<Y>(a.out) + place(image, a.out_n, place(c0 + mine.c, a.out_c, place(p0 + mine.first, a.out_p)));
    RT_UNROLL
    for (int i = 0; i < kMost; ++i) {
      if (i * kStep < mine.count) *ahead(out, i * kStep, static_cast<int>(a.out_p)) = Y(v[i] * scales[mine.c]);
    }
  }

 private:
  // Up to 256 units at a time. Each has as many threads as there are, but at most kSharers, which share its parts.
  static RT_DEVICE void make_units(const rt::Task& t, const Args& a, int image, float* units, float* sums) {
    constexpr int kAtOnce = 16, kSharers = 16;
    const int all = static_cast<int>(a.units.d);
    const float* part = t.ptr<const float>(a.part) + place(image * a.parts, all);
    RK_UNROLL(1)
    for (int first = 0; first < all; first += kThreads) {
      const bool few = all <= kThreads;
      const int n = few ? all : (all - first < kThreads ? all - first : kThreads);
      const int share = few ? a.units.quotient(t.tid) : 0, unit = t.tid - share * n;
      const int most = few ? a.units.quotient(kThreads) : 1, sharers = most < kSharers ? most : kSharers;
      typename Inner::Held held = {};
      if (t.tid < n) held = Inner::hold(t, a.inner, image, first + t.tid, 0);
      float s = 0.0f;
      if (share < sharers && unit < n) {
        const float* at = part + place(share, all, first + unit);
        RK_UNROLL(1)
        for (int r = share; r < a.parts; r += kAtOnce * sharers) {
          float v[kAtOnce];
          RT_UNROLL
          for (int i = 0; i < kAtOnce; ++i) v[i] = r + i * sharers < a.parts ? at[i * sharers * all] : 0.0f;
          RT_UNROLL
          for (int i = 0; i < kAtOnce; ++i) s += v[i];
          at += kAtOnce * sharers * all;
        }
      }
      sums[t.tid] = s;
      t.sync();
      if (t.tid < n) {
        RK_UNROLL(4)
        for (int i = 1; i < sharers; ++i) s += sums[i * n + t.tid];
        units[first + t.tid] = Inner::apply(a.inner, held, Inner::bring(t, a.inner, image, first + t.tid, 0), s);
      }
      t.sync();
    }
  }

  // The thread's weights of its channel from unit `from` on, zeros where there are none.
  static RT_DEVICE void weights(const rt::Task& t, const Args& a, int c0, int channels, int from, float (&out)[kHeld]) {
    const int c = t.tid / kPer, units = static_cast<int>(a.units.d), first = from + t.tid % kPer;
    const float* w = t.ptr<const float>(a.w) + place(c0 + c, units, first);
    RT_UNROLL
    for (int i = 0; i < kHeld; ++i)
      out[i] = c < channels && first + i * kPer < units ? rt::ld_const(w + i * kPer) : 0.0f;
  }

  // The product of the units with the weights of the thread's channel; now has the first of these.
  static RT_DEVICE float channel_product(const rt::Task& t, const Args& a, int c0, int channels, const float* units,
                                         float (&now)[kHeld]) {
    const int all = static_cast<int>(a.units.d);
    float s = 0.0f;
    RK_UNROLL(1)
    for (int from = 0; from < all; from += kHeld * kPer) {
      if (from > 0) weights(t, a, c0, channels, from, now);
      RT_UNROLL
      for (int i = 0; i < kHeld; ++i) {
        const int u = from + t.tid % kPer + i * kPer;
        if (u < all) s += now[i] * units[u];
      }
    }
    RT_UNROLL
    for (int mask = kPer / 2; mask > 0; mask /= 2) s += rt::shfl_xor(t, s, mask);
    return s;
  }
};

}  // namespace rk
