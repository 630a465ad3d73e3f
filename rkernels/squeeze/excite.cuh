// The second half of squeeze and excitation: the units are what inner makes of the parts' sums (squeeze.cuh); the scale
// of a channel is what gate makes of its product with the units; and the channel is multiplied by it:
//
//	h[unit]          = inner(Σ_part part[image][part][unit])
//	out[image][c][p] = x[image][c][p] · gate(Σ_unit w[c][unit] · h[unit])
//
// Every rTask computes all units again. That is little work, and saves a step between two waits. Constants are on their
// way before the parts are there, and the channels together with the parts, so that an rTask waits for memory once.
#pragma once

#include "common/operand.cuh"
#include "common/tile.cuh"
#include "rt/device/device.cuh"
#include "common/shares.cuh"

namespace rk {

// An rTask has a chunk of the positions of 8 channels, each of which is one warp's; with ACROSS, where neighbouring
// channels are neighbours in memory, of 32 channels, of which a thread has ACROSS. A thread has kMost positions at
// most. Inner and Gate are functors in the form of epilogues, on [image][unit][0] and [image][channel][0]. X is the
// element type of the channels, Y that of the result. In memory units come in fours, with zeros behind the last one.
template <int ACROSS, class X, class Y, class Inner, class Gate>
struct Excite {
  static constexpr int kThreads = 256, kWarps = kThreads / 32;
  static constexpr bool kEarly = true;
  static constexpr int V = ACROSS > 0 ? ACROSS : 1;  // channels of a thread
  static constexpr int CB = ACROSS > 0 ? 32 : kWarps;
  static constexpr int kMost = V > 1 ? 4 : 8;
  static constexpr int kStep = kThreads / CB * V;  // positions from one of a thread to its next one
  static constexpr int kMostUnits = 1024;
  static constexpr int kAtOnce = 8;  // parts that a thread loads together
  static constexpr int kShared = 4 * (kThreads * 4 + kMostUnits + 32) + kAtOnce * kThreads * 16;
  static constexpr int kPer = kThreads / CB;    // threads that share a channel's product
  static constexpr int kHeld = ACROSS ? 5 : 2;  // quads of a channel's weights that a thread loads in advance
  using Quad = Pack<float, 4>;
  // What one access to memory brings. nvcc would make several of elements of 16 bits.
  template <class T>
  using Words = std::conditional_t<V == 1, Pack<T, 1>, Pack<uint32_t, (V * sizeof(T) + 3) / 4>>;

