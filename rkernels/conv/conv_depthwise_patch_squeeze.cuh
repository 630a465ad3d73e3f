// A depthwise convolution (conv_depthwise_patch.cuh) before squeeze and excitation: beside its results an rTask makes
// its part of the product of the channels' means with a matrix, which excite.cuh adds up:
//
//	part[image][tile][unit] = Σ_c w[c][unit] · Σ_p out[image][p][c] / positions    over the c and p of the tile
#pragma once

#include "conv/conv_depthwise_patch.cuh"
#include "common/shares.cuh"

namespace rk {

template <int FW, int STRIDE, int RW, int RH, int QUADS, int LOAD, int ROOM, class X, class W, class Epi, class Pro>
struct ConvDepthwisePatchSqueeze : ConvDepthwisePatch<FW, STRIDE, RW, RH, QUADS, LOAD, ROOM, X, W, Epi, Pro> {
  using Base = ConvDepthwisePatch<FW, STRIDE, RW, RH, QUADS, LOAD, ROOM, X, W, Epi, Pro>;
  using Base::kThreads;
  using Base::V;
  using Quad = typename Base::Quad;
  static constexpr int kWarps = kThreads / 32;

  struct Args {
    typename Base::Args conv;
    rt::Ref weights, part;  // [channel][unit] and [image][tile][unit], where units come in fours
    Div quads;              // of units
    int32_t matrix;         // where the tile's rows of weights begin in shared memory, behind kThreads quads or more
    float share;            // of a position in a mean
  };

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    const typename Base::Tile tile(a.conv, rtask);
    const int left = a.conv.channels - tile.channel, channels = left < QUADS * V ? left : QUADS * V;
    const Shares shares(t, a.quads, kThreads);
    const int quads = shares.quads;
    Quad* matrix = reinterpret_cast<Quad*>(t.smem + a.matrix);
    Quad total = Base::compute_tile(t, a.conv, tile, [&] {
      const Quad* w = t.template ptr<const Quad>(a.weights) + place(tile.channel, quads);
      RK_UNROLL(1)
      for (int e = t.tid; e < channels * quads; e += kThreads) rt::cp_async16(matrix + e, w + e);
    });
    // The lanes that are QUADS apart have the same channels.
    rt::sync_warp(t);
    RT_UNROLL
    for (int mask = 16; mask >= QUADS; mask /= 2) {
      RT_UNROLL
      for (int i = 0; i < V; ++i) total.v[i] += rt::shfl_xor(t, total.v[i], mask);
    }
    Quad* sums = matrix + QUADS * V * quads;
    if (t.tid % 32 < QUADS) sums[t.tid / 32 * QUADS + t.tid % 32] = total;
    t.sync();
    float* means = reinterpret_cast<float*>(sums);
    if (t.tid < QUADS * V) {
      float s = means[t.tid];
      RT_UNROLL
      for (int i = 1; i < kWarps; ++i) s += means[i * QUADS * V + t.tid];
      means[t.tid] = s * a.share;
    }
    t.sync();
    Quad s = {};
    constexpr int kAtOnce = 4;
    const Quad* w = matrix + t.tid;
    const float* mean = means + shares.share;
    RK_UNROLL(1)
    for (int rest = shares.left(channels); rest > 0; rest -= kAtOnce * shares.count) {
      RT_UNROLL
      for (int i = 0; i < kAtOnce; ++i) {
        if (i * shares.count < rest) Shares::add(s, w[i * shares.step], mean[i * shares.count]);
      }
      w += kAtOnce * shares.step, mean += kAtOnce * shares.count;
    }
    // Nobody needs the patch anymore.
    float* part = t.template ptr<float>(a.part) + place(rtask, V * shares.quads);
    shares.store(t, s, reinterpret_cast<float*>(t.smem), part, kThreads);
  }
};

}  // namespace rk
