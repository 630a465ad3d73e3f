// Boxes of a matrix that the copy engine brings for warp groups (TMA), in rings of stages in shared memory. A warp that
// takes no part in the groups' work, the sender, sends for boxes; the groups' warps wait until they have come, read
// them, and give their stages back. Nobody computes addresses of elements, and only the sender waits for other threads,
// before it has a stage filled anew. Groups that multiply other rows have a ring of their own, so that none waits for
// another.
//
//   sender     waits for `empty` of a stage unless it was never filled; the copies complete `full`
//   warps      wait for `full`; read; arrive at `empty`
//
// A sender takes as long for a stage as its instructions take one after another. Hence it does nothing else, its loop
// is short, and each of two operands may have a sender of its own (RATIONALE.md).
#pragma once

#include "rt/device/device.cuh"
#include "rt/device/mma.cuh"

namespace rt {

// Rings of so many stages of so many bytes each. All rings' stages come first in shared memory, from a multiple of
// kAlign on; behind them are each ring's `full` mbarriers and its `empty` ones.
template <int Rings, int Stages, int StageBytes>
struct BoxRings {
  static constexpr int kStageBytes = StageBytes, kAlign = 1024;  // boxes begin at multiples of that
  static constexpr int kRingBytes = Stages * kStageBytes, kPlaceOfMbarriers = Rings * kRingBytes;
  static constexpr int kBytes = kPlaceOfMbarriers + 16 * Rings * Stages;
  static_assert(kStageBytes % kAlign == 0);

  RT_DEVICE static char* stages(char* at, int ring) { return at + ring * kRingBytes; }
  RT_DEVICE static uint64_t* full(char* at, int ring) {
    return reinterpret_cast<uint64_t*>(at + kPlaceOfMbarriers) + 2 * ring * Stages;
  }
  RT_DEVICE static uint64_t* empty(char* at, int ring) { return full(at, ring) + Stages; }

  // Makes the mbarriers, for so many warps that read a ring, and so many that send for its boxes. All lanes of a warp
  // call it, for one of which `one` is true. Behind it a barrier of all threads lets them use the rings.
  RT_DEVICE static void open(char* at, bool one, int readers, int senders) {
    if (one) {
      // Other threads wait for this. A loop would find each place by a division.
      RT_UNROLL
      for (int i = 0; i < Rings * Stages; ++i) {
        uint64_t* bar = full(at, i / Stages) + i % Stages;
        detail::mbarrier_init(bar, senders);
        detail::mbarrier_init(bar + Stages, readers);
      }
      detail::mbarrier_init_done();
    }
    detail::sync_warp();
  }

  // A ring as a warp of a group reads it.
  class Reader {
   public:
    RT_DEVICE Reader(const Task& t, char* at, int ring)
        : watch_(t.stream.watch()), stages_(stages(at, ring)), full_(full(at, ring)), one_(t.tid % 32 == 0) {}

    // Where the boxes of the next stage are, or will be.
    RT_DEVICE const char* ahead() const { return stage(taken_); }
    // Takes the next stage; waits until its boxes have come.
    RT_DEVICE void take() {
      detail::mbarrier_wait(full_ + taken_.stage, taken_.phase, watch_.patience_ns, watch_.notes, watch_.report);
      pass(taken_);
    }

    // The warp does not read the stage any more that was taken first of those that are not done. All lanes call it.
    RT_DEVICE void done() {
      detail::sync_warp();
      detail::free_stage(stage(done_), kStageBytes, full_ + Stages + done_.stage, one_);
      pass(done_);
    }

    // Goes on by so many stages, which others read and give back. Those before are done.
    RT_DEVICE void skip(int stages) {
      taken_.pass(static_cast<uint32_t>(stages), Stages);
      done_ = taken_;
    }

   private:
    RT_DEVICE static void pass(RingPlace& p) {
      if (++p.stage == Stages) p.stage = 0, ++p.phase;
    }
    RT_DEVICE char* stage(const RingPlace& p) const { return stages_ + p.stage * static_cast<uint32_t>(kStageBytes); }