  struct Args {
    rt::Ref x, w, part, out;  // w is [channel][unit], part is [image][part][unit]
    int32_t channels, positions, parts, units;
    int32_t chunk;       // positions of an rTask
    Div blocks, chunks;  // of channels, of positions: chunks fastest
    Div quads;           // of units
    int64_t step_n, step_c, step_p;
    int64_t out_n, out_c, out_p;
    typename Inner::Args inner;
    typename Gate::Args gate;
  };

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    float* sums = reinterpret_cast<float*>(t.smem);
    float* units = sums + 4 * kThreads;
    float* scales = units + kMostUnits;
    Quad* stage = reinterpret_cast<Quad*>(scales + 32);
    int image = rtask;
    const int p0 = take_digit(image, a.chunks) * a.chunk, c0 = take_digit(image, a.blocks) * CB;
    const int channels = a.channels - c0 < CB ? a.channels - c0 : CB;
    const int positions = a.positions - p0 < a.chunk ? a.positions - p0 : a.chunk;
    // Where the thread's elements are: V channels, and every kStep-th position from its first one on.
    constexpr int kColumns = ACROSS > 0 ? CB / V : 32;
    const int mine = ACROSS > 0 ? t.tid % kColumns * V : t.tid / kColumns;
    const int first = ACROSS > 0 ? t.tid / kColumns : t.tid % kColumns;
    const int count = mine < channels ? positions - first : 0;
    const X* x = t.ptr<const X>(a.x) + place(image, a.step_n, place(c0 + mine, a.step_c, place(p0 + first, a.step_p)));
    x = rt::settled_place(x);
    Y* out = t.ptr<Y>(a.out) + place(image, a.out_n, place(c0 + mine, a.out_c, place(p0 + first, a.out_p)));
    out = rt::settled_place(out);
    const Shares shares(t, a.quads, kThreads);
    const Quad* part = t.ptr<const Quad>(a.part) + place(image * a.parts, shares.quads, t.tid);
    part = rt::settled_place(part);
    const int parts = rt::settled(shares.left(a.parts)), step_p = static_cast<int>(a.step_p);
    const int c = t.tid / kPer, quads = shares.quads;
    const Quad* w = t.ptr<const Quad>(a.w) + place(c0 + c, quads, t.tid % kPer);
    const int left = c < channels ? quads - t.tid % kPer : 0;  // quads of weights from the thread's first one on
    Quad now[kHeld];
    RT_UNROLL
    for (int i = 0; i < kHeld; ++i) now[i] = i * kPer < left ? rt::ld_const(w + i * kPer) : Quad{};
    typename Gate::Held gate = {};
    if (c < channels) gate = Gate::hold(t, a.gate, image, c0 + c, 0);
    typename Inner::Held inner = {};
    if (t.tid < a.units) inner = Inner::hold(t, a.inner, image, t.tid, 0);
    t.wait_for_inputs();
    Words<X> loaded[kMost];
    RT_UNROLL
    for (int i = 0; i < kMost; ++i) {
      const auto* from = reinterpret_cast<const Words<X>*>(ahead(x, i * kStep, step_p));
      loaded[i] = load_if(from, i * kStep < count);
    }
    reinterpret_cast<Quad*>(sums)[t.tid] = sum_of_parts(t, part, parts, shares, stage);
    t.sync();
    RK_UNROLL(1)
    for (int u = t.tid; u < 4 * quads; u += kThreads) {
      const float s = shares.sum(sums, u);
      if (u != t.tid && u < a.units) inner = Inner::hold(t, a.inner, image, u, 0);
      units[u] = u < a.units ? Inner::apply(a.inner, inner, Inner::bring(t, a.inner, image, u, 0), s) : 0.0f;
    }
    t.sync();
    const Quad* h = reinterpret_cast<const Quad*>(units) + t.tid % kPer;
    float scale = 0.0f;
    RT_UNROLL
    for (int i = 0; i < kHeld; ++i) {
      if (i * kPer < left) scale += product(now[i], h[i * kPer]);
    }
    RK_UNROLL(1)
    for (int i = kHeld * kPer; i < left; i += kPer) scale += product(rt::ld_const(w + i), h[i]);
    rt::sync_warp(t);
    RT_UNROLL
    for (int mask = kPer / 2; mask > 0; mask /= 2) scale += rt::shfl_xor(t, scale, mask);
    if (t.tid % kPer == 0 && c < channels) {
      scales[c] = Gate::apply(a.gate, gate, Gate::bring(t, a.gate, image, c0 + c, 0), scale);
    }
    t.sync();
    const Pack<float, V> by = *reinterpret_cast<const Pack<float, V>*>(scales + mine);
    RT_UNROLL
    for (int i = 0; i < kMost; ++i) {
      if (i * kStep >= count) break;
      const auto v = bit_cast<Pack<X, V>>(loaded[i]);
      Pack<Y, V> y;
      RT_UNROLL
      for (int k = 0; k < V; ++k) y.v[k] = Y(float(v.v[k]) * by.v[k]);
      *reinterpret_cast<Words<Y>*>(ahead(out, i * kStep, static_cast<int>(a.out_p))) = bit_cast<Words<Y>>(y);
    }
  }

 private:
  // The thread's share of the sum of the parts, of which there are so many from its first one on. They come through
  // shared memory, where no other thread touches them, since nvcc lets loads into registers wait for each other.
  static RT_DEVICE Quad sum_of_parts(const rt::Task& t, const Quad* part, int left, const Shares& shares, Quad* stage) {
    Quad s = {};
    RK_UNROLL(1)
    for (; left > 0; left -= kAtOnce * shares.count) {
      RT_UNROLL
      for (int i = 0; i < kAtOnce; ++i) {
        rt::cp_async_or_zero<16>(stage + i * kThreads + t.tid, part + i * shares.step, i * shares.count < left);
      }
      rt::cp_async_commit();
      rt::cp_async_wait<0>();
      RT_UNROLL
      for (int i = 0; i < kAtOnce; ++i) {
        const Quad v = stage[i * kThreads + t.tid];
        RT_UNROLL
        for (int k = 0; k < 4; ++k) s.v[k] += v.v[k];
      }
      part += kAtOnce * shares.step;
    }
    return s;
  }

  static RT_DEVICE float product(const Quad& a, const Quad& b) {
    return (a.v[0] * b.v[0] + a.v[1] * b.v[1]) + (a.v[2] * b.v[2] + a.v[3] * b.v[3]);
  }
};

}  // namespace rk
