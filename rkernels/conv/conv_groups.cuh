// Convolution in groups of few channels on tensor cores, over channels-last images. An rTask computes some rows of the
// output for some groups whose channels lie beside each other. What it reads of the image, its patch, and all its
// weights are brought to shared memory at once, and windows.cuh multiplies them. Each warp has the output channels of
// one group. Its left operand is the windows of that group's channels, so that nothing is multiplied by the zeros
// between groups:
//
//	a pixel of the patch     group 0 │ group 1 │ group 2 │ group 3 │ a unit that is not used
//	columns of the tile      warp 0  │ warp 1  │ warp 2  │ warp 3
//
// Groups that are narrower than a unit, or than the eight columns of a fragment, have been joined: what is a group here
// is then several of them, and weights from one to the other are zero. k is (filter row, filter column, channel).
#pragma once

#include "common/loaders.cuh"
#include "conv/gather.cuh"
#include "conv/windows.cuh"
#include "rt/device/device.cuh"

namespace rk {

// An rTask has BN output channels, of groups of WN. ROOM is its bytes of shared memory. X is the element type of the
// image, E what is multiplied and what weights are packed as.
template <int BM, int BN, int WM, int WN, int Products, int ROOM, class X, class E, class Epi, class Pro>
struct ConvGroups {
  using T = TensorTile<E, X, E, BM, BN, 32, WM, WN, 1, 1, false, true, false, false, Products>;
  using Product = Windows<T, Products, E>;
  using Unit = typename Product::Unit;
  using Operands = typename Product::Operands;
  static constexpr int kUnit = Product::kUnit;
  static constexpr int kThreads = T::kThreads;
  static constexpr int kShared = ROOM;
  static constexpr bool kEarly = true;

  struct Args {
    rt::Ref x, w, scale;   // scale is that of the weights' parts, where there are three products
    rt::Operand3 out;      // [image][position][channel], or all images as one
    int32_t out_channels;  // of all groups, as are those of the input
    int32_t in_channels;
    Div tiles_r, tiles_n;     // tiles of rows and of output channels
    int32_t rows;             // rows of the output, of an rTask
    int32_t image_positions;  // of an image, where all images are one; else 0
    int32_t patch_rows;
    Div patch_columns;
    Div channels;         // of the input, that an rTask reads, in copies of kCopy
    Div group_units;      // units of a pixel that a group has
    int32_t pixel_units;  // units from one pixel of the patch to the next
    Div filter_w;
    int32_t dilation_h, dilation_w;
    int32_t units;        // of a group's filter
    Div depth;            // units of a packed line of weights: as many and, behind them, those that fill a fragment
    int32_t patch, sums;  // where the patch and the sums of a tile begin in shared memory
    Window win;
    typename Epi::Args epi;
    typename Pro::Args pro;
  };

  // rTasks count (image, tile of rows, tile of output channels), the last one fastest: neighbours read the same pixels.
  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    int image = rtask;
    const int nt = take_digit(image, a.tiles_n), r0 = take_digit(image, a.tiles_r) * a.rows;
    const int n0 = nt * BN, c0 = nt * static_cast<int>(a.channels.d) * kCopy;
    const Operands in(t, static_cast<int>(a.depth.d), a.patch);
    Product::bring_weights(t, a.w, a.depth, n0, in);
    find_offsets(t, a, in);
    const ConstantScale<T> scale(t, a.scale);
    const Patch patch(t, a, image, r0, c0, in);
    patch.bring(t, a.pro);  // waits for the inputs, too
    t.sync();
    const int columns = static_cast<int>(a.win.out_w.d), left = static_cast<int>(a.win.out_h.d) - r0;
    const int count = (left < a.rows ? left : a.rows) * columns;
    const int i0 = a.image_positions > 0 ? 0 : image, p0 = image * a.image_positions + r0 * columns;
    const auto rows = [&](const typename T::At& at, int m0) {
      const Unit* first = in.patch + at.n / WN * static_cast<int>(a.group_units.d);
      return typename Product::Rows(in, at, [&](int m) { return window(a, first, m0 + m, count); });
    };
    Product::template compute<Epi>(t, in, scale, count, a.sums, a.out, a.epi, {i0, p0, n0, p0 + count, a.out_channels},
                                   rows);
  }

 private:
  // The image is copied so many channels at a time.
  using Copy = Transfer<X, E, kPerLoad<X>, Pro>;
  static constexpr int kCopy = kPerLoad<X>;
  // Whether what has been copied as it was in memory must be rounded.
  static constexpr bool kRounds = std::is_same_v<E, float> && Products == 1;

