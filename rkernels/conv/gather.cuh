// The data operand of an implicit GEMM: B[k][p] is the input element that output position p meets under
// filter element k. Where that is, a packed table of Steps says.
#pragma once

#include "common/loaders.cuh"
#include "common/modes.cuh"
#include "common/tile.cuh"
#include "rt/device/device.cuh"

namespace rk {

// What a row of B adds to the position of p: elements to the address, and coordinates to the input's
// (depth, height, width). Under kGatherTap a Step holds for a whole k tile, whose rows are input channels;
// the number of those that exist stands in the upper half of depth.
struct alignas(16) Step {
  int32_t offset;
  int32_t depth, height, width;
};

// Geometry shared by all positions. For transposed convolutions an output coordinate o meets input
// (o + pad - step)/stride where that division has no remainder.
struct Window {
  int32_t in_d, in_h, in_w;
  Div out_h, out_w;  // p = (d·out_h + h)·out_w + w
  Div stride_d, stride_h, stride_w;
  int32_t pad_d, pad_h, pad_w;
  int64_t step_n, step_c, step_d, step_h, step_w;  // element strides of the input
};

// Every call of issue takes the next k tile. What a thread needs it keeps, since arguments are read again
// after every copy. RANK is 3, or 2 where input, output and filter are one deep and nothing is padded there.
// In a stage, LDK elements of Dst lie from one k to the next and LDP from one position to the next: either is 1. MOST
// is how many copies are in a turn of a loop.
template <int Threads, int BK, int BN, int LDK, int LDP, int Mode, int RANK, int MOST, class Pro, class Src = float,
          class Dst = Src>
struct GatherLoader {
  const Src* base;    // of the image and group; under transposition of coordinate 0, else of p's window
  const Step* steps;  // of the next k tile, from the thread's first row on
  const Window& win;
  int d, h, w;           // of the window's first element; under transposition o + pad
  int in_d, in_h, in_w;  // the input's extents; none if p does not exist
  int to;                // the thread's first element in a stage
  int row;               // under kGatherTap: from a row to the next
  Step coming;           // under kGatherTap: that of the next k tile, on its way while this one is multiplied
  const typename Pro::Args& pro;
  const Padding<Src> padding;

  static constexpr bool kConstant = false;
  using Copy = Transfer<Src, Dst, 1, Pro>;
  static constexpr int kRowsAtOnce = Threads / BN;
  static constexpr int kBatch = BK / kRowsAtOnce < MOST ? BK / kRowsAtOnce : MOST;
  static_assert(Threads % BN == 0 && BK % kRowsAtOnce == 0, "threads cover whole rows of the stage");
  static_assert(Mode != kGatherTap || LDP == 1, "the thread's first k is found from its first element");

  RT_DEVICE GatherLoader(const rt::Task& t, const Src* image, const Step* s, const Window& v, int p, int positions,
                         const typename Pro::Args& prologue, Padding<Src> outside = {})
      : base(image),
        steps(s),
        win(v),
        in_d(v.in_d),
        in_h(v.in_h),
        in_w(p < positions ? v.in_w : 0),
        to(t.tid / BN * LDK + t.tid % BN * LDP),
        row(0),
        pro(prologue),
        padding(outside) {
    const int r0 = t.tid / BN;
    h = p;
    w = take_digit(h, v.out_w);
    d = 0;
    if constexpr (RANK == 3) {
      d = h;
      h = take_digit(d, v.out_h);
    }
    if constexpr (Mode == kGatherTransposed) {
      if constexpr (RANK == 3) d += v.pad_d;
      h += v.pad_h, w += v.pad_w;
    } else {
      if constexpr (RANK == 3) d = d * static_cast<int>(v.stride_d.d) - v.pad_d;
      h = h * static_cast<int>(v.stride_h.d) - v.pad_h;
      w = w * static_cast<int>(v.stride_w.d) - v.pad_w;
      // Offsets within an image fit 32 bits.
      int offset = h * static_cast<int>(v.step_h) + w * static_cast<int>(v.step_w);
      if constexpr (RANK == 3) offset += d * static_cast<int>(v.step_d);
      if (Mode == kGatherTap) offset += r0 * static_cast<int>(v.step_c);
      base = ahead(base, 1, offset);
    }
    if constexpr (Mode == kGatherTap) {
      row = static_cast<int>(v.step_c);
      coming = rt::ld_const(steps);
    } else {
      steps += r0;
    }
  }

