// Products of warp groups whose rows of A come as boxes by the copy engine (rt/device/box_ring.cuh), which rounds them
// to tf32. Tensor cores read both operands in shared memory; the threads only begin products, wait, and send for boxes.
//
//   threads        begin s │ send for box s - 2 + ST │ s - 1 is done: give A and B back │ A(s + 1), B(s + 1) come │ …
//   tensor cores   s - 1 ──────────────────────────▶ │ s ─────────────────────────────────────────────────────────▶ …
#pragma once

#include "common/wgmma.cuh"
#include "rt/device/box_ring.cuh"

namespace rk {

// Multiplies `count` stages of rows from `row` on, the first of which begins at column `column`: those of the thread's
// group. T is a GroupTile; where groups share a tile's k range, each has boxes of its own.
template <class T>
class BoxProducts {
  using Ring = rt::BoxRing<T::ST, 64>;
  static_assert(T::kSlice * T::kSize == 128, "a group's stage is a box wide");
  static constexpr int kBoxes = T::kGroups * Ring::kBytes;
  static_assert(kBoxes + 8 * T::kGroups * Ring::kMbarriers + Ring::kAlign <= T::kRing, "all fits where A's ring is");

 public:
  RT_DEVICE BoxProducts(const rt::Task& t, const rt::TiledMatrix& m, int column, int row, int count)
      : at_(t.tid),
        boxes_(t, at_.group, first(t) + at_.group * Ring::kBytes,
               reinterpret_cast<uint64_t*>(first(t) + kBoxes) + at_.group * Ring::kMbarriers, m),
        stages_(t.stream),
        column_(static_cast<uint32_t>(column + at_.kg * T::kSlice)),
        row_(static_cast<uint32_t>(row + at_.row)),
        count_(count),
        unsent_(count) {}

  RT_DEVICE void run(typename T::Acc& acc) {
    RK_UNROLL(1)
    for (int s = 0; s < T::ST - 2; ++s) send();
    RK_UNROLL(1)
    for (int s = 0; s < count_; ++s) {
      begin(acc);
      send();  // into the place of stage s - 2, which all warps have given back long since
      rt::multiplied_but<1>();
      if (s > 0) done();
    }
    rt::multiplied(acc);
    done();
    stages_.end();
  }

 private:
  // The boxes of all groups, behind which are their mbarriers.
  RT_DEVICE static char* first(const rt::Task& t) { return rt::aligned_shared<Ring::kAlign>(t.smem); }

  RT_DEVICE void send() {
    if (unsent_ > 0) boxes_.send(column_, row_);
    --unsent_;
    column_ += T::BK;
  }

  // Begins the products of the next stage.
  RT_DEVICE void begin(typename T::Acc& acc) {
    const char* a = boxes_.next();
    const char* b = stages_.next() + at_.kg * (T::kStageB / T::KG);
    rt::multiply_begin();
    RT_UNROLL
    for (int k = 0; k < T::kSlice / T::kDeep; ++k) {
      rt::multiply_tf32_swizzled<T::BN>(acc, a + 32 * k, b + k * (2 * T::kPitch), T::kPitch, true);
    }
    rt::multiply_end();
  }

  RT_DEVICE void done() {
    boxes_.done();
    stages_.done();
  }

  typename T::At at_;
  Ring boxes_;
  GroupStages<T> stages_;
  uint32_t column_, row_;  // of the next box
  int count_, unsent_;     // stages, and how many have not been sent for
};

}  // namespace rk
