// conv_strip's convolution by two warp groups that take turns at tiles (common/wgmma_turns.cuh): an rTask has several
// tiles of 128 positions by BN output channels, and the copy engine brings what the filter meets and the filter's part
// of each stage.
#pragma once

#include "common/wgmma_turns.cuh"
#include "rt/device/div.cuh"

namespace rk {

template <int BN, int ST, int Products, class E, class Epi>
struct ConvTurns {
  static_assert(Products == 1);
  using T = TurnTile<E, BN, ST>;
  static constexpr int kThreads = T::kThreads + 32 * T::kSenders;
  static constexpr int kShared = T::kShared;
  static constexpr bool kEarly = true;  // the filter comes before the inputs

  struct Args {
    rt::TiledMatrix x, w;
    rt::Operand3 out;  // [1][position][channel]
    int32_t out_channels, positions;
    int32_t tiles_m, tiles_n, tall, wide;  // tiles, and how many of them an rTask has below and beside each other
    Div columns;                           // of rTasks, beside each other
    Div out_w, out_h;
    rt::FilterTaps taps;
    int32_t tiles_k;
    typename Epi::Args epi;
  };

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    compute_turns<T, Epi, Rows>(t, a, a.w, a.positions, a.out_channels, rtask);
  }

 private:
  // Sends for what the filter meets of the tiles' positions.
  class Rows {
    using Walk = rt::ImageWalk<T::BM>;

   public:
    static constexpr bool kConstant = false;
    RT_DEVICE Rows(const rt::Task& t, const Args& a, int m, int wide)
        : a_(a), walk_(t, a.x, a.taps, T::kSlice), m_(m), wide_(wide) {
      turn();
    }
    RT_DEVICE void prefetch() const { walk_.prefetch(); }
    RT_DEVICE uint32_t fill(char* stage, uint64_t* full, int) const { return walk_.fill(stage, full); }
    RT_DEVICE void next() {
      if (--left_ > 0) return walk_.next();
      if (++column_ == wide_) column_ = 0, ++m_;
      turn();
    }

   private:
    RT_DEVICE void turn() {
      int image = m_ * T::BM;
      const uint32_t x = static_cast<uint32_t>(take_digit(image, a_.out_w));
      const uint32_t y = static_cast<uint32_t>(take_digit(image, a_.out_h));
      walk_.begin({a_.x.first_x + x * a_.x.stride_x, a_.x.first_y + y * a_.x.stride_y, static_cast<uint32_t>(image)});
      left_ = a_.tiles_k;
    }

    const Args& a_;
    Walk walk_;
    int m_, wide_, column_ = 0, left_ = 0;
  };
};

}  // namespace rk
