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
  int32_t stride_d, stride_h, stride_w;
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
  const typename Pro::Args& pro;

  static constexpr int kRowsAtOnce = Threads / BN;
  static_assert(Threads % BN == 0 && BK % kRowsAtOnce == 0, "threads cover whole rows of the stage");

  RT_DEVICE GatherLoader(const rt::Task& t, const float* image, const Step* s, const Window& v, int p, int positions,
                         const typename Pro::Args& prologue)
      : base(image), steps(s), win(v), inside(p < positions), tid(t.tid), pro(prologue) {
    d = p;
    w = take_digit(d, v.out_w);
    h = take_digit(d, v.out_h);
    if constexpr (Mode == kTransposed) {
      d += v.pad_d, h += v.pad_h, w += v.pad_w;
    } else {
      d = d * v.stride_d - v.pad_d, h = h * v.stride_h - v.pad_h, w = w * v.stride_w - v.pad_w;
      base += d * v.step_d + h * v.step_h + w * v.step_w;
    }
  }

  RT_DEVICE bool within(int id, int ih, int iw) const {
    return inside && static_cast<unsigned>(id) < static_cast<unsigned>(win.in_d) &&
           static_cast<unsigned>(ih) < static_cast<unsigned>(win.in_h) &&
           static_cast<unsigned>(iw) < static_cast<unsigned>(win.in_w);
  }

  static RT_DEVICE Step step_at(const Step* s) { return rt::ld_const(s); }

  RT_DEVICE void issue(float* stage, int k_tile) const {
    const int col = tid % BN, r0 = tid / BN;
    float* dst = stage + r0 * BN + col;
    if constexpr (Mode == kTap) {
      const Step s = step_at(steps + k_tile);
      const int channels = s.depth >> 16;
      const bool ok = within(d + (s.depth & 0xffff), h + s.height, w + s.width);
      const float* src = base + s.offset + r0 * win.step_c;
      RK_UNROLL(4)
      for (int i = 0; i < BK / kRowsAtOnce; ++i) {
        put1<Pro>(dst, src, ok && r0 + i * kRowsAtOnce < channels, pro);
        dst += kRowsAtOnce * BN;
        src += kRowsAtOnce * win.step_c;
      }
    } else {
      RK_UNROLL(4)
      for (int i = 0; i < BK / kRowsAtOnce; ++i) {
        const Step s = step_at(steps + k_tile * BK + r0 + i * kRowsAtOnce);
        bool ok;
        const float* src = base + s.offset;
        if constexpr (Mode == kTable) {
          ok = within(d + s.depth, h + s.height, w + s.width);
        } else {
          const int vd = d - s.depth, vh = h - s.height, vw = w - s.width;
          const int id = vd / win.stride_d, ih = vh / win.stride_h, iw = vw / win.stride_w;
          ok = vd >= 0 && vh >= 0 && vw >= 0 && id * win.stride_d == vd && ih * win.stride_h == vh &&
               iw * win.stride_w == vw && within(id, ih, iw);
          src += id * win.step_d + ih * win.step_h + iw * win.step_w;
        }
        put1<Pro>(dst + i * kRowsAtOnce * BN, src, ok, pro);
      }
    }
  }
};

}  // namespace rk
