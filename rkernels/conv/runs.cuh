// The data operand of an implicit GEMM over images whose channels lie beside each other: A[p][k] is the input element
// that output position p meets under k = (filter row, filter column, channel), the channel running fastest.
// Values of k beside each other that have 16 bytes are one copy, since they are channels of one place of the input.
#pragma once

#include "common/loaders.cuh"
#include "conv/gather.cuh"
#include "rt/device/device.cuh"

namespace rk {

// How k is made of filter rows, filter columns and channels. `channels`, those of a group, is a multiple of a copy's.
struct Runs {
  Div channels, filter_w;
  int32_t dilation_h, dilation_w;
  int32_t depth;  // values of k
};

// Brings COLS values of k for ROWS positions to [position][k] of a stage with LD elements a row, and goes on by STEP
// values of k. Lanes lie along k, so that a warp brings whole lines of 128 bytes. A thread brings the same k of several
// positions, of which it keeps the place in the input. Swizzled is as in StridedLoader.
template <int Threads, int ROWS, int COLS, int STEP, int LD, int RANK, class Pro, class Src = float, class Dst = Src,
          bool Swizzled = false>
struct RunLoader {
  static constexpr bool kConstant = false;
  static constexpr int kVec = kPerLoad<Src>;
  static constexpr int kAcross = COLS / kVec, kStep = Threads / kAcross, kCopies = ROWS / kStep;
  static_assert(Threads % kAcross == 0 && ROWS % kStep == 0, "threads cover whole rows of the stage");
  static_assert(!Swizzled || kStep % 8 == 0, "a thread's runs are at the same place of each row");

  const Src* base;  // of the image and group
  const Window& win;
  const Runs& runs;
  int offset[kCopies];                         // of the first element of a position's window
  int16_t first_h[kCopies], first_w[kCopies];  // its coordinates
  int k;                                       // the thread's next one
  int to;                                      // where that is in a stage
  const typename Pro::Args& pro;
  const Padding<Src> padding;

  RT_DEVICE RunLoader(const Src* image, const Window& v, const Runs& r, int p0, int positions, int k0, int tid,
                      const typename Pro::Args& prologue, Padding<Src> outside = {})
      : base(image),
        win(v),
        runs(r),
        k(k0 + tid % kAcross * kVec),
        to(tid / kAcross * LD + (tid % kAcross * kVec ^ (Swizzled ? tid / kAcross % 8 * kPerLoad<Dst> : 0))),
        pro(prologue),
        padding(outside) {
    RT_UNROLL
    for (int i = 0; i < kCopies; ++i) {
      const int p = p0 + tid / kAcross + i * kStep;
      int h = p;
      int w = take_digit(h, v.out_w);
      offset[i] = 0;
      if constexpr (RANK == 3) {
        int d = h;
        h = take_digit(d, v.out_h);
        offset[i] = d * static_cast<int>(v.step_d);
      }
      h = h * static_cast<int>(v.stride_h.d) - v.pad_h;
      w = w * static_cast<int>(v.stride_w.d) - v.pad_w;
      offset[i] += h * static_cast<int>(v.step_h) + w * static_cast<int>(v.step_w);
      first_h[i] = static_cast<int16_t>(p < positions ? h : kNowhere);
      first_w[i] = static_cast<int16_t>(w);
    }
  }

  RT_DEVICE void issue(Dst* stage) {
    int tap = k;
    const int channel = take_digit(tap, runs.channels);
    const int column = take_digit(tap, runs.filter_w);
    const int down = tap * runs.dilation_h, along = column * runs.dilation_w;
    const Src* from =
        ahead(base, 1, down * static_cast<int>(win.step_h) + along * static_cast<int>(win.step_w) + channel);
    const unsigned height = k < runs.depth ? win.in_h : 0, width = win.in_w;
    Transfer<Src, Dst, kVec, Pro> copies[kCopies];
    const Src* source[kCopies];
    bool ok[kCopies];
    RT_UNROLL
    for (int i = 0; i < kCopies; ++i) {
      ok[i] = static_cast<unsigned>(first_h[i] + down) < height & static_cast<unsigned>(first_w[i] + along) < width;
      source[i] = ahead(from, 1, offset[i]);
      copies[i].take(source[i], ok[i]);
    }
    RT_UNROLL
    for (int i = 0; i < kCopies; ++i) {
      put_padded(copies[i], stage + to + i * kStep * LD, source[i], ok[i], pro, padding);
    }
    k += STEP;
  }

 private:
  static constexpr int kNowhere = -32768;  // a row of the input that no step of a filter leads back from
};

}  // namespace rk
