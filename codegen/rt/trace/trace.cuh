// The trace: what every vEU did and when. Builds with RT_TRACE keep one row for each step and each launch in
// device memory; in all others the types here are empty, the functions do nothing, and no code is left of them.
#pragma once

#include "rt/device/device.cuh"

namespace rt {

// Points in the life of a step, in order. Those that do not occur stay 0.
enum TracePoint : int {
  kBegun = 0,      // the vEU turns to it
  kLoaded = 1,     // what it keeps on chip for the steps that follow is there
  kReady = 2,      // all that it waits for has come
  kStarted = 3,    // its operands are where it wants them; the rTask starts
  kComputed = 4,   // all threads are done, and results in tagged data are with those who want them
  kPublished = 5,  // and the others can know
  kTracePoints = 6,
};

// Clocks are the multiprocessor's, in cycles, and comparable on it alone; time is the device's, in
// nanoseconds, but may stand still for a microsecond. Each row has both, so that readers can translate.
struct TraceStep {
  uint64_t clock[kTracePoints];
  uint64_t time;           // at clock[kBegun]
  uint32_t sm;             // multiprocessor
  uint32_t launch;         // of the inference, from 0; 1 more than it, so that 0 is a row nobody wrote
  uint32_t segment, step;  // row of the segment's steps
  uint32_t op, rtask;
};
static_assert(sizeof(TraceStep) == 80);

struct TraceLaunch {
  uint64_t begun, ready, ended;  // clocks: the first instruction; all launches before have ended; the last instruction
  uint64_t begun_time, ended_time;
  uint32_t sm, launch;  // as in TraceStep
  uint32_t segment, in_segment;  // number among the segment's launches
  uint32_t veu;
  uint32_t dropped, dropped_chunks;  // steps and chunks that found no row
  uint32_t unused;
};
static_assert(sizeof(TraceLaunch) == 72);

// A chunk of streamed weights (ring.cuh), with the clocks of the vEU's multiprocessor.
struct TraceChunk {
  uint64_t asked, issued, landed;  // by the loader: it wants a free stage, starts the copy, sees that all is there
  uint64_t wanted, full, freed;  // by the rTask's first thread: it wants the chunk, has it, gives it back
  uint32_t launch;               // as in TraceStep
  uint32_t segment, step, veu;
  uint32_t number, bytes;  // number among the vEU's in the launch
};
static_assert(sizeof(TraceChunk) == 72);

// The thread that writes the trace must come by at every step.
#if defined(RT_TRACE)
constexpr bool kTraced = true;
#else
constexpr bool kTraced = false;
#endif

#if defined(RT_TRACE)

// Where a launch keeps its rows.
struct TraceArgs {
  TraceStep* trace_steps;       // of the segment's first step
  TraceLaunch* trace_launches;  // of block 0
  TraceChunk* trace_chunks;     // of block 0
  uint32_t trace_room;          // rows at trace_steps
  uint32_t trace_chunk_room;    // rows at trace_chunks for each block
  uint32_t trace_launch;
};

// A thread's view of its vEU's chunks. The loader's first lane and the rTask's first thread write.
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

  // The loader turns to a step's block.
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
  // Of the copies on their way, in order, those whose number is there have landed.
  template <class There>
  RT_DEVICE void lands(There there) {
    if (detail::thread_index() % 32 != 0) return;
    for (; landed_ < issued_ && there(landed_); ++landed_) {
      if (landed_ < room_) rows_[landed_].landed = detail::clock_cycles();
    }
  }
  RT_DEVICE bool loads() const { return detail::thread_index() % 32 == 0 && landed_ < issued_; }
  RT_DEVICE uint32_t landed() const { return landed_; }
  RT_DEVICE void ends() {
    if (detail::thread_index() % 32 == 0) row_->dropped_chunks = dropped_;
  }

  // The rTask looks at a chunk, perhaps several times.
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
  uint32_t issued_ = 0, landed_ = 0;    // so many copies
  mutable uint32_t last_ = 0xffffffff;  // chunk that the rTask has
};

// One thread's view of the trace. The thread that publishes steps writes it: what it says is in its own order,
// and a step it calls computed nobody saw before.
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
    row_->segment = segment_, row_->in_segment = l.launch, row_->veu = l.first_veu + static_cast<uint32_t>(detail::block_index());
  }

  // After everything before this launch has ended.
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
  // The same where the one thread that knows is another.
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
  uint32_t from_;                   // the launch's first step
  uint32_t next_ = 0, dropped_ = 0;  // steps begun, and of those without a row
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