  // Units behind the filter have an offset below zero, which stands for the unit of zeros.
  static RT_DEVICE void find_offsets(const rt::Task& t, const Args& a, const Operands& in) {
    const int down = a.dilation_h * static_cast<int>(a.patch_columns.d) * a.pixel_units;
    for (int u = t.tid; u < in.depth; u += kThreads) {
      int row = u;
      const int unit = take_digit(row, a.group_units), column = take_digit(row, a.filter_w);
      in.offsets[u] = u < a.units ? row * down + column * a.dilation_w * a.pixel_units + unit : -1;
    }
    if (t.tid == 0) *in.zeros = Unit{};
  }

  // What the rTask reads of the image, from channel c0 on. The numbers are in registers: with each copy the compiler
  // takes the arguments for changed, and would read them again.
  class Patch {
   public:
    RT_DEVICE Patch(const rt::Task& t, const Args& a, int image, int r0, int c0, const Operands& in)
        : across_(a.channels),
          columns_(a.patch_columns),
          image_(rt::settled_place(t.template ptr<const X>(a.x) + place(image, a.win.step_n, c0))),
          h0_(r0 * static_cast<int>(a.win.stride_h.d) - a.win.pad_h),
          pad_w_(a.win.pad_w),
          in_h_(a.win.in_h),
          in_w_(a.win.in_w),
          step_h_(static_cast<int>(a.win.step_h)),
          step_w_(static_cast<int>(a.win.step_w)),
          channels_(a.in_channels - c0),
          count_(a.patch_rows * static_cast<int>(a.patch_columns.d * a.channels.d)),
          pixel_(a.pixel_units * kUnit),
          patch_(reinterpret_cast<E*>(in.patch)) {}

    // Waits for the rTask's inputs, and brings as many channels of each pixel as it reads. What is outside of the image
    // is zero. Each thread has what it has copied when this returns.
    RT_DEVICE void bring(const rt::Task& t, const typename Pro::Args& pro) const {
      constexpr int kBatch = 4;  // copies whose places are found together, since that is a chain of operations
      bool first = true;
      RK_UNROLL(1)
      for (int e = t.tid; first || e < count_; e += kBatch * kThreads, first = false) {
        Copy copies[kBatch];
        const X* from[kBatch];
        int to[kBatch];
        bool ok[kBatch];
        RT_UNROLL
        for (int b = 0; b < kBatch; ++b) {
          int h = e + b * kThreads;
          const bool exists = h < count_;
          const int channel = take_digit(h, across_) * kCopy;
          to[b] = exists ? h * pixel_ + channel : -1;
          const int w = take_digit(h, columns_) - pad_w_;
          h += h0_;
          ok[b] = static_cast<unsigned>(h) < in_h_ & static_cast<unsigned>(w) < in_w_ & channel < channels_ & exists;
          from[b] = rt::settled_place(image_ + place(h, step_h_, place(w, step_w_, channel)));
        }
        if (first) t.wait_for_inputs();
        RT_UNROLL
        for (int b = 0; b < kBatch; ++b) copies[b].take(from[b], ok[b]);
        RT_UNROLL
        for (int b = 0; b < kBatch; ++b) {
          if (to[b] >= 0) copies[b].put(patch_ + to[b], from[b], ok[b], pro);
        }
      }
      rt::cp_async_commit();
      rt::cp_async_wait<0>();
      if constexpr (kRounds) round(t);
    }

   private:
    RT_DEVICE void round(const rt::Task& t) const {
      RK_UNROLL(2)
      for (int e = t.tid; e < count_; e += kThreads) {
        int place_in_patch = e;
        const int channel = take_digit(place_in_patch, across_) * kCopy;
        auto* copied = reinterpret_cast<Pack<E, kCopy>*>(patch_ + place_in_patch * pixel_ + channel);
        Pack<E, kCopy> values = *copied;
        RT_UNROLL
        for (int i = 0; i < kCopy; ++i) values.v[i] = Product::multiplied(values.v[i]);
        *copied = values;
      }
    }

    Div across_, columns_;
    const X* image_;
    int h0_, pad_w_;
    unsigned in_h_, in_w_;
    int step_h_, step_w_, channels_, count_, pixel_;
    E* patch_;
  };

  // The first unit of the window of position m of the rTask, for the group whose units begin at `first`. Positions that
  // do not exist are multiplied for nothing.
  static RT_DEVICE const Unit* window(const Args& a, const Unit* first, int m, int count) {
    int row = m < count ? m : 0;
    const int column = take_digit(row, a.win.out_w);
    return first + (row * static_cast<int>(a.win.stride_h.d) * static_cast<int>(a.patch_columns.d) +
                    column * static_cast<int>(a.win.stride_w.d)) *
                       a.pixel_units;
  }
};

}  // namespace rk
