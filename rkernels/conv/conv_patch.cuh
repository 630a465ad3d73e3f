// Convolution of images with few channels, the first one of a network, on tensor cores. An rTask computes some rows of
// the output. What it reads of the image, its patch, and all its weights are brought to shared memory at once, so that
// it waits for memory once. The patch is made of units of 16 bytes: all channels of one pixel, or of two pixels of 16
// bits beside each other, with zeros where there are fewer channels. The depth of the matrix product is counted in
// units, too: k = (filter row, unit of that row, place in the unit).
//
//	patch, a row of the image    u0 u1 u2 u3 u4 u5 u6 …       the window of output column c begins at unit c·phases
//	in shared memory             u0 u2 u4 u6 … │ u1 u3 u5 …   phases = 2: units that are so many apart are neighbours
//
// In this order the units of neighbouring output columns under one unit of the filter are neighbours in shared memory,
// from where windows.cuh multiplies them. Where rows of the image can be copied 16 bytes at a time, they come to shared
// memory as they are first: a thread then has all its copies on their way at once, and units are made of what has come.
#pragma once

#include "conv/gather.cuh"
#include "conv/windows.cuh"
#include "rt/device/device.cuh"

namespace rk {

// PIXELS is how many pixels a unit has, Rows whether rows of the image come as they are, and ROOM the bytes of shared
// memory of an rTask. X is the element type of the image, E what is multiplied and what weights are packed as.
template <int BM, int BN, int WM, int WN, int Products, int PIXELS, int Rows, int ROOM, class X, class E, class Epi,
          class Pro>
struct ConvPatch {
  // The warps share a tile of BM positions as in other kernels. Its depth of stages plays no part here.
  using T = TensorTile<E, X, E, BM, BN, 32, WM, WN, 1, 1, false, true, false, false, Products>;
  static constexpr int kThreads = T::kThreads;
  static constexpr int kShared = ROOM;
  static constexpr bool kEarly = true;
  using Product = Windows<T, Products, E>;
  using Unit = typename Product::Unit;
  using Operands = typename Product::Operands;
  static constexpr int kUnit = Product::kUnit;
  static constexpr int kChannels = kUnit / PIXELS;  // channels of a pixel, with those that are zero

  struct Args {
    rt::Ref x, w, scale;  // scale is that of the weights' parts, where there are three products
    rt::Operand3 out;     // [image][position][channel], or all images as one
    int32_t out_channels;
    Div tiles_r, tiles_n;     // tiles of rows and of output channels
    int32_t rows;             // rows of the output, of an rTask
    int32_t image_positions;  // of an image, where all images are one; else 0
    int32_t channels;         // of the image
    int32_t patch_rows;
    Div patch_units;      // of a row of the patch
    Div phases;           // units from a window to the next one in a row
    int32_t plane;        // units of one phase of a row of the patch
    Div filter_units;     // of a row of the filter
    int32_t units;        // of the whole filter
    Div depth;            // units of a packed line of weights: as many and, behind them, those that fill a fragment
    int32_t patch, sums;  // where the patch and the sums of a tile begin in shared memory
    // Rows of the image that come as they are, of each channel those of the patch: where they begin in shared memory,
    // their first column, and 16 bytes of them.
    int32_t rows_at, first_column;
    Div height, row_loads;
    Window win;
    typename Epi::Args epi;
    typename Pro::Args pro;
  };

  // rTasks count (image, tile of output channels, tile of rows), the last one fastest.
  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    int image = rtask;
    const int r0 = take_digit(image, a.tiles_r) * a.rows, n0 = take_digit(image, a.tiles_n) * BN;
    const Operands in(t, static_cast<int>(a.depth.d), a.patch);
    Product::bring_weights(t, a.w, a.depth, n0, in);
    find_offsets(t, a, in);
    const ConstantScale<T> scale(t, a.scale);
    const int columns = static_cast<int>(a.win.out_w.d), left = static_cast<int>(a.win.out_h.d) - r0;
    const int count = (left < a.rows ? left : a.rows) * columns;
    const int i0 = a.image_positions > 0 ? 0 : image, p0 = image * a.image_positions + r0 * columns;
    t.wait_for_inputs();
    const X* x = t.template ptr<const X>(a.x) + place(image, a.win.step_n);
    if constexpr (Rows) {
      bring_rows(t, a, x, r0);
    } else {
      bring_patch(t, a, x, r0, in.patch);
    }
    rt::cp_async_commit();
    rt::cp_async_wait<0>();
    t.sync();
    if constexpr (Rows) {
      make_units(t, a, in.patch);
      t.sync();
    }
    const auto rows = [&](const typename T::At& at, int m0) {
      return typename Product::Rows(in, at, [&](int m) { return window(a, in.patch, m0 + m, count); });
    };
    Product::template compute<Epi>(t, in, scale, count, a.sums, a.out, a.epi, {i0, p0, n0, p0 + count, a.out_channels},
                                   rows);
  }

 private:
  // Units behind the filter have an offset below zero, which stands for the unit of zeros.
  static RT_DEVICE void find_offsets(const rt::Task& t, const Args& a, const Operands& in) {
    for (int u = t.tid; u < static_cast<int>(a.depth.d); u += kThreads) {
      int row = u;
      int column = take_digit(row, a.filter_units);
      const int phase = take_digit(column, a.phases);
      in.offsets[u] = u < a.units ? row * row_units(a) + phase * a.plane + column : -1;
    }
    if (t.tid == 0) *in.zeros = Unit{};
  }

