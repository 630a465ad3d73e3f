// A depthwise convolution (conv_depthwise.cuh) before squeeze and excitation: beside its results an rTask makes its
// part of the product of the channels' means with a matrix, which excite.cuh adds up:
//
//	part[image][tile][unit] = Σ_c w[c][unit] · Σ_p out[image][p][c] / positions    over the c and p of the tile
#pragma once

#include "conv/conv_depthwise.cuh"

namespace rk {

template <int FW, int STRIDE, int R, class X, class W, class Epi, class Pro>
struct ConvDepthwiseSqueeze : ConvDepthwise<FW, STRIDE, R, X, W, Epi, Pro> {
  using Base = ConvDepthwise<FW, STRIDE, R, X, W, Epi, Pro>;
  using Base::kThreads;
  using Quad = typename Base::Quad;
  static constexpr int kShared = (4 * 4 + 4) * kThreads;
  static constexpr int kHeld = 8;  // weights that a thread loads before it convolves

  struct Args {
    typename Base::Args conv;
    rt::Ref weights, part;  // [channel][unit] and [image][tile][unit]
    Div units;
    float positions;
  };

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    int image = rtask;
    const int q0 = take_digit(image, a.conv.tiles_q) * static_cast<int>(a.conv.quads.d);
    const int r0 = take_digit(image, a.conv.tiles_r) * a.conv.rows;
    const int quads = static_cast<int>(a.conv.quads.d), left = a.conv.channels - 4 * q0;
    const Product product(t, a, 4 * q0, left < 4 * quads ? left : 4 * quads);
    float held[kHeld];
    product.load(0, held);
    Quad total = {{0, 0, 0, 0}};
    Base::compute_tile(t, a.conv, image, r0, q0, total);
    float* sums = reinterpret_cast<float*>(t.smem);
    float* shares = sums + 4 * kThreads;
    *reinterpret_cast<Quad*>(sums + 4 * t.tid) = total;
    t.sync();
    add_channels(t, quads, sums, shares, a.positions);
    product.multiply(t, sums, shares, held, t.template ptr<float>(a.part) + place(rtask, static_cast<int>(a.units.d)));
  }

 private:
  // Leaves in sums the mean of each channel of the tile, out of the quads of all threads: those of quad q are q,
  // q + quads, …. Several threads share a channel where there are enough.
  static RT_DEVICE void add_channels(const rt::Task& t, int quads, float* sums, float* shares, float positions) {
    const int channels = 4 * quads, used = quads < kThreads ? kThreads / quads : 1;
    const int sharers = channels < kThreads ? kThreads / channels : 1;
    RK_UNROLL(1)
    for (int first = 0; first < channels; first += kThreads) {
      const int c = first + t.tid % channels, share = t.tid / channels;
      float s = 0.0f;
      if (c < channels && share < sharers) {
        RK_UNROLL(4)
        for (int i = share; i < used; i += sharers) s += sums[4 * (c / 4 + i * quads) + c % 4];
      }
      shares[t.tid] = s;
      t.sync();
      if (t.tid < channels && c < channels) {
        RK_UNROLL(2)
        for (int i = 1; i < sharers; ++i) s += shares[t.tid + i * channels];
      }
      t.sync();
      if (t.tid < channels && c < channels) sums[c] = s / positions;
    }
    t.sync();
  }

  // The product of the tile's means with the weights. Each unit has as many threads as there are, which share channels.
  struct Product {
    const float* w;  // of the thread's unit
    int units, channels, unit, share, sharers;

    RT_DEVICE Product(const rt::Task& t, const Args& a, int first, int count)
        : units(static_cast<int>(a.units.d)), channels(count) {
      share = a.units.quotient(t.tid), unit = t.tid - share * units, sharers = a.units.quotient(kThreads);
      w = t.template ptr<const float>(a.weights) + place(first, units, unit);
    }
    // The weights of the thread's channels number from, from + 1, …, zeros where there are none.
    RT_DEVICE void load(int from, float (&held)[kHeld]) const {
      RT_UNROLL
      for (int i = 0; i < kHeld; ++i) {
        const int c = share + (from + i) * sharers;
        held[i] = share < sharers && c < channels ? rt::ld_const(w + place(c, units)) : 0.0f;
      }
    }
    RT_DEVICE void multiply(const rt::Task& t, const float* means, float* shares, float (&held)[kHeld],
                            float* part) const {
      float s = 0.0f;
      RK_UNROLL(1)
      for (int from = 0; from * sharers < channels; from += kHeld) {
        if (from > 0) load(from, held);
        RT_UNROLL
        for (int i = 0; i < kHeld; ++i) {
          const int c = share + (from + i) * sharers;
          if (share < sharers && c < channels) s += held[i] * means[c];
        }
      }
      shares[t.tid] = s;
      t.sync();
      if (t.tid >= units) return;
      RK_UNROLL(4)
      for (int i = 1; i < sharers; ++i) s += shares[t.tid + i * units];
      part[t.tid] = s;
    }
  };
};

}  // namespace rk
