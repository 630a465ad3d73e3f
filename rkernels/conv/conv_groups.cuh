// Convolution in groups of few channels on tensor cores, over channels-last images. An rTask computes some rows of the
// output for some groups whose channels lie beside each other. What it reads of the image, its patch, and all its
// weights are brought to shared memory at once, and windows.cuh multiplies them. Each warp has the output channels of
// one group. Its left operand is the windows of that group's channels, so that nothing is multiplied by the zeros
// between groups:
//
//	a pixel of the patch     group 0 │ group 1 │ group 2 │ group 3 │ a unit that is not used
//	columns of the tile      warp 0  │ warp 1  │ warp 2  │ warp 3
//
// Groups that are narrower than a unit, or than the eight columns of a fragment, have been joined: what is a group here
// is then several of them, and weights from one to the other are zero. k is (filter row, filter column, channel).
#pragma once

#include "common/loaders.cuh"
#include "conv/gather.cuh"
#include "conv/windows.cuh"
#include "rt/device/device.cuh"

namespace rk {

// An rTask has BN output channels, of groups of WN. ROOM is its bytes of shared memory. X is the element type of the
// image, E what is multiplied and what weights are packed as.
template <int BM, int BN, int WM, int WN, int Products, int ROOM, class X, class E, class Epi, class Pro>
struct ConvGroups {
  using T = TensorTile<E, X, E, BM, BN, 32, WM, WN, 1, 1, false, true, false, false, Products>;
  using Product = Windows<T, Products, E>;
  using Unit = typename Product::Unit;
  using Operands = typename Product::Operands;
  static constexpr int kUnit = Product::kUnit;
  static constexpr int kThreads = T::kThreads;
  static constexpr int kShared = ROOM;
  static constexpr bool kEarly = true;

  struct Args {
    rt::Ref x, w, scale;   // scale is that of the weights' parts, where there are three products
    rt::Operand3 out;      // [image][position][channel], or all images as one
    int32_t out_channels;  // of all groups, as are those of the input
    int32_t in_channels;
    Div tiles_r, tiles_n;     // tiles of rows and of output channels
    int32_t rows;             // rows of the output, of an rTask
    int32_t image_positions;  // of an image, where all images are one; else 0
    int32_t patch_rows;
    Div patch_columns;
    Div channels;         // of the input, that an rTask reads, in copies of kCopy
    Div group_units;      // units of a pixel that a group has
    int32_t pixel_units;  // units from one pixel of the patch to the next
    Div filter_w;
    int32_t dilation_h, dilation_w;
    int32_t units;        // of a group's filter
    Div depth;            // units of a packed line of weights: as many and, behind them, those that fill a fragment
    int32_t patch, sums;  // where the patch and the sums of a tile begin in shared memory
    Window win;
    typename Epi::Args epi;
    typename Pro::Args pro;
  };

  // rTasks count (image, tile of rows, tile of output channels), the last one fastest: neighbours read the same pixels.
  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    int image = rtask;
    const int nt = take_digit(image, a.tiles_n), r0 = take_digit(image, a.tiles_r) * a.rows;
    const int n0 = nt * BN, c0 = nt * static_cast<int>(a.channels.d) * kCopy;
    const Operands in(t, static_cast<int>(a.depth.d), a.patch);
    Product::bring_weights(t, a.w, a.depth, n0, in);
    find_offsets(t, a, in);
    const ConstantScale<T> scale(t, a.scale);
    t.wait_for_inputs();
    bring_patch(t, a, t.template ptr<const X>(a.x) + place(image, a.win.step_n, c0), r0, a.in_channels - c0, in);
    t.sync();
    const int columns = static_cast<int>(a.win.out_w.d), left = static_cast<int>(a.win.out_h.d) - r0;
    const int count = (left < a.rows ? left : a.rows) * columns;
    const int i0 = a.image_positions > 0 ? 0 : image, p0 = image * a.image_positions + r0 * columns;
    const auto rows = [&](const typename T::At& at, int m0) {
      const Unit* first = in.patch + at.n / WN * static_cast<int>(a.group_units.d);
      return typename Product::Rows(in, at, [&](int m) { return window(a, first, m0 + m, count); });
    };
    Product::template compute<Epi>(t, in, scale, count, a.sums, a.out, a.epi, {i0, p0, n0, p0 + count, a.out_channels},
                                   rows);
  }

