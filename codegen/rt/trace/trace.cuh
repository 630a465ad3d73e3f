// The trace on the device: what each vEU did, and when. Builds with RT_TRACE keep a row in device memory for each step,
// each launch of a vEU and each chunk of streamed weights (rt/schema/trace.cuh). Rows have fixed places, so nothing is
// counted or reset between launches. In other builds the types here are empty, the functions do nothing, and no code is
// left of them.
#pragma once

#include "rt/device/backend.cuh"
#include "rt/schema/trace.cuh"

namespace rt {

// Whether this is a tracing build.
#if defined(RT_TRACE)
constexpr bool kTraced = true;
#else
constexpr bool kTraced = false;
#endif

#if defined(RT_TRACE)

// Where the rows of a launch are.
struct TraceArgs {
  TraceStep* trace_steps;       // of the segment's first step
  TraceLaunch* trace_launches;  // of block 0
  TraceChunk* trace_chunks;     // of block 0
  uint32_t trace_room;          // rows at trace_steps
  uint32_t trace_chunk_room;    // rows at trace_chunks for each block
  uint32_t trace_launch;
};

// Writes the rows of a vEU's chunks. The loader's first lane writes what the loader does, and the rTask's first thread
// what the rTask does.
class ChunkPen {
 public:
  ChunkPen() = default;
  template <class Args>
  RT_DEVICE explicit ChunkPen(const Args& l)
      : rows_(l.trace_chunks + static_cast<size_t>(l.trace_chunk_room) * static_cast<size_t>(detail::block_index())),
        row_(l.trace_launches + detail::block_index()),
        room_(l.trace_chunk_room),
        launch_(l.trace_launch + 1),
        segment_(l.segment),
        veu_(l.first_veu + static_cast<uint32_t>(detail::block_index())) {}

  // The loader turns to the weight block of a step. Then, for each chunk, it asks for a stage, and starts the copy.
  RT_DEVICE void turn(uint32_t step) { step_ = step; }
  RT_DEVICE void asks(uint32_t number, uint32_t bytes) {
    if (detail::thread_index() % 32 != 0) return;
    if (number >= room_) {
      ++dropped_;
      return;
    }
    TraceChunk& c = rows_[number];
    c.launch = launch_, c.segment = segment_, c.step = step_, c.veu = veu_, c.number = number, c.bytes = bytes;
    c.asked = detail::clock_cycles();
  }
  RT_DEVICE void issues(uint32_t number) {
    issued_ = number + 1;
    if (detail::thread_index() % 32 == 0 && number < room_) rows_[number].issued = detail::clock_cycles();
  }
  // Notes which copies have landed: in order, those of which there(number) says so.
  template <class There>
  RT_DEVICE void lands(There there) {
    if (detail::thread_index() % 32 != 0) return;
    for (; landed_ < issued_ && there(landed_); ++landed_) {
      if (landed_ < room_) rows_[landed_].landed = detail::clock_cycles();
    }
  }
  // Whether copies are on their way, and the number of the first of them.
  RT_DEVICE bool loads() const { return detail::thread_index() % 32 == 0 && landed_ < issued_; }
  RT_DEVICE uint32_t landed() const { return landed_; }
  RT_DEVICE void ends() {
    if (detail::thread_index() % 32 == 0) row_->dropped_chunks = dropped_;
  }

  // The rTask wants a chunk, has it, gives it back. It may look at the same chunk several times.
  RT_DEVICE void wants(uint32_t number) const {
    if (mine(number) && number != last_) rows_[number].wanted = detail::clock_cycles();
  }
  RT_DEVICE void has(uint32_t number) const {
    if (mine(number) && number != last_) rows_[number].full = detail::clock_cycles();
    last_ = number;
  }
  RT_DEVICE void frees(uint32_t number) const {
    if (mine(number)) rows_[number].freed = detail::clock_cycles();
  }

 private:
  RT_DEVICE bool mine(uint32_t number) const { return detail::thread_index() == 0 && number < room_; }