  // Without branches, which would cost more than what they save.
  RT_DEVICE bool within(int id, int ih, int iw) const {
    return (RANK == 2 || static_cast<unsigned>(id) < static_cast<unsigned>(in_d)) &
           (static_cast<unsigned>(ih) < static_cast<unsigned>(in_h)) &
           (static_cast<unsigned>(iw) < static_cast<unsigned>(in_w));
  }

  // The element that p meets under a filter element of the table, if it exists.
  RT_DEVICE const Src* meet(const Step& s, bool& ok) const {
    const Src* src = ahead(base, 1, s.offset);
    if constexpr (Mode == kGatherTable) {
      ok = within(d + s.depth, h + s.height, w + s.width);
    } else {
      int id = d - s.depth, ih = h - s.height, iw = w - s.width;
      ok = id >= 0 && ih >= 0 && iw >= 0;
      id = ok ? id : 0, ih = ok ? ih : 0, iw = ok ? iw : 0;  // take_digit knows no digits of negative numbers
      int rest = take_digit(ih, win.stride_h) | take_digit(iw, win.stride_w);
      if constexpr (RANK == 3) rest |= take_digit(id, win.stride_d);
      ok = ok && rest == 0 && within(id, ih, iw);
      src += place(ih, win.step_h, place(iw, win.step_w));
      if constexpr (RANK == 3) src += place(id, win.step_d);
    }
    return src;
  }

  RT_DEVICE void issue(Dst* stage) {
    Dst* dst = stage + to;
    if constexpr (Mode == kGatherTap) {
      const Step s = coming;
      const int channels = within(d + (s.depth & 0xffff), h + s.height, w + s.width) ? s.depth >> 16 : 0;
      int mine = channels - to / LDK;
      const Src* src = ahead(base, 1, s.offset);
      RK_UNROLL(1)
      for (int i = 0; i < BK / kRowsAtOnce; i += kBatch) {
        Copy copies[kBatch];
        const Src* from = src;
        RT_UNROLL
        for (int b = 0; b < kBatch; ++b) {
          copies[b].take(from, b * kRowsAtOnce < mine);
          from = ahead(from, kRowsAtOnce, row);
        }
        RT_UNROLL
        for (int b = 0; b < kBatch; ++b) {
          copies[b].put(dst + b * kRowsAtOnce * LDK, src, b * kRowsAtOnce < mine, pro);
          src = ahead(src, kRowsAtOnce, row);
        }
        dst += kBatch * kRowsAtOnce * LDK;
        mine -= kBatch * kRowsAtOnce;
      }
      coming = rt::ld_const(++steps);  // behind the last one there is another
    } else {
      const Step* step = steps;
      RK_UNROLL(1)
      for (int i = 0; i < BK / kRowsAtOnce; i += kBatch) {
        Step s[kBatch];
        RT_UNROLL
        for (int b = 0; b < kBatch; ++b) s[b] = rt::ld_const(step + b * kRowsAtOnce);
        Copy copies[kBatch];
        const Src* from[kBatch];
        bool ok[kBatch];
        RT_UNROLL
        for (int b = 0; b < kBatch; ++b) {
          from[b] = meet(s[b], ok[b]);
          copies[b].take(from[b], ok[b]);
        }
        RT_UNROLL
        for (int b = 0; b < kBatch; ++b) {
          put_padded(copies[b], dst + b * kRowsAtOnce * LDK, from[b], ok[b], pro, padding);
        }
        step += kBatch * kRowsAtOnce;
        dst += kBatch * kRowsAtOnce * LDK;
      }
      steps += BK;
    }
  }
};

}  // namespace rk