 private:
  // The image is copied so many channels at a time.
  using Copy = Transfer<X, E, kPerLoad<X>, Pro>;
  static constexpr int kCopy = kPerLoad<X>;
  // Whether what has been copied as it was in memory must be rounded.
  static constexpr bool kRounds = std::is_same_v<E, float> && Products == 1;

  // Units behind the filter have an offset below zero, which stands for the unit of zeros.
  static RT_DEVICE void find_offsets(const rt::Task& t, const Args& a, const Operands& in) {
    const int down = a.dilation_h * static_cast<int>(a.patch_columns.d) * a.pixel_units;
    for (int u = t.tid; u < in.depth; u += kThreads) {
      int row = u;
      const int unit = take_digit(row, a.group_units), column = take_digit(row, a.filter_w);
      in.offsets[u] = u < a.units ? row * down + column * a.dilation_w * a.pixel_units + unit : -1;
    }
    if (t.tid == 0) *in.zeros = Unit{};
  }

  // Brings `channels` channels of each pixel, or as many as the rTask reads. What is outside of the image is zero. Each
  // thread has what it has copied when this returns.
  static RT_DEVICE void bring_patch(const rt::Task& t, const Args& a, const X* image, int r0, int channels,
                                    const Operands& in) {
    constexpr int kBatch = Copy::kAsync ? 1 : 4;
    const Window& win = a.win;
    const int h0 = r0 * static_cast<int>(win.stride_h.d) - win.pad_h, pad_w = win.pad_w;
    const unsigned in_h = win.in_h, in_w = win.in_w;
    const int step_h = static_cast<int>(win.step_h), step_w = static_cast<int>(win.step_w);
    const Div across = a.channels, columns = a.patch_columns;
    const int count = a.patch_rows * static_cast<int>(columns.d * across.d), pixel = a.pixel_units * kUnit;
    E* patch = reinterpret_cast<E*>(in.patch);
    RK_UNROLL(1)
    for (int e = t.tid; e < count; e += kBatch * kThreads) {
      Copy copies[kBatch];
      const X* from[kBatch];
      int to[kBatch];
      bool ok[kBatch];
      RT_UNROLL
      for (int b = 0; b < kBatch; ++b) {
        int place_in_patch = e + b * kThreads;
        const bool exists = place_in_patch < count;
        const int channel = take_digit(place_in_patch, across) * kCopy;
        to[b] = exists ? place_in_patch * pixel + channel : -1;
        int h = place_in_patch;
        const int w = take_digit(h, columns) - pad_w;
        h += h0;
        ok[b] = static_cast<unsigned>(h) < in_h & static_cast<unsigned>(w) < in_w & channel < channels & exists;
        from[b] = image + place(h, step_h, place(w, step_w, channel));
        copies[b].take(from[b], ok[b]);
      }
      RT_UNROLL
      for (int b = 0; b < kBatch; ++b) {
        if (to[b] >= 0) copies[b].put(patch + to[b], from[b], ok[b], a.pro);
      }
    }
    rt::cp_async_commit();
    rt::cp_async_wait<0>();
    if constexpr (kRounds) {
      RK_UNROLL(2)
      for (int e = t.tid; e < count; e += kThreads) {
        int place_in_patch = e;
        const int channel = take_digit(place_in_patch, across) * kCopy;
        auto* copied = reinterpret_cast<Pack<E, kCopy>*>(patch + place_in_patch * pixel + channel);
        Pack<E, kCopy> values = *copied;
        RT_UNROLL
        for (int i = 0; i < kCopy; ++i) values.v[i] = Product::multiplied(values.v[i]);
        *copied = values;
      }
    }
  }

  // The first unit of the window of position m of the rTask, for the group whose units begin at `first`. Positions that
  // do not exist are multiplied for nothing.
  static RT_DEVICE const Unit* window(const Args& a, const Unit* first, int m, int count) {
    int row = m < count ? m : 0;
    const int column = take_digit(row, a.win.out_w);
    return first + (row * static_cast<int>(a.win.stride_h.d) * static_cast<int>(a.patch_columns.d) +
                    column * static_cast<int>(a.win.stride_w.d)) *
                       a.pixel_units;
  }
};

}  // namespace rk
