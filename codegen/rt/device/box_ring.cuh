// Boxes of a matrix that the copy engine brings for a warp group (TMA), in a ring of stages in shared memory. A warp
// that takes no part in the group's work, the sender, sends for boxes; the group's warps wait until they have come,
// read them, and give their stages back. Nobody computes addresses of elements, and only the sender waits for other
// threads, before it has a stage filled anew.
//
//   sender     waits for `empty` of a stage unless it was never filled; the copy completes `full`
//   warps      wait for `full`; read; arrive at `empty`
#pragma once

#include "rt/device/device.cuh"
#include "rt/device/mma.cuh"

namespace rt {

template <int Stages, int Rows>
class BoxRing {
 public:
  // Boxes have 128 bytes a row, and begin at multiples of 1024 bytes.
  static constexpr int kBoxBytes = 128 * Rows, kAlign = 1024;
  // What a group's ring takes: its boxes, and its mbarriers.
  static constexpr int kBytes = Stages * kBoxBytes, kMbarriers = 2 * Stages;
  static_assert(kBoxBytes % kAlign == 0);

  // All threads of the warp group call this, and those of the sender's warp, with kBytes of shared memory and
  // kMbarriers words of the group's.
  RT_DEVICE BoxRing(const Task& t, char* boxes, uint64_t* mbarriers, const TiledMatrix& m)
      : t_(t),
        matrix_(m),
        boxes_(boxes),
        full_(mbarriers),
        map_(t.address(Ref{m.map})),
        first_(t.template ptr<const char>(Ref{m.at})) {}

  // The sender calls this. Behind it a barrier of all threads lets them use the ring.
  RT_DEVICE void open() const {
    if (t_.tid % 32 == 0) {
      RT_NO_UNROLL
      for (int i = 0; i < Stages; ++i) {
        detail::mbarrier_init(full_ + i, 1);
        detail::mbarrier_init(full_ + Stages + i, 4);
      }
      detail::mbarrier_init_done();
    }
    detail::sync_warp();
  }

  // The sender sends for a box whose first element is at the given column and row. The rTask has waited for its inputs,
  // by Task::inputs or Task::wait_for_inputs.
  RT_DEVICE void send(uint32_t column, uint32_t row) {
    if (t_.tid % 32 == 0) {
      if (sent_.phase == 0 && sent_.stage == 0) detail::stored_before_copies();
      if (sent_.phase > 0) wait(full_ + Stages, sent_, sent_.phase - 1);
      detail::fill_box(box(sent_), full_ + sent_.stage, map_, first_, matrix_, column, row);
      pass(sent_);
    }
    detail::sync_warp();
  }

  // The next box; waits until it has come.
  RT_DEVICE const char* next() {
    wait(full_, taken_, taken_.phase);
    const char* at = box(taken_);
    pass(taken_);
    return at;
  }

  // The warp does not read the box any more that was taken first of those that are not done. All lanes call it.
  RT_DEVICE void done() {
    detail::sync_warp();
    detail::free_stage(box(done_), kBoxBytes, full_ + Stages + done_.stage);
    pass(done_);
  }

 private:
  RT_DEVICE static void pass(RingPlace& p) {
    if (++p.stage == Stages) p.stage = 0, ++p.phase;
  }
  RT_DEVICE char* box(RingPlace p) const { return boxes_ + p.stage * static_cast<uint32_t>(kBoxBytes); }
  RT_DEVICE void wait(uint64_t* mbarriers, RingPlace p, uint32_t phase) const {
    const Watch& w = t_.stream.watch();
    detail::mbarrier_wait(mbarriers + p.stage, phase, w.patience_ns, w.notes, w.report);
  }

  const Task& t_;
  const TiledMatrix& matrix_;
  char* boxes_;
  uint64_t* full_;  // the stages' full mbarriers, behind them their empty ones
  const char* map_;
  const char* first_;
  RingPlace sent_, taken_, done_;
};

}  // namespace rt
