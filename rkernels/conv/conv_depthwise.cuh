// Depthwise convolution of channels-last images: out[p][c] = epilogue(Σ_taps W[tap][c] · prologue(X[tap at p][c])).
// A thread computes four channels of R positions beside each other in a row, whose windows overlap: what it loads of a
// row of the input stays in registers for all of them.
#pragma once

#include "common/loaders.cuh"
#include "common/tile.cuh"
#include "conv/gather.cuh"
#include "rt/device/device.cuh"

namespace rk {

// FW is the filter's width and STRIDE that of positions along a row, both 0 where the loop over a row of the filter is
// not to be unrolled. X and W are the element types of input and weights; sums are float32.
template <int FW, int STRIDE, int R, class X, class W, class Epi, class Pro>
struct ConvDepthwise {
  static constexpr int kThreads = 256;
  static constexpr int kShared = 0;
  static_assert((FW == 0) == (STRIDE == 0));
  using Quad = Pack<float, 4>;
  static constexpr Quad kZero = {{0, 0, 0, 0}};

  struct Args {
    rt::Ref x, w;      // w is packed as [tap][channel]
    rt::Operand3 out;  // [image][position][channel]
    Div quads;         // of channels, of an rTask
    Div segments;      // runs of R positions in a row of the output
    int32_t rows;      // rows of the output, of an rTask
    int32_t channels;  // a multiple of four
    Div tiles_r, tiles_q;
    int32_t filter_h, filter_w;
    int32_t dilation_h, dilation_w;
    Window win;
    typename Epi::Args epi;
    typename Pro::Args pro;
  };

  // rTasks count (image, tile of rows, tile of channels), the last one fastest.
  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    int image = rtask;
    const int q0 = take_digit(image, a.tiles_q) * static_cast<int>(a.quads.d);
    const int r0 = take_digit(image, a.tiles_r) * a.rows;
    const int count = static_cast<int>(a.quads.d * a.segments.d) * a.rows;
    RK_UNROLL(1)
    for (int e = t.tid; e < count; e += kThreads) {
      int row = e;
      const int channel = 4 * (q0 + take_digit(row, a.quads));
      const int column = take_digit(row, a.segments) * R;
      row += r0;
      if (channel < a.channels && row < static_cast<int>(a.win.out_h.d)) {
        compute_run(t, a, image, row, column, channel);
      }
    }
  }

 private:
  static RT_DEVICE Quad load(const Args& a, const X* row, int w, int width) {
    if (static_cast<unsigned>(w) >= static_cast<unsigned>(width)) return kZero;
    const Pack<X, 4> stored = *reinterpret_cast<const Pack<X, 4>*>(ahead(row, w, static_cast<int>(a.win.step_w)));
    Quad x;
    RT_UNROLL
    for (int i = 0; i < 4; ++i) x.v[i] = float(Pro::apply(a.pro, stored.v[i]));
    return x;
  }

  static RT_DEVICE Quad weights(const W* tap) {
    const Pack<W, 4> stored = rt::ld_const(reinterpret_cast<const Pack<W, 4>*>(tap));
    Quad w;
    RT_UNROLL
    for (int i = 0; i < 4; ++i) w.v[i] = float(stored.v[i]);
    return w;
  }

  static RT_DEVICE void add(Quad& sum, const Quad& x, const Quad& w) {
    RT_UNROLL
    for (int i = 0; i < 4; ++i) sum.v[i] += x.v[i] * w.v[i];
  }

  static RT_DEVICE void compute_run(const rt::Task& t, const Args& a, int image, int row, int column, int channel) {
    const Window& win = a.win;
    const X* x = t.template ptr<const X>(a.x) + place(image, win.step_n, channel);
    const W* w = t.template ptr<const W>(a.w) + channel;
    const int h0 = row * static_cast<int>(win.stride_h.d) - win.pad_h;
    const int stride = STRIDE > 0 ? STRIDE : static_cast<int>(win.stride_w.d);
    const int w0 = column * stride - win.pad_w;
    Quad sum[R] = {};
    // The loads of several rows are on their way together. A row outside of the input has no elements.
    RK_UNROLL(FW == 3 ? 3 : FW > 0 ? 2 : 1)
    for (int fh = 0; fh < a.filter_h; ++fh) {
      const int h = h0 + fh * a.dilation_h;
      const int width = static_cast<unsigned>(h) < static_cast<unsigned>(win.in_h) ? win.in_w : 0;
      add_row(a, x + place(h, win.step_h), width, w, w0, stride, sum);
      w += a.filter_w * a.channels;
    }
    const int left = static_cast<int>(win.out_w.d) - column;
    const int first = row * static_cast<int>(win.out_w.d) + column;
    RT_UNROLL
    for (int r = 0; r < R; ++r) {
      if (r < left) {
        RT_UNROLL
        for (int i = 0; i < 4; ++i) store<Epi>(t, a.out, a.epi, sum[r].v[i], image, first + r, channel + i);
      }
    }
  }

  // Adds what one row of the filter, at w, makes of a row of the input with so many elements.
  static RT_DEVICE void add_row(const Args& a, const X* row, int width, const W* w, int w0, int stride,
                                Quad (&sum)[R]) {
    if constexpr (FW > 0) {
      constexpr int kSpan = (R - 1) * STRIDE + FW;
      Quad xs[kSpan];
      RT_UNROLL
      for (int i = 0; i < kSpan; ++i) xs[i] = load(a, row, w0 + i, width);
      RT_UNROLL
      for (int f = 0; f < FW; ++f) {
        const Quad q = weights(w + f * a.channels);
        RT_UNROLL
        for (int r = 0; r < R; ++r) add(sum[r], xs[r * STRIDE + f], q);
      }
    } else {
      RK_UNROLL(1)
      for (int f = 0; f < a.filter_w; ++f) {
        const Quad q = weights(w + f * a.channels);
        RT_UNROLL
        for (int r = 0; r < R; ++r) add(sum[r], load(a, row, w0 + r * stride + f * a.dilation_w, width), q);
      }
    }
  }
};

}  // namespace rk