  static RT_DEVICE int row_units(const Args& a) { return static_cast<int>(a.phases.d) * a.plane; }

  // Rows of the image, of 16 bytes that are inside of it or outside.
  static RT_DEVICE void bring_rows(const rt::Task& t, const Args& a, const X* image, int r0) {
    constexpr int kLoad = kPerLoad<X>;
    const Window& win = a.win;
    const int h0 = r0 * static_cast<int>(win.stride_h.d) - win.pad_h, w0 = a.first_column;
    const Div loads = a.row_loads, height = a.height;
    const int count = a.channels * static_cast<int>(height.d * loads.d);
    X* to = reinterpret_cast<X*>(t.smem + a.rows_at);
    RK_UNROLL(1)
    for (int e = t.tid; e < count; e += kThreads) {
      int channel = e;
      const int w = w0 + take_digit(channel, loads) * kLoad, h = h0 + take_digit(channel, height);
      const bool ok = static_cast<unsigned>(h) < static_cast<unsigned>(win.in_h) &
                      static_cast<unsigned>(w) < static_cast<unsigned>(win.in_w);
      rt::cp_async_or_zero<16>(to + e * kLoad, image + place(channel, win.step_c, place(h, win.step_h, w)), ok);
    }
  }
  static RT_DEVICE void make_units(const rt::Task& t, const Args& a, Unit* patch) {
    const int pitch = static_cast<int>(a.row_loads.d) * kPerLoad<X>, plane = static_cast<int>(a.height.d) * pitch;
    const int count = a.patch_rows * static_cast<int>(a.patch_units.d), channels = a.channels;
    const X* rows = reinterpret_cast<const X*>(t.smem + a.rows_at) - a.win.pad_w - a.first_column;
    RK_UNROLL(1)
    for (int e = t.tid; e < count; e += kThreads) {
      int row = e;
      int column = take_digit(row, a.patch_units);
      const X* from = rows + row * pitch + column * PIXELS;
      Unit unit;
      RT_UNROLL
      for (int i = 0; i < kUnit; ++i) {
        const int c = i % kChannels, pixel = i / kChannels;
        unit.v[i] = c < channels ? Product::multiplied(float(from[c * plane + pixel])) : E();
      }
      const int phase = take_digit(column, a.phases);
      patch[row * row_units(a) + phase * a.plane + column] = unit;
    }
  }

  // A thread brings a few units at a time, whose loads are on their way together. What is outside of the image is zero.
  static RT_DEVICE void bring_patch(const rt::Task& t, const Args& a, const X* image, int r0, Unit* patch) {
    constexpr int kBatch = 2;
    const Window& win = a.win;
    const int h0 = r0 * static_cast<int>(win.stride_h.d) - win.pad_h;
    const int count = a.patch_rows * static_cast<int>(a.patch_units.d);
    const int step_c = static_cast<int>(win.step_c), step_w = static_cast<int>(win.step_w), channels = a.channels;
    RK_UNROLL(1)
    for (int e = t.tid; e < count; e += kBatch * kThreads) {
      X held[kBatch][kUnit];
      uint32_t exist[kBatch] = {};  // a bit for each element
      int to[kBatch];
      RT_UNROLL
      for (int b = 0; b < kBatch; ++b) {
        int row = e + b * kThreads;
        int column = take_digit(row, a.patch_units);
        const int h = h0 + row, w = column * PIXELS - win.pad_w;
        const bool inside = static_cast<unsigned>(h) < static_cast<unsigned>(win.in_h) && row < a.patch_rows;
        const X* from = image + place(h, win.step_h, place(w, step_w));
        RT_UNROLL
        for (int i = 0; i < kUnit; ++i) {
          const int c = i % kChannels, pixel = i / kChannels;
          const bool ok = inside && c < channels && static_cast<unsigned>(w + pixel) < static_cast<unsigned>(win.in_w);
          held[b][i] = ok ? from[c * step_c + pixel * step_w] : X();
          exist[b] |= uint32_t(ok) << i;
        }
        const int phase = take_digit(column, a.phases);
        to[b] = row < a.patch_rows ? row * row_units(a) + phase * a.plane + column : -1;
      }
      RT_UNROLL
      for (int b = 0; b < kBatch; ++b) {
        Unit unit;
        RT_UNROLL
        for (int i = 0; i < kUnit; ++i) {
          // The prologue does not see what is outside.
          const bool ok = Pro::kIdentity || (exist[b] >> i & 1) != 0;
          unit.v[i] = ok ? Product::multiplied(float(Pro::apply(a.pro, held[b][i]))) : E();
        }
        if (to[b] >= 0) patch[to[b]] = unit;
      }
    }
  }

  // The unit of the patch with which the window of position m of the rTask begins. Positions that do not exist are
  // multiplied for nothing.
  static RT_DEVICE const Unit* window(const Args& a, const Unit* patch, int m, int count) {
    int row = m < count ? m : 0;
    const int column = take_digit(row, a.win.out_w);
    return patch + row * static_cast<int>(a.win.stride_h.d) * row_units(a) + column;
  }
};

}  // namespace rk