    const Watch& watch_;
    char* stages_;
    uint64_t* full_;
    bool one_;
    RingPlace taken_, done_;
  };

  // What the sender's lanes call, all of them. Which boxes come says the walk: fill(stage, full, ring) sends for those
  // of a ring's next stage and returns their bytes, and next() goes on to the stage behind it. kConstant says that they
  // are of a constant.
  template <class Walk>
  class Sender {
   public:
    RT_DEVICE Sender(const Task& t, char* at, const Walk& walk)
        : watch_(t.stream.watch()), walk_(walk), at_(at), one_(detail::one_lane()) {}

    // Sends for the first of `stages` stages, as many as the rings have, and returns how many these are. Unless boxes
    // are of constants, the rTask has waited for its inputs, by Task::inputs or Task::wait_for_inputs.
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
        detail::boxes_sent(bar, walk_.fill(stages(at_, r) + s * kStageBytes, bar, r));
      }
      walk_.next();
    }

    const Watch& watch_;
    Walk walk_;
    char* at_;
    bool one_;
  };
};

// Whose turn it is of two groups of Warps warps that read the stages of a ring, so many of them at a turn. Phases of
// mbarriers are told apart by their parity alone, so that a group may wait for its stages only when the other one has
// taken those before them.
template <int Warps>
class RingTurns {
 public:
  static constexpr int kBytes = 2 * sizeof(uint64_t);

  RT_DEVICE RingTurns(const Task& t, char* at) : watch_(t.stream.watch()), turns_(reinterpret_cast<uint64_t*>(at)) {}
  // One thread calls this before the ring is opened.
  RT_DEVICE void open() const {
    RT_UNROLL
    for (int i = 0; i < 2; ++i) detail::mbarrier_init(turns_ + i, Warps);
  }
  // Waits for turn number `turn`, which is the group's.
  RT_DEVICE void await(int turn) const {
    if (turn == 0) return;
    const uint32_t phase = static_cast<uint32_t>(turn - 1) / 2;
    detail::mbarrier_wait(turns_ + turn % 2, phase, watch_.patience_ns, watch_.notes, watch_.report);
  }
  // The warp has taken all stages of the turn. All lanes call it.
  RT_DEVICE void pass(int turn) const {
    detail::sync_warp();
    if (detail::thread_index() % 32 == 0) detail::mbarrier_arrive(turns_ + (turn + 1) % 2);
  }

 private:
  const Watch& watch_;
  uint64_t* turns_;
};

// What all boxes of a tensor are sent for with.
class BoxSource {
 public:
  RT_DEVICE BoxSource(const Task& t, const TiledMatrix& m)
      : matrix_(m), map_(t.address(Ref{m.map})), first_(t.template ptr<const char>(Ref{m.at})) {}
  // Brings the tensor map near, so that the first box need not wait for it.
  RT_DEVICE void prefetch() const { detail::prefetch_map(map_); }

 protected:
  const TiledMatrix& matrix_;
  const char* map_;
  const char* first_;
};

// The boxes of a matrix's tiles: a stage has Boxes of Rows rows beside each other, and a ring's rows are below those of
// the ring before. The first stage begins at the given column, and a box is `width` columns wide. A tile has `count`
// stages; those of the next one begin at the same column, `down` rows below. Boxes that are beside the matrix do not
// come.
template <int Rows, int Boxes>
class MatrixWalk : BoxSource {
 public:
  using BoxSource::prefetch;
  static constexpr bool kConstant = false;
  RT_DEVICE MatrixWalk(const Task& t, const TiledMatrix& m, int column, int row, int width, int count, int down)
      : BoxSource(t, m),
        begin_(static_cast<uint32_t>(column)),
        column_(begin_),
        row_(static_cast<uint32_t>(row)),
        width_(static_cast<uint32_t>(width)),
        down_(static_cast<uint32_t>(down)),
        count_(count) {}
  RT_DEVICE uint32_t fill(char* stage, uint64_t* full, int ring) const {
    uint32_t bytes = 0;
    RT_UNROLL
    for (int b = 0; b < Boxes; ++b) {
      const uint32_t column = column_ + static_cast<uint32_t>(b) * width_;
      if (b > 0 && column >= matrix_.columns) continue;
      detail::fill_box(stage + b * 128 * Rows, full, map_, first_, matrix_, column,
                       row_ + static_cast<uint32_t>(ring * Rows));
      bytes += 128 * Rows;
    }
    return bytes;
  }
  RT_DEVICE void next() {
    column_ += Boxes * width_;
    if (++sent_ == count_) sent_ = 0, column_ = begin_, row_ += down_;
  }
  // The next stage begins at the first column again.
  RT_DEVICE void rewind() { column_ = begin_; }

