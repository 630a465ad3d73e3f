// Depthwise convolution of channels-last images, as conv_depthwise_patch.cuh, whose rTasks walk down the image. Each has
// several patches below each other, its steps. While it computes one, the rows of the next kAhead are on their way to
// a ring of rows in shared memory, in which the rows that two steps share lie once:
//
//	rows of the ring         0 1 2 3 4 5 6 7        a filter of 3 rows, steps of 2 rows, stride 1
//	read by step 0           0 1 2 3
//	read by step 1               2 3 4 5
//	on their way meanwhile               6 7, then 0 1
#pragma once

#include "conv/conv_depthwise_patch.cuh"

namespace rk {

// The parameters are those of ConvDepthwisePatch.
template <int FW, int STRIDE, int RW, int RH, int QUADS, int LOAD, int ROOM, class X, class W, class Epi, class Pro>
struct ConvDepthwiseStrip : ConvDepthwisePatch<FW, STRIDE, RW, RH, QUADS, LOAD, ROOM, X, W, Epi, Pro> {
  using Base = ConvDepthwisePatch<FW, STRIDE, RW, RH, QUADS, LOAD, ROOM, X, W, Epi, Pro>;
  using Base::V;
  using typename Base::Quad;
  using typename Base::Ring;
  using typename Base::Stored;
  static constexpr int kAhead = 2;  // steps whose rows are on their way while one is computed

  struct Args {
    typename Base::Args conv;  // of a step
    int32_t steps;             // of a whole strip
    int32_t ring;              // its rows: those that kAhead + 1 steps read together
  };

  // rTasks count (image, strip of rows, tile of channels), the last one fastest.
  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& args, int rtask) {
    const typename Base::Args& a = args.conv;
    int image = rtask;
    const int c0 = take_digit(image, a.tiles_q) * QUADS * V;
    const int rows = a.groups * RH;  // of the output, of a step
    int row0 = take_digit(image, a.tiles_r) * rows * args.steps;
    Quad* weights = reinterpret_cast<Quad*>(t.smem);
    Stored* patch = reinterpret_cast<Stored*>(t.smem + a.patch);
    Base::bring_weights(t, a, c0, weights);
    t.wait_for_inputs();
    // The last strip of an image may be shorter than others.
    const int height = static_cast<int>(a.win.out_h.d) - row0;
    const int left = (height + rows - 1) / rows, steps = left < args.steps ? left : args.steps;
    Rows next = {t.template ptr<const X>(a.x) + place(image, a.win.step_n, c0), row0 * STRIDE - a.win.pad_h, c0, steps};
    next.bring(t, args, patch, a.patch_rows);
    for (int s = 1; s < kAhead; ++s) next.bring(t, args, patch, rows * STRIDE);
    const int quad = t.tid % QUADS, pitch = static_cast<int>(a.patch_columns.d) * QUADS;
    int group = t.tid / QUADS;
    const int segment = take_digit(group, a.segments);
    const bool mine = group < a.groups && c0 + quad * V < a.channels;
    int first = group * RH * STRIDE;  // the row of the ring at which the thread's windows begin
    RK_UNROLL(1)
    for (int s = 0; s < steps; ++s) {
      rt::cp_async_wait<kAhead - 1>();
      t.sync();  // the rows of this step are there, and nobody reads those of the step before anymore
      next.bring(t, args, patch, rows * STRIDE);
      if (first >= args.ring) first -= args.ring;
      if (mine) {
        Quad sum[RH][RW] = {};
        Base::template add_rows<true>(a, weights + quad, patch + quad + first * pitch + segment * RW * STRIDE * QUADS,
                                      pitch, {first, args.ring}, sum);
        Base::store_sums(t, a, image, row0 + group * RH, segment * RW, c0 + quad * V, sum);
      }
      first += rows * STRIDE;
      row0 += rows;
    }
  }

 private:
  // The rows that are to be brought next: of which image, from which of its rows on, and for how many steps.
  struct Rows {
    const X* image;
    int h, c0, steps;
    int begin = 0;  // in the ring

    // Brings what a step needs beside the rows before, so many. Steps that are not there have an empty group of copies,
    // so that waiting counts all alike.
    RT_DEVICE void bring(const rt::Task& t, const Args& args, Stored* patch, int rows) {
      if (steps > 0) {
        Base::template bring_rows<true>(t, args.conv, image, h, rows, c0, patch, {begin, args.ring});
        h += rows;
        begin += rows;
        if (begin >= args.ring) begin -= args.ring;
        --steps;
      }
      rt::cp_async_commit();
    }
  };
};

}  // namespace rk
