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

// Where a value of k leads to in the image: in rows, columns and elements from the first one of a position's window.
// The input has no rows for it behind the last value of k.
struct Tap {
  int down, along, place;
  unsigned in_h, in_w;
};

// The values of k of a thread, Step apart, found by dividing: this needs few registers.
class DividedTaps {
 public:
  RT_DEVICE DividedTaps(const Window& v, const Runs& r, int k) : win_(v), runs_(r), k_(k) {}

  RT_DEVICE Tap here() const {
    int row = k_;
    const int channel = take_digit(row, runs_.channels), column = take_digit(row, runs_.filter_w);
    const int down = row * runs_.dilation_h, along = column * runs_.dilation_w;
    const int place = down * static_cast<int>(win_.step_h) + along * static_cast<int>(win_.step_w) + channel;
    return {down, along, place, static_cast<unsigned>(k_ < runs_.depth ? win_.in_h : 0),
            static_cast<unsigned>(win_.in_w)};
  }
  template <int Step>
  RT_DEVICE void go() {
    k_ += Step;
  }

 private:
  const Window& win_;
  const Runs& runs_;
  int k_;
};

// The same in turn, from tap to tap, where a step leads to the next tap at most. What that needs is in registers;
// compilers would read arguments again each time.
class WalkedTaps {
 public:
  RT_DEVICE WalkedTaps(const Window& v, const Runs& r, int k)
      : win_(v),
        runs_(r),
        left_(r.depth - k),
        channels_(static_cast<int>(r.channels.d)),
        taps_(static_cast<int>(r.filter_w.d)),
        dilation_h_(r.dilation_h),
        dilation_w_(r.dilation_w),
        tap_step_(dilation_w_ * static_cast<int>(v.step_w) - channels_),
        row_step_(dilation_h_ * static_cast<int>(v.step_h) - taps_ * dilation_w_ * static_cast<int>(v.step_w)),
        in_h_(v.in_h),
        in_w_(v.in_w) {
    find(k);
  }

  RT_DEVICE Tap here() const { return {down_, along_, place_, left_ > 0 ? in_h_ : 0, in_w_}; }
  template <int Step>
  RT_DEVICE void go() {
    left_ -= Step, channel_ += Step, place_ += Step;
    if (channel_ < channels_) return;
    if (Step > channels_) {
      find(runs_.depth - left_);
    } else {
      channel_ -= channels_, place_ += tap_step_, along_ += dilation_w_;
      if (--taps_left_ == 0) taps_left_ = taps_, place_ += row_step_, down_ += dilation_h_, along_ = 0;
    }
  }

 private:
  // Goes to a value of k by dividing.
  RT_DEVICE void find(int k) {
    channel_ = take_digit(k, runs_.channels);
    const int column = take_digit(k, runs_.filter_w);
    taps_left_ = taps_ - column;
    down_ = k * dilation_h_, along_ = column * dilation_w_;
    place_ = down_ * static_cast<int>(win_.step_h) + along_ * static_cast<int>(win_.step_w) + channel_;
  }

  const Window& win_;
  const Runs& runs_;
  int left_;  // how many values of k there are from the next one on
  int channels_, taps_, dilation_h_, dilation_w_;
  int tap_step_, row_step_;  // from behind a tap's channels to the next tap, from behind a filter row to the next one
  unsigned in_h_, in_w_;
  int channel_, taps_left_;  // of the next value of k; how many taps its filter row has from its own on
  int down_, along_, place_;
};

// Brings COLS values of k for ROWS positions to [position][k] of a stage with LD elements a row, and goes on by STEP
// values of k. Lanes lie along k, so that a warp brings whole lines of 128 bytes. A thread brings the same k of several
// positions, of which it keeps the place in the input. Swizzled is as in StridedLoader.
template <int Threads, int ROWS, int COLS, int STEP, int LD, int RANK, class Taps, class Pro, class Src = float,
          class Dst = Src, bool Swizzled = false>
struct RunLoader {
  static constexpr bool kConstant = false;
  static constexpr int kVec = kPerLoad<Src>;
  static constexpr int kAcross = COLS / kVec, kStep = Threads / kAcross, kCopies = ROWS / kStep;
  static_assert(Threads % kAcross == 0 && ROWS % kStep == 0, "threads cover whole rows of the stage");
  static_assert(!Swizzled || kStep % 8 == 0, "a thread's runs are at the same place of each row");

  const Src* base;                             // of the image and group
  int offset[kCopies];                         // of the first element of a position's window
  int16_t first_h[kCopies], first_w[kCopies];  // its coordinates
  Taps taps;
  int to;  // where the thread's values of k are in a stage
  const typename Pro::Args& pro;
  const Padding<Src> padding;

  RT_DEVICE RunLoader(const Src* image, const Window& v, const Runs& r, int p0, int positions, int k0, int tid,
                      const typename Pro::Args& prologue, Padding<Src> outside = {})
      : base(image),
        taps(v, r, k0 + tid % kAcross * kVec),
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
    const Tap tap = taps.here();
    const Src* from = ahead(base, 1, tap.place);
    Transfer<Src, Dst, kVec, Pro> copies[kCopies];
    const Src* source[kCopies];
    bool ok[kCopies];
    RT_UNROLL
    for (int i = 0; i < kCopies; ++i) {
      ok[i] = static_cast<unsigned>(first_h[i] + tap.down) < tap.in_h &
              static_cast<unsigned>(first_w[i] + tap.along) < tap.in_w;
      source[i] = ahead(from, 1, offset[i]);
      copies[i].take(source[i], ok[i]);
    }
    RT_UNROLL
    for (int i = 0; i < kCopies; ++i) {
      put_padded(copies[i], stage + to + i * kStep * LD, source[i], ok[i], pro, padding);
    }
    taps.template go<STEP>();
  }

 private:
  static constexpr int kNowhere = -32768;  // a row of the input that no step of a filter leads back from
};

}  // namespace rk
