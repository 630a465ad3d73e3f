// out[position][channel] = epilogue(Σ_k X[position][k] · W[k][channel]) in tf32 or 16 bits, summed in float32, or of
// integers of 8 bits, summed in int32, for channels-last images and a constant filter, by warp groups whose operands
// the copy engine brings (common/wgmma_boxes.cuh). What the filter meets of the images is boxes of BM positions by 128
// bytes of a tap's channels, and zeros outside. It is gemm_strip's tile, one for an rTask.
#pragma once

#include "common/wgmma_boxes.cuh"
#include "rt/device/div.cuh"

namespace rk {

// With splits > 1 each rTask adds up a part of k only, and i0 is the split. Groups that share k (KG) take one box of
// the same positions each.
template <int BM, int BN, int KG, int ST, int Products, class X, class E, class Epi>
struct ConvStrip {
  static_assert(Products == 1);
  using T = RingTile<GroupTile<X, E, BM, BN, KG, ST, 1, true>>;
  static constexpr int kThreads = T::kThreads + 32 * T::kSenders;
  static constexpr int kShared = T::kShared;
  static constexpr bool kEarly = true;  // the filter comes before the inputs

  struct Args {
    rt::TiledMatrix x, w;
    rt::Operand3 out;  // [split][position][channel]
    int32_t out_channels, positions;
    Div tiles_m, tiles_n;
    Div out_w, out_h;
    rt::FilterTaps taps;
    int32_t boxes;             // of what the filter meets, those of all taps
    int32_t tiles_k, split_k;  // stages of the whole sum and of one split
    typename Epi::Args epi;
  };

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    int split = rtask;
    const int m0 = take_digit(split, a.tiles_m) * BM, n = take_digit(split, a.tiles_n);
    const int kt0 = split * a.split_k;
    const int stages = a.tiles_k - kt0 < a.split_k ? a.tiles_k - kt0 : a.split_k;
    const int sender = rt::settled(t.tid / 32) - T::kThreads / 32;
    open_boxes<T>(t, sender, T::kThreads / 32);
    if (sender == 0) return send_boxes<typename T::Rings>(t, T::first(t), Rows(t, a, m0, kt0 * KG), stages);
    if (sender == 1) {
      const int row = (n * a.tiles_k + kt0) * T::kRowsB;
      return send_boxes<typename T::Rings>(t, T::first(t), typename T::Columns(t, a.w, row, row + stages * T::kRowsB),
                                           stages);
    }
    t.wait_for_inputs();
    BoxGroup<T> group(t);
    // No more tiles follow, and there are never more stages than a split has. Where the compiler knows that, and sums
    // are only rounded, ptxas has the products wait for each other: it moves reads of the sums among them.
    const bool more = Epi::kLength == 0 && stages > a.split_k;
    multiply_and_store<T, Epi>(t, a.out, a.epi, {split, m0, n * BN, a.positions, a.out_channels},
                               [&](typename T::Acc& acc) { group.run(stages, a.boxes - kt0 * KG, more, acc); });
  }

 private:
  // Sends for what the filter meets of a tile's positions, from a box on.
  class Rows {
    using Walk = rt::ImageWalk<BM>;

   public:
    static constexpr bool kConstant = false;
    RT_DEVICE Rows(const rt::Task& t, const Args& a, int m0, int first)
        : walk_(t, a.x, a.taps, T::kSlice), left_(a.boxes - first) {
      int image = m0;
      const uint32_t x = static_cast<uint32_t>(take_digit(image, a.out_w));
      const uint32_t y = static_cast<uint32_t>(take_digit(image, a.out_h));
      walk_.begin({a.x.first_x + x * a.x.stride_x, a.x.first_y + y * a.x.stride_y, static_cast<uint32_t>(image)});
      if (first > 0) walk_.skip(static_cast<uint32_t>(first));
    }
    RT_DEVICE void prefetch() const { walk_.prefetch(); }
    // Groups that share k have a box each, but for the last stage, where there may be fewer.
    RT_DEVICE uint32_t fill(char* stage, uint64_t* full, int) {
      uint32_t bytes = 0;
      RT_UNROLL
      for (int b = 0; b < KG; ++b) {
        if (b > 0 && b >= left_) break;
        bytes += walk_.fill(stage + b * 128 * BM, full);
        walk_.next();
      }
      return bytes;
    }
    RT_DEVICE void next() { left_ -= KG; }

   private:
    Walk walk_;
    int left_;
  };
};

}  // namespace rk
