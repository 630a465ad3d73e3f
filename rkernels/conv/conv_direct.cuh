// Convolution without a matrix: each thread sums the window of V output positions at a time. For
// depthwise and other thin groups, whose products have no operand worth a tile in shared memory, and for
// element types and weights that the tiled kernels do not take.
#pragma once

#include "common/tile.cuh"
#include "conv/gather.cuh"
#include "rt/device.cuh"

namespace rk {

// E is the element type, Acc that of the sums. FH and FW are the filter's height and width where they
// are worth unrolling for, else 0. Transposed selects the gather form of ConvTranspose.
template <class E, class Acc, int V, int FH, int FW, bool Transposed, class Epi, class Pro>
struct ConvDirect {
  static constexpr int kThreads = 256;
  static constexpr int kShared = 0;

  struct Args {
    rt::Ref x, w;
    rt::Operand3 out;  // [image][channel][position]
    int32_t out_channels, in_channels;  // of a group
    int32_t channels;                   // of the output
    int32_t positions;
    int32_t tile_c, tile_p;  // output channels and positions of an rTask
    int32_t tiles_c, tiles_p;
    int32_t filter_d, filter_h, filter_w;
    int32_t dilation_d, dilation_h, dilation_w;
    int64_t w_m, w_c, w_d, w_h, w_w;  // element strides of W over output channel (of the group when
    int64_t w_g;                      // transposed), input channel of the group, taps; and group
    Window win;
    typename Epi::Args epi;
    typename Pro::Args pro;
  };

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    const int tp = rtask % a.tiles_p, tc = rtask / a.tiles_p % a.tiles_c, image = rtask / a.tiles_p / a.tiles_c;
    const int c0 = tc * a.tile_c, p0 = tp * a.tile_p;
    const int count = a.tile_c * a.tile_p;
    RK_UNROLL(1)
    for (int e0 = t.tid; e0 < count; e0 += kThreads * V) {
      Acc sum[V] = {};
      int channel[V], position[V];
      RT_UNROLL
      for (int v = 0; v < V; ++v) {
        const int e = e0 + v * kThreads;
        channel[v] = c0 + e / a.tile_p, position[v] = p0 + e % a.tile_p;
        if (e >= count || channel[v] >= a.channels || position[v] >= a.positions) channel[v] = -1;
      }
      sum_windows(t, a, image, channel, position, sum);
      RT_UNROLL
      for (int v = 0; v < V; ++v) {
        if (channel[v] >= 0) {
          t.template ptr<typename Epi::Out>(a.out.ref)[image * a.out.s0 + channel[v] * a.out.s1 + position[v] * a.out.s2] =
              Epi::apply(t, a.epi, static_cast<typename Epi::In>(sum[v]), image, channel[v], position[v]);
        }
      }
    }
  }

 private:
  // Coordinate of the input under tap step (already dilated), or -1.
  static RT_DEVICE int meet(int o, int step, int stride, int pad, int extent) {
    if constexpr (Transposed) {
      const int v = o + pad - step;
      const int i = v / stride;
      return v >= 0 && i * stride == v && i < extent ? i : -1;
    } else {
      const int i = o * stride - pad + step;
      return i < extent ? i : -1;
    }
  }

  static RT_DEVICE void sum_windows(const rt::Task& t, const Args& a, int image, const int (&channel)[V],
                                    const int (&position)[V], Acc (&sum)[V]) {
    const Window& win = a.win;
    const E* x[V];
    const E* w[V];
    int od[V], oh[V], ow[V];
    RT_UNROLL
    for (int v = 0; v < V; ++v) {
      const int c = channel[v] < 0 ? 0 : channel[v];
      const int group = c / a.out_channels;
      x[v] = t.template ptr<const E>(a.x) + image * win.step_n + group * a.in_channels * win.step_c;
      w[v] = t.template ptr<const E>(a.w) + group * a.w_g + c % a.out_channels * a.w_m;
      ow[v] = position[v] % win.out_w;
      oh[v] = position[v] / win.out_w % win.out_h;
      od[v] = position[v] / win.out_w / win.out_h;
    }
    RK_UNROLL(1)
    for (int ci = 0; ci < a.in_channels; ++ci) {
      RK_UNROLL(1)
      for (int fd = 0; fd < a.filter_d; ++fd) {
        if constexpr (FH > 0) {
          RT_UNROLL
          for (int fh = 0; fh < FH; ++fh) sum_row(a, ci, fd, fh, FW, x, w, od, oh, ow, channel, sum);
        } else {
          RK_UNROLL(1)
          for (int fh = 0; fh < a.filter_h; ++fh) sum_row(a, ci, fd, fh, a.filter_w, x, w, od, oh, ow, channel, sum);
        }
      }
    }
  }

  // One row of the filter, for all positions of the thread.
  static RT_DEVICE void sum_row(const Args& a, int ci, int fd, int fh, int width, const E* const (&x)[V],
                                const E* const (&w)[V], const int (&od)[V], const int (&oh)[V], const int (&ow)[V],
                                const int (&channel)[V], Acc (&sum)[V]) {
    const Window& win = a.win;
    RT_UNROLL
    for (int v = 0; v < V; ++v) {
      const int id = meet(od[v], fd * a.dilation_d, win.stride_d, win.pad_d, win.in_d);
      const int ih = meet(oh[v], fh * a.dilation_h, win.stride_h, win.pad_h, win.in_h);
      const E* row = x[v] + ci * win.step_c + id * win.step_d + ih * win.step_h;
      const E* taps = w[v] + ci * a.w_c + fd * a.w_d + fh * a.w_h;
      const bool ok = channel[v] >= 0 && id >= 0 && ih >= 0;
      const auto add = [&](int fw) {
        const int iw = meet(ow[v], fw * a.dilation_w, win.stride_w, win.pad_w, win.in_w);
        if (ok && iw >= 0) {
          sum[v] += static_cast<Acc>(Pro::apply(a.pro, row[iw * win.step_w])) * static_cast<Acc>(taps[fw * a.w_w]);
        }
      };
      if constexpr (FW > 0) {
        RT_UNROLL
        for (int fw = 0; fw < FW; ++fw) add(fw);
      } else {
        RK_UNROLL(1)
        for (int fw = 0; fw < width; ++fw) add(fw);
      }
    }
  }
};

}  // namespace rk
