// The walk: a vEU runs prog[vEU][order], one step after another, as the tables say. What a step does is a mode's
// business.
#pragma once

#include "rt/exec/edge_launch.cuh"
#include "rt/exec/fetch.cuh"
#include "rt/exec/jump.cuh"
#include "rt/exec/mode_plain.cuh"
#include "rt/exec/veu.cuh"

namespace rt {

template <class Program>
RT_DEVICE void VEU<Program>::run() {
  const StepRange mine = own_steps<Program>(l_);
  const uint32_t first = mine.first, last = mine.last;
  if (first == last) {
    // The launch's end stands for the end of all launches before, so vEUs without steps wait for those, too.
    detail::wait_for_launches_before();
    trace_.ready();
    return;
  }
  first_ = first, last_ = last;
  fetch_first();
  if constexpr (Tracer::kTraces) {
    detail::wait_for_launches_before();
    trace_.ready();
  }
  if constexpr (Program::kSeveralSteps) {
    RT_NO_UNROLL
    for (uint32_t i = first; i < last;) i = run_steps(i);
  } else {
    run_steps(first);
  }
}

// Runs step i, and if it is the first of a run, the whole run, or jumps over a region that begins there. Returns the
// step behind.
template <class Program>
RT_DEVICE uint32_t VEU<Program>::run_steps(uint32_t i) {
  if constexpr (Program::kJumps) {
    const uint32_t to = pass_test(i);
    if (to != i) return to;
  }
  if constexpr (Program::kHasResident) {
    const Step& s = c_.ring[i % c_.kSteps];
    if (s.run > 0) return Program::run(*this, s.instance, i);
  }
  run_plain(i);
  return i + 1;
}

// All vEUs, also those without steps, go on to the epoch of the next launch.
template <class Program>
RT_DEVICE void VEU<Program>::finish() {
  trace_.end();
  if (!persistent()) return;
  detail::block_barrier(threads_);  // all threads have read the old epoch
  if (tid_ != threads_ - 32) return;
  l_.flags[veu_ * kFlagStride + kEpochWord] = epoch_ + l_.max_steps;
  l_.flags[veu_ * kFlagStride + kLaunchesWord] = launches_ + 1;
}

// Waits until all of the thread's copies but those of the Left latest groups have landed, and all threads have come
// here.
template <class Program>
template <int Left>
RT_DEVICE void VEU<Program>::settle() {
  cp_async_wait<Left>();
  detail::block_barrier(threads_);
}

// Waits for the steps that step i waits for, of this launch. After that it may read what they wrote. Words that it
// polls need not have come yet.
template <class Program>
RT_DEVICE void VEU<Program>::await(uint32_t i) {
  const Step s = c_.ring[i % c_.kSteps];
  const Place p{i - first_, s.op, s.rtask};
  trace_.begin(p.order, p.op, p.rtask);
  if constexpr (Program::kPersistent) {
    if (persistent() && s.wait_count > 0) {
      if (tid_ < 32) delay(Pause::kWait, p.order);
      pending(i).wait(tid_);
    }
  }
  trace_.mark(p.order, kReady);
}

// What follows a step's rTask: all threads meet, and then others are told.
template <class Program>
RT_DEVICE void VEU<Program>::end(uint32_t i) {
  if constexpr (kOneStep) return;
  const Step& s = c_.ring[i % c_.kSteps];
  const bool signal = persistent() && s.signal;
  const uint32_t add = persistent() ? s.add : 0;
  if (!Tracer::kTraces && !persistent() && i == last_ - 1) return;  // the end of the launch is enough
  if (Program::kMoves > 0 && s.imports + s.exports > 0) {
    settle<1>();  // the rTask has no copies of its own: the latest group is that of descriptors for later steps
  } else {
    settle();
  }
  trace_.mark(i - first_, kComputed);
  if constexpr (Program::kPersistent) {
    if (signal || add) publish(i - first_, signal, add);
  }
}

}  // namespace rt
