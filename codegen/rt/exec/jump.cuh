// Jumps over branches that are not taken. Successive steps of a vEU that nobody needs unless a condition holds are a
// region. The first step of a region has a Jump for each condition that begins there, and the vEU tests these before it
// does anything else for the step:
//
//   gates    flags of the steps that compute the conditions: the first of the step's waits
//   test     all threads read the conditions, those of outer regions first
//   jump     where one does not hold, the steps of its region are announced as if they were complete, and the walk
//            goes on behind them; their other waits are not waited for
//
// The weight loader, which walks the same steps, meets the other warps at every test and learns how it came out.
#pragma once

#include "rt/exec/edge_flag.cuh"
#include "rt/exec/fetch.cuh"
#include "rt/exec/veu.cuh"

namespace rt {

// The jumps of step i, which has some, and behind them its waits: in shared memory, if all of them are there.
template <class Program>
RT_DEVICE const Wait* VEU<Program>::jumps_and_waits(uint32_t i) const {
  const Step& s = c_.ring[i % c_.kSteps];
  return s.wait_count <= kStagedWaits ? c_.waits[i % c_.kOperands] : l_.waits + s.wait_begin;
}

// Tests the conditions of step i, which has jumps. Returns how many steps to jump over.
template <class Program>
RT_DEVICE uint32_t VEU<Program>::test(uint32_t i) {
  detail::wait_for_launches_before();
  const uint32_t n = c_.ring[i % c_.kSteps].jumps;
  const Wait* const waits = jumps_and_waits(i);
  const Jump* const jumps = reinterpret_cast<const Jump*>(waits);
  if (jumps[0].gates > 0) {
    Pending gates = pending(i);
    gates.staged = gates.all = waits + kJumpWaits * n;
    gates.count = jumps[0].gates;
    gates.wait(tid_);
  }
  RT_NO_UNROLL
  for (uint32_t k = 0; k < n; ++k) {
    const char* at = c_.bases[jumps[k].at >> kSpaceShift] + (jumps[k].at & kRefOffsetMask);
    if ((*reinterpret_cast<const uint8_t*>(at) != 0) == (jumps[k].unless != 0)) return jumps[k].steps;
  }
  return 0;
}

// Jumps over n steps from i on. Nothing of theirs is announced before all that the vEU has done before.
template <class Program>
RT_DEVICE void VEU<Program>::jump(uint32_t i, uint32_t n) {
  bool adds = false;
  const Jump* const jumps = reinterpret_cast<const Jump*>(jumps_and_waits(i));
  for (uint32_t k = c_.ring[i % c_.kSteps].jumps; k-- > 0;) {
    if (jumps[k].steps == n) adds = jumps[k].adds != 0;
  }
  settle();  // copies for steps that are not run have landed, and all threads have read the jumps
  publish(i - first_ + n - 1, true, 0);
  if (adds && fetches()) {
    RT_NO_UNROLL
    for (uint32_t k = static_cast<uint32_t>(tid_) % 32; k < n; k += 32) {
      const uint32_t counter = l_.steps[i + k].add;
      if (counter > 0) detail::add_release_gpu(line(counter));
    }
  }
  if constexpr (Tracer::kTraces) {
    for (uint32_t k = 0; k < n; ++k) {
      const Step& s = l_.steps[i + k];
      const uint32_t order = i - first_ + k;
      trace_.begin(order, s.op, s.rtask);
      trace_.mark(order, kReady), trace_.mark(order, kStarted), trace_.mark(order, kComputed);
      if (s.signal || s.add) trace_.mark(order, kPublished);
    }
  }
  if (i + n < last_) fetch_from(i + n);
}

// If step i is the first of a region whose condition does not hold, jumps over the region, and returns the step behind;
// otherwise returns i.
template <class Program>
RT_DEVICE uint32_t VEU<Program>::pass_test(uint32_t i) {
  if (!persistent() || c_.ring[i % c_.kSteps].jumps == 0) return i;
  const uint32_t n = test(i);
  if constexpr (Layout::kHasRing) {
    if (l_.stages > 0) {
      if (tid_ == 0) c_.verdicts[tests_ % 2] = n;
      ++tests_;
      detail::wait_for_loader(detail::block_threads());
    }
  }
  if (n > 0) jump(i, n);
  return i + n;
}

}  // namespace rt
