// The data operand of an implicit GEMM: B[k][p] is the input element that output position p meets under
// filter element k. Where that is, a packed table of Steps says.
#pragma once

#include "common/loaders.cuh"
#include "common/tile.cuh"
#include "rt/device.cuh"

namespace rk {

// What a row of B adds to the position of p: elements to the address, and coordinates to the input's
// (depth, height, width). Under kTap a Step holds for a whole k tile, whose rows are input channels;
// the number of those that exist stands in the upper half of depth.
struct alignas(16) Step {
  int32_t offset;
  int32_t depth, height, width;
};

enum GatherMode { kTap = 0, kTable = 1, kTransposed = 2 };

// Geometry shared by all positions. For transposed convolutions an output coordinate o meets input
// (o + pad - step)/stride where that division has no remainder.
struct Window {
  int32_t in_d, in_h, in_w;
  Div out_h, out_w;  // p = (d·out_h + h)·out_w + w
  Div stride_d, stride_h, stride_w;
  int32_t pad_d, pad_h, pad_w;
  int64_t step_n, step_c, step_d, step_h, step_w;  // element strides of the input
};

template <int Threads, int BK, int BN, int Mode, class Pro>
struct GatherLoader {
  const float* base;  // of the image and group; under transposition of coordinate 0, else of p's window
  const Step* steps;
  const Window& win;
  int d, h, w;  // of the window's first element; under transposition o + pad
  bool inside;  // p exists
  int tid;
  int last;    // k tile
  Step ahead;  // under kTap: that of the next k tile, on its way while this one is multiplied
  const typename Pro::Args& pro;

  static constexpr int kRowsAtOnce = Threads / BN;
  static_assert(Threads % BN == 0 && BK % kRowsAtOnce == 0, "threads cover whole rows of the stage");

  RT_DEVICE GatherLoader(const rt::Task& t, const float* image, const Step* s, const Window& v, int p, int positions,
                         int k_tiles, const typename Pro::Args& prologue)
      : base(image), steps(s), win(v), inside(p < positions), tid(t.tid), last(k_tiles - 1), pro(prologue) {
    d = p;
    w = take_digit(d, v.out_w);
    h = take_digit(d, v.out_h);
    if constexpr (Mode == kTransposed) {
      d += v.pad_d, h += v.pad_h, w += v.pad_w;
    } else {
      d = d * static_cast<int>(v.stride_d.d) - v.pad_d;
      h = h * static_cast<int>(v.stride_h.d) - v.pad_h;
      w = w * static_cast<int>(v.stride_w.d) - v.pad_w;
      base += place(d, v.step_d, place(h, v.step_h, place(w, v.step_w)));
    }
    if constexpr (Mode == kTap) ahead = rt::ld_const(steps);
  }

  RT_DEVICE bool within(int id, int ih, int iw) const {
    return inside && static_cast<unsigned>(id) < static_cast<unsigned>(win.in_d) &&
           static_cast<unsigned>(ih) < static_cast<unsigned>(win.in_h) &&
           static_cast<unsigned>(iw) < static_cast<unsigned>(win.in_w);
  }

  RT_DEVICE void issue(float* stage, int k_tile) {
    const int col = tid % BN, r0 = tid / BN;
    float* dst = stage + r0 * BN + col;
    if constexpr (Mode == kTap) {
      const Step s = ahead;
      ahead = rt::ld_const(steps + (k_tile < last ? k_tile + 1 : k_tile));
      const int channels = s.depth >> 16;
      const bool ok = within(d + (s.depth & 0xffff), h + s.height, w + s.width);
      const float* src = base + place(r0, win.step_c, s.offset);
      RK_UNROLL(4)
      for (int i = 0; i < BK / kRowsAtOnce; ++i) {
        put1<Pro>(dst, src, ok && r0 + i * kRowsAtOnce < channels, pro);
        dst += kRowsAtOnce * BN;
        src += kRowsAtOnce * win.step_c;
      }
    } else {
      constexpr int kBatch = BK / kRowsAtOnce < 4 ? BK / kRowsAtOnce : 4;
      RK_UNROLL(1)
      for (int i = 0; i < BK / kRowsAtOnce; i += kBatch) {
        Step s[kBatch];
        RT_UNROLL
        for (int b = 0; b < kBatch; ++b) s[b] = rt::ld_const(steps + k_tile * BK + r0 + (i + b) * kRowsAtOnce);
        RT_UNROLL
        for (int b = 0; b < kBatch; ++b) {
          bool ok;
          const float* src = base + s[b].offset;
          if constexpr (Mode == kTable) {
            ok = within(d + s[b].depth, h + s[b].height, w + s[b].width);
          } else {
            int id = d - s[b].depth, ih = h - s[b].height, iw = w - s[b].width;
            ok = id >= 0 && ih >= 0 && iw >= 0;
            const int rest = take_digit(id, win.stride_d) | take_digit(ih, win.stride_h) | take_digit(iw, win.stride_w);
            ok = ok && rest == 0 && within(id, ih, iw);
            src += place(id, win.step_d, place(ih, win.step_h, place(iw, win.step_w)));
          }
          put1<Pro>(dst + (i + b) * kRowsAtOnce * BN, src, ok, pro);
        }
      }
    }
  }
};

}  // namespace rk