 private:
  uint32_t begin_, column_, row_, width_, down_;
  int count_, sent_ = 0;
};

// In how many boxes so many rows come: each has 256 at most.
constexpr int boxes_of(int rows) {
  int boxes = (rows + 255) / 256;
  while (rows % boxes != 0) ++boxes;
  return boxes;
}

// Boxes of a packed constant, which follow each other in it, of so many rows of 128 bytes each: those from one row up
// to another, again and again. A stage has so many of them, from byte At on.
template <int Rows, int Boxes, int At>
class PackedWalk : BoxSource {
 public:
  using BoxSource::prefetch;
  static constexpr bool kConstant = true;
  RT_DEVICE PackedWalk(const Task& t, const TiledMatrix& m, int begin, int end)
      : BoxSource(t, m), begin_(static_cast<uint32_t>(begin)), end_(static_cast<uint32_t>(end)), row_(begin_) {}
  RT_DEVICE uint32_t fill(char* stage, uint64_t* full, int) const {
    RT_UNROLL
    for (int b = 0; b < Boxes; ++b) {
      const uint32_t down = static_cast<uint32_t>(b * Rows);
      detail::fill_box(stage + At + b * 128 * Rows, full, map_, first_, matrix_, 0, row_ + down);
    }
    return 128 * Rows * Boxes;
  }
  RT_DEVICE void next() {
    row_ += Boxes * Rows;
    if (row_ == end_) row_ = begin_;
  }

 private:
  uint32_t begin_, end_, row_;
};

// A filter's taps along a line, which are so many pixels apart, how far apart its lines are, and its channels.
struct FilterTaps {
  uint32_t width, step_x, step_y, channels;
};

// What a filter meets of images at Rows positions, one after another: a box is `width` channels of a tap, and those of
// the next tap are behind the last channels. The last box of a tap may have fewer of them.
template <int Rows>
class ImageWalk : BoxSource {
 public:
  using BoxSource::prefetch;
  using Position = detail::Position;
  static constexpr int kBytes = 128 * Rows;

  RT_DEVICE ImageWalk(const Task& t, const TiledMatrix& m, const FilterTaps& taps, int width)
      : BoxSource(t, m), taps_(taps), width_(static_cast<uint32_t>(width)) {}
  // Begins with the filter's first tap at the given position.
  RT_DEVICE void begin(const Position& first) { at_ = first, channel_ = x_ = y_ = 0; }
  // Goes on from there by so many boxes.
  RT_DEVICE void skip(uint32_t boxes) {
    const uint32_t of_tap = (taps_.channels + width_ - 1) / width_, tap = boxes / of_tap;
    channel_ = boxes % of_tap * width_, x_ = tap % taps_.width * taps_.step_x, y_ = tap / taps_.width * taps_.step_y;
  }
  RT_DEVICE uint32_t fill(char* stage, uint64_t* full) const {
    detail::fill_patch(stage, full, map_, first_, matrix_, channel_, at_, x_, y_);
    return kBytes;
  }
  RT_DEVICE void next() {
    channel_ += width_;
    if (channel_ < taps_.channels) return;
    channel_ = 0, x_ += taps_.step_x;
    if (x_ == taps_.width * taps_.step_x) x_ = 0, y_ += taps_.step_y;
  }

 private:
  FilterTaps taps_;
  uint32_t width_, channel_ = 0, x_ = 0, y_ = 0;
  Position at_ = {};
};

}  // namespace rt
