// Convolution without tiles: each thread adds up the windows of V output positions at a time. For depthwise
// convolutions and others with small groups, whose operands are used too few times to be worth a tile in shared memory;
// and for element types and weights that the tiled kernels do not take.
#pragma once

#include "common/tile.cuh"
#include "conv/gather.cuh"
#include "rt/device/device.cuh"

namespace rk {

// E is the element type of the input, W that of the weights, Acc that of the sums. Integers of the input are taken less
// their zero point. FH and FW are the filter's height and width if the loops over them are
// to be unrolled, else 0; the values of such a filter are contiguous, and its depth is 1. Transposed selects
// ConvTranspose, as sums over the inputs of each output.
template <class E, class W, class Acc, int V, int FH, int FW, bool Transposed, class Epi, class Pro>
struct ConvDirect {
  static constexpr int kThreads = 256;
  static constexpr int kShared = 0;
  static_assert((FH == 0) == (FW == 0) && !(FH > 0 && Transposed));

  struct Args {
    rt::Ref x, w;
    rt::Operand3 out;     // [image][channel][position]
    Div out_channels;     // of a group
    int32_t in_channels;  // of a group
    int32_t channels;     // of the output
    int32_t positions;
    int32_t tile_c;  // output channels of an rTask
    Div tile_p;      // output positions of an rTask
    Div tiles_c, tiles_p;
    int32_t filter_d, filter_h, filter_w;
    int32_t dilation_d, dilation_h, dilation_w;
    int64_t w_m, w_c, w_d, w_h, w_w;  // element strides of W over output channel (of the group when
    int64_t w_g;                      // transposed), input channel of the group, taps; and group
    int32_t zero;                     // the zero point of integers
    Window win;
    typename Epi::Args epi;
    typename Pro::Args pro;
  };

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    int image = rtask;
    const int p0 = take_digit(image, a.tiles_p) * static_cast<int>(a.tile_p.d);
    const int c0 = take_digit(image, a.tiles_c) * a.tile_c;
    const int count = a.tile_c * static_cast<int>(a.tile_p.d);
    RK_UNROLL(1)
    for (int e0 = t.tid; e0 < count; e0 += kThreads * V) {
      Acc sum[V] = {};
      int channel[V], position[V];
      RT_UNROLL
      for (int v = 0; v < V; ++v) {
        const int e = e0 + v * kThreads;
        channel[v] = e;
        position[v] = p0 + take_digit(channel[v], a.tile_p);
        channel[v] += c0;
        if (e >= count || channel[v] >= a.channels || position[v] >= a.positions) channel[v] = -1;
      }
      sum_windows(t, a, image, channel, position, sum);
      RT_UNROLL
      for (int v = 0; v < V; ++v) {
        if (channel[v] >= 0) {
          t.template ptr<typename Epi::Out>(a.out.ref)[element(a.out, image, channel[v], position[v])] =
              Epi::apply(t, a.epi, static_cast<typename Epi::In>(sum[v]), image, channel[v], position[v]);
        }
      }
    }
  }

 private:
  // The input coordinate under the first tap of output coordinate o, before division by the stride where transposed.
  static RT_DEVICE int start(int o, const Div& stride, int pad) {
    return Transposed ? o + pad : o * static_cast<int>(stride.d) - pad;
  }

  // The input coordinate that is `step` (a tap times the dilation) from there. It may be outside of the input.
  static RT_DEVICE int meet(int from, int step, const Div& stride) {
    if constexpr (Transposed) {
      int i = from - step;
      return i < 0 || take_digit(i, stride) != 0 ? -1 : i;
    } else {
      return from + step;
    }
  }
  static RT_DEVICE bool within(int i, int extent) { return static_cast<unsigned>(i) < static_cast<unsigned>(extent); }

  static RT_DEVICE Acc element_at(const Args& a, const E* from) {
    Acc x = static_cast<Acc>(Pro::apply(a.pro, *from));
    if constexpr (std::is_integral_v<Acc>) x -= a.zero;
    return x;
  }

  static RT_DEVICE void sum_windows(const rt::Task& t, const Args& a, int image, const int (&channel)[V],
                                    const int (&position)[V], Acc (&sum)[V]) {
    const Window& win = a.win;
    const E* x[V];
    const W* w[V];
    int od[V], oh[V], ow[V];
    RT_UNROLL
    for (int v = 0; v < V; ++v) {
      int group = channel[v] < 0 ? 0 : channel[v];
      const int c = take_digit(group, a.out_channels);
      x[v] = t.template ptr<const E>(a.x) + place(image, win.step_n, place(group * a.in_channels, win.step_c));
      w[v] = t.template ptr<const W>(a.w) + place(group, a.w_g, place(c, a.w_m));
      od[v] = position[v];
      ow[v] = take_digit(od[v], win.out_w);
      oh[v] = take_digit(od[v], win.out_h);
      od[v] = start(od[v], win.stride_d, win.pad_d);
      oh[v] = start(oh[v], win.stride_h, win.pad_h);
      ow[v] = start(ow[v], win.stride_w, win.pad_w);
    }
    if constexpr (FH > 0) {
      sum_filters(a, x, w, od, oh, ow, channel, sum);
    } else {
      RK_UNROLL(1)
      for (int ci = 0; ci < a.in_channels; ++ci) {
        RK_UNROLL(1)
        for (int fd = 0; fd < a.filter_d; ++fd) {
          RK_UNROLL(1)
          for (int fh = 0; fh < a.filter_h; ++fh) sum_row(a, ci, fd, fh, x, w, od, oh, ow, channel, sum);
        }
      }
    }
  }

