// The trace: what every vEU did and when. Builds with RT_TRACE keep one row for each step and each launch in
// device memory; in all others the types here are empty, the functions do nothing, and no code is left of them.
#pragma once

#include "rt/device.cuh"

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
  uint32_t dropped;  // steps that found no row
};
static_assert(sizeof(TraceLaunch) == 64);

#if defined(RT_TRACE)

// Where a launch keeps its rows.
struct TraceArgs {
  TraceStep* trace_steps;       // of the segment's first step
  TraceLaunch* trace_launches;  // of vEU 0
  uint32_t trace_room;          // rows at trace_steps
  uint32_t trace_launch;
};

// One thread's view of the trace. The thread that publishes steps writes it: what it says is in its own order,
// and a step it calls computed nobody saw before.
class Tracer {
 public:
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
  RT_DEVICE void mark(uint32_t order, TracePoint p) {
    if (writes_ && from_ + order < room_) steps_[from_ + order].clock[p] = detail::clock_cycles();
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

class Tracer {
 public:
  template <class Args>
  RT_DEVICE Tracer(const Args&, bool) {}
  RT_DEVICE void ready() {}
  RT_DEVICE void begin(uint32_t, uint32_t, uint32_t) {}
  RT_DEVICE void mark(uint32_t, TracePoint) {}
  RT_DEVICE void end() {}
};

#endif

}  // namespace rt
