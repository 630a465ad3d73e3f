// Depthwise convolution of channels-last images, as conv_depthwise_patch.cuh, with rTasks that walk down the image.
// Each has several patches below each other, its steps. While it computes one, the rows of the next kAhead are on their
// way to a ring of rows in shared memory, in which the rows that two steps share lie once:
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
    // A copy in registers: what the threads copy and store could change args, as far as the compiler knows, so that it
    // would be read again in every step.
    const Walk walk = {args.conv.groups * RH, args.steps, args.ring};
    const typename Base::Args a = args.conv;
    int image = rtask;
    const int c0 = take_digit(image, a.tiles_q) * QUADS * V;
    int row0 = take_digit(image, a.tiles_r) * walk.rows * walk.steps;
    Quad* weights = reinterpret_cast<Quad*>(t.smem);
    Stored* patch = reinterpret_cast<Stored*>(t.smem + a.patch);
    const typename Base::Copies copies(a, c0);
    Base::bring_weights(t, a, c0, weights);
    t.wait_for_inputs();
    const X* x = t.template ptr<const X>(a.x) + place(image, a.win.step_n, c0);
    // The last strip of an image may be shorter than others.
    const int left = (static_cast<int>(a.win.out_h.d) - row0 + walk.rows - 1) / walk.rows;
    const int steps = left < walk.steps ? left : walk.steps;
    const int quad = t.tid % QUADS, channel = c0 + quad * V, pitch = Base::places(a) * QUADS;
    int group = t.tid / QUADS;
    const int segment = take_digit(group, a.segments);
    const bool mine = group < a.groups && channel < a.channels;
    const auto shared = Base::operands_of(t, a, image, mine ? channel : 0);
    int first = group * RH * STRIDE;  // the row of the ring at which the thread's windows begin
    // The rows that come next: of the image, of the ring, and how many. The first step needs those that it shares with
    // the second one, too.
    int h = row0 * STRIDE - a.win.pad_h, begin = 0, rows = a.patch_rows;
    RK_UNROLL(1)
    for (int s = -kAhead; s < steps; ++s) {
      if (s >= 0) {
        rt::cp_async_wait<kAhead - 1>();
        t.sync();  // the rows of this step are there, and nobody reads those of the step before anymore
      }
      if (s + kAhead < steps) {
        Base::template bring_rows<true>(t, copies, a.pro, x, h, rows, patch, {begin, walk.ring}, [] {});
        h += rows;
        begin += rows;
        if (begin >= walk.ring) begin -= walk.ring;
        rows = walk.rows * STRIDE;
      }
      rt::cp_async_commit();  // also an empty group, so that waiting counts all steps alike
      if (s < 0) continue;
      if (mine) {
        Quad sum[RH][RW] = {};
        const int column = segment * Base::place_of(Base::kStep);
        Base::template add_rows<true>(a, weights + quad, patch + quad + first * pitch + column * QUADS, pitch,
                                      {first, walk.ring}, sum);
        Base::store_sums(t, a, shared, image, row0 + group * RH, segment * RW, channel, sum);
      }
      first += walk.rows * STRIDE;
      if (first >= walk.ring) first -= walk.ring;
      row0 += walk.rows;
    }
  }

 private:
  struct Walk {
    int rows;   // of the output, of a step
    int steps;  // of a strip
    int ring;   // its rows
  };
};

}  // namespace rk