  TraceChunk* rows_ = nullptr;
  TraceLaunch* row_ = nullptr;
  uint32_t room_ = 0, launch_ = 0, segment_ = 0, veu_ = 0;
  uint32_t step_ = 0, dropped_ = 0;
  uint32_t issued_ = 0, landed_ = 0;    // how many copies were started, and how many have landed
  mutable uint32_t last_ = 0xffffffff;  // the chunk that the rTask has
};

// Writes the rows of a vEU's steps and of its launch. The thread that publishes steps writes them. So the times of a
// step are in the order in which this thread has passed the points, and no other vEU can have seen a step before its
// row says that it was computed.
class Tracer {
 public:
  static constexpr bool kTraces = true;
  template <class Args>
  RT_DEVICE Tracer(const Args& l, bool writes)
      : steps_(l.trace_steps),
        row_(l.trace_launches + detail::block_index()),
        room_(l.trace_room),
        launch_(l.trace_launch + 1),
        segment_(l.segment),
        from_(l.ranges[detail::block_index()].first),
        writes_(writes) {
    if (!writes_) return;
    detail::both_clocks(&row_->begun, &row_->begun_time);
    row_->sm = detail::multiprocessor(), row_->launch = launch_;
    row_->segment = segment_, row_->in_segment = l.launch,
    row_->veu = l.first_veu + static_cast<uint32_t>(detail::block_index());
  }

  // All launches before this one have ended.
  RT_DEVICE void ready() {
    if (writes_) row_->ready = detail::clock_cycles();
  }

  // The vEU turns to the launch's step number order.
  RT_DEVICE void begin(uint32_t order, uint32_t op, uint32_t rtask) {
    if (!writes_ || order < next_) return;
    next_ = order + 1;
    const uint32_t i = from_ + order;
    if (i >= room_) {
      ++dropped_;
      return;
    }
    TraceStep& t = steps_[i];
    detail::both_clocks(&t.clock[kBegun], &t.time);
    t.sm = detail::multiprocessor(), t.launch = launch_, t.segment = segment_, t.step = i;
    t.op = op, t.rtask = rtask;
  }

  // The vEU has passed the point of that step.
  RT_DEVICE void mark(uint32_t order, TracePoint p) { mark(order, p, writes_); }
  // The same by another thread, which alone knows about the point.
  RT_DEVICE void mark(uint32_t order, TracePoint p, bool writes) {
    if (writes && from_ + order < room_) steps_[from_ + order].clock[p] = detail::clock_cycles();
  }

  RT_DEVICE void end() {
    if (!writes_) return;
    detail::both_clocks(&row_->ended, &row_->ended_time);
    row_->dropped = dropped_;
  }

 private:
  TraceStep* steps_;
  TraceLaunch* row_;
  uint32_t room_, launch_, segment_;
  uint32_t from_;                    // the launch's first step
  uint32_t next_ = 0, dropped_ = 0;  // the next step to begin, and how many steps found no row
  bool writes_;
};

#else

struct TraceArgs {};

class ChunkPen {
 public:
  ChunkPen() = default;
  template <class Args>
  RT_DEVICE explicit ChunkPen(const Args&) {}
  RT_DEVICE void turn(uint32_t) {}
  RT_DEVICE void asks(uint32_t, uint32_t) {}
  RT_DEVICE void issues(uint32_t) {}
  template <class There>
  RT_DEVICE void lands(There) {}
  RT_DEVICE bool loads() const { return false; }
  RT_DEVICE uint32_t landed() const { return 0; }
  RT_DEVICE void ends() {}
  RT_DEVICE void wants(uint32_t) const {}
  RT_DEVICE void has(uint32_t) const {}
  RT_DEVICE void frees(uint32_t) const {}
};

class Tracer {
 public:
  static constexpr bool kTraces = false;
  template <class Args>
  RT_DEVICE Tracer(const Args&, bool) {}
  RT_DEVICE void ready() {}
  RT_DEVICE void begin(uint32_t, uint32_t, uint32_t) {}
  RT_DEVICE void mark(uint32_t, TracePoint) {}
  RT_DEVICE void mark(uint32_t, TracePoint, bool) {}
  RT_DEVICE void end() {}
};

#endif

}  // namespace rt