  // Sums for a filter whose size is a constant. Pointers advance with the taps, so that the address of an input takes
  // one instruction, and that of a weight none.
  static RT_DEVICE void sum_filters(const Args& a, const E* (&x)[V], const W* (&w)[V], const int (&od)[V],
                                    const int (&oh)[V], const int (&ow)[V], const int (&channel)[V], Acc (&sum)[V]) {
    const Window& win = a.win;
    const int down = a.dilation_h * static_cast<int>(win.step_h), along = a.dilation_w * static_cast<int>(win.step_w);
    int height[V];  // the input's, 0 where the thread has no position
    RT_UNROLL
    for (int v = 0; v < V; ++v) {
      height[v] = channel[v] >= 0 && within(od[v], win.in_d) ? win.in_h : 0;
      x[v] = ahead(x[v], 1,
                   od[v] * static_cast<int>(win.step_d) + oh[v] * static_cast<int>(win.step_h) +
                       ow[v] * static_cast<int>(win.step_w));
    }
    RK_UNROLL(1)
    for (int ci = 0; ci < a.in_channels; ++ci) {
      const E* row[V];
      RT_UNROLL
      for (int v = 0; v < V; ++v) row[v] = x[v];
      RT_UNROLL
      for (int fh = 0; fh < FH; ++fh) {
        Acc xs[V][FW], ws[V][FW];
        RT_UNROLL
        for (int v = 0; v < V; ++v) {
          const int width = within(oh[v] + fh * a.dilation_h, height[v]) ? win.in_w : 0;
          const E* from = row[v];
          RT_UNROLL
          for (int f = 0; f < FW; ++f) {
            xs[v][f] = within(ow[v] + f * a.dilation_w, width) ? element_at(a, from) : Acc(0);
            ws[v][f] = static_cast<Acc>(w[v][fh * FW + f]);
            from = ahead(from, 1, along);
          }
          row[v] = ahead(row[v], 1, down);
        }
        RT_UNROLL
        for (int v = 0; v < V; ++v) {
          RT_UNROLL
          for (int f = 0; f < FW; ++f) sum[v] += xs[v][f] * ws[v][f];
        }
      }
      RT_UNROLL
      for (int v = 0; v < V; ++v) {
        x[v] = ahead(x[v], 1, static_cast<int>(win.step_c));
        w[v] = ahead(w[v], 1, static_cast<int>(a.w_c));
      }
    }
  }

  // Adds up one row of a filter of any size, for all positions of the thread. Offsets within an image fit 32 bits.
  static RT_DEVICE void sum_row(const Args& a, int ci, int fd, int fh, const E* const (&x)[V], const W* const (&w)[V],
                                const int (&od)[V], const int (&oh)[V], const int (&ow)[V], const int (&channel)[V],
                                Acc (&sum)[V]) {
    const Window& win = a.win;
    const int x_channel = ci * static_cast<int>(win.step_c);
    const int w_row = ci * static_cast<int>(a.w_c) + fd * static_cast<int>(a.w_d) + fh * static_cast<int>(a.w_h);
    int row[V], width_in[V];  // the input's, 0 where the row is outside
    RT_UNROLL
    for (int v = 0; v < V; ++v) {
      const int id = meet(od[v], fd * a.dilation_d, win.stride_d);
      const int ih = meet(oh[v], fh * a.dilation_h, win.stride_h);
      row[v] = x_channel + id * static_cast<int>(win.step_d) + ih * static_cast<int>(win.step_h);
      width_in[v] = channel[v] >= 0 && within(id, win.in_d) && within(ih, win.in_h) ? win.in_w : 0;
    }
    RK_UNROLL(1)
    for (int f = 0; f < a.filter_w; ++f) {
      Acc xs[V], ws[V];
      RT_UNROLL
      for (int v = 0; v < V; ++v) {
        const int iw = meet(ow[v], f * a.dilation_w, win.stride_w);
        const E* from = ahead(x[v], 1, row[v] + iw * static_cast<int>(win.step_w));
        xs[v] = within(iw, width_in[v]) ? element_at(a, from) : Acc(0);
        ws[v] = static_cast<Acc>(*ahead(w[v], 1, w_row + f * static_cast<int>(a.w_w)));
      }
      RT_UNROLL
      for (int v = 0; v < V; ++v) sum[v] += xs[v] * ws[v];
    }
  }
};

}  // namespace rk
