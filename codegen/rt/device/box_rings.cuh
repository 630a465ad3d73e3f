// Boxes of a matrix that the copy engine brings for warp groups (TMA), in rings of stages in shared memory. A warp that
// takes no part in the groups' work, the sender, sends for boxes; the groups' warps wait until they have come, read
// them, and give their stages back. Nobody computes addresses of elements, and only the sender waits for other threads,
// before it has a stage filled anew. Groups that multiply other rows have a ring of their own, so that none waits for
// another.
//
//   sender     waits for `empty` of a stage unless it was never filled; the copies complete `full`
//   warps      wait for `full`; read; arrive at `empty`
//
// One warp sends for all groups, and takes as long for a stage as its instructions take one after another. Hence it
// does nothing else, and its loop is short (RATIONALE.md).
#pragma once

#include "rt/device/device.cuh"
#include "rt/device/mma.cuh"

namespace rt {

// Rings of so many stages, each of Boxes boxes of Rows rows that lie beside each other in the matrix. All rings' stages
// come first in shared memory, from a multiple of kAlign on; behind them are each ring's `full` mbarriers and its
// `empty` ones.
template <int Rings, int Stages, int Rows, int Boxes>
struct BoxRings {
  // Boxes have 128 bytes a row, and begin at multiples of 1024 bytes.
  static constexpr int kBoxBytes = 128 * Rows, kStageBytes = Boxes * kBoxBytes, kAlign = 1024;
  static constexpr int kRingBytes = Stages * kStageBytes, kPlaceOfMbarriers = Rings * kRingBytes;
  static constexpr int kBytes = kPlaceOfMbarriers + 16 * Rings * Stages;
  static_assert(kBoxBytes % kAlign == 0);

  RT_DEVICE static char* stages(char* at, int ring) { return at + ring * kRingBytes; }
  RT_DEVICE static uint64_t* full(char* at, int ring) {
    return reinterpret_cast<uint64_t*>(at + kPlaceOfMbarriers) + 2 * ring * Stages;
  }
  RT_DEVICE static uint64_t* empty(char* at, int ring) { return full(at, ring) + Stages; }

  // A ring as a warp of a group reads it.
  class Reader {
   public:
    RT_DEVICE Reader(const Task& t, char* at, int ring)
        : watch_(t.stream.watch()), stages_(stages(at, ring)), full_(full(at, ring)) {}

    // The boxes of the next stage; waits until they have come.
    RT_DEVICE const char* next() {
      detail::mbarrier_wait(full_ + taken_.stage, taken_.phase, watch_.patience_ns, watch_.notes, watch_.report);
      const char* boxes = stage(taken_);
      pass(taken_);
      return boxes;
    }

    // The warp does not read the stage any more that was taken first of those that are not done. All lanes call it.
    RT_DEVICE void done() {
      detail::sync_warp();
      detail::free_stage(stage(done_), kStageBytes, full_ + Stages + done_.stage);
      pass(done_);
    }

   private:
    RT_DEVICE static void pass(RingPlace& p) {
      if (++p.stage == Stages) p.stage = 0, ++p.phase;
    }
    RT_DEVICE char* stage(RingPlace p) const { return stages_ + p.stage * static_cast<uint32_t>(kStageBytes); }

    const Watch& watch_;
    char* stages_;
    uint64_t* full_;
    RingPlace taken_, done_;
  };

  // What the sender's lanes call, all of them.
  class Sender {
   public:
    // The boxes of the first stage begin at the given column, in a stage at multiples of `width` columns, and a ring's
    // first row is Rows rows below that of the ring before. A tile has `count` stages; those of the next one begin at
    // the same column, `down` rows below.
    RT_DEVICE Sender(const Task& t, char* at, const TiledMatrix& m, int column, int row, int width, int count, int down)
        : watch_(t.stream.watch()),
          matrix_(m),
          at_(at),
          map_(t.address(Ref{m.map})),
          first_(t.template ptr<const char>(Ref{m.at})),
          begin_(static_cast<uint32_t>(column)),
          column_(begin_),
          row_(static_cast<uint32_t>(row)),
          width_(static_cast<uint32_t>(width)),
          down_(static_cast<uint32_t>(down)),
          count_(count),
          one_(t.tid % 32 == 0) {}

    // Makes the mbarriers, for so many warps that read a ring. Behind it a barrier of all threads lets them use the
    // rings.
    RT_DEVICE void open(int readers) const {
      if (one_) {
        RT_NO_UNROLL
        for (int i = 0; i < Rings * Stages; ++i) {
          uint64_t* bar = full(at_, i / Stages) + i % Stages;
          detail::mbarrier_init(bar, 1);
          detail::mbarrier_init(bar + Stages, readers);
        }
        detail::mbarrier_init_done();
      }
      detail::sync_warp();
    }

    // Sends for the first of `stages` stages, as many as the rings have, and returns how many these are. The rTask has
    // waited for its inputs, by Task::inputs or Task::wait_for_inputs.
    RT_DEVICE int fill(int stages) {
      stages = stages < Stages ? stages : Stages;
      if (one_) {
        detail::stored_before_copies();
        RT_NO_UNROLL
        for (int s = 0; s < stages; ++s) send(s);
      }
      detail::sync_warp();
      return stages;
    }

    // Sends for so many more stages, as the groups give them back.
    RT_DEVICE void refill(int stages) {
      if (one_) {
        int s = 0;
        uint32_t phase = 0;
        RT_NO_UNROLL
        for (; stages > 0; --stages) {
          RT_UNROLL
          for (int r = 0; r < Rings; ++r) {
            detail::mbarrier_wait(empty(at_, r) + s, phase, watch_.patience_ns, watch_.notes, watch_.report);
          }
          send(s);
          if (++s == Stages) s = 0, ++phase;
        }
      }
      detail::sync_warp();
    }

   private:
    // Sends for the next boxes, into stage s of all rings.
    RT_DEVICE void send(int s) {
      RT_UNROLL
      for (int r = 0; r < Rings; ++r) {
        uint64_t* bar = full(at_, r) + s;
        char* boxes = stages(at_, r) + s * kStageBytes;
        RT_UNROLL
        for (int b = 0; b < Boxes; ++b) {
          detail::fill_box(boxes + b * kBoxBytes, bar, map_, first_, matrix_,
                           column_ + static_cast<uint32_t>(b) * width_, row_ + static_cast<uint32_t>(r * Rows));
        }
        detail::boxes_sent(bar, kStageBytes);
      }
      column_ += Boxes * width_;
      if (++sent_ == count_) sent_ = 0, column_ = begin_, row_ += down_;
    }

    const Watch& watch_;
    const TiledMatrix& matrix_;
    char* at_;
    const char* map_;
    const char* first_;
    uint32_t begin_, column_, row_, width_, down_;
    int count_, sent_ = 0;
    bool one_;
  };
};

}  // namespace rt
