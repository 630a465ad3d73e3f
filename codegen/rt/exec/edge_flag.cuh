// Flag edges: a vEU publishes its steps in its flag, a word of the step array (step_array.cuh), and the vEUs that wait
// for a step poll it.
//
//   producer                                consumer
//   all threads store results               warp 0: up to 32 lanes poll a flag or a counter each
//   block barrier                           (ld.acquire)
//   one thread: st.release flag ─────────▶  … until all have come
//                                           block barrier
//                                           all threads read the results
//
// The polling is Pending::wait (rt/device/pending.cuh): rKernels that begin early call it themselves, with their
// weights and addresses in hand. The barriers of both blocks, and between them the release and the acquire, order the
// results of all threads before the reads of all threads. Relaxed loads with a fence behind them would do the same, but
// a fence waits for all of the thread's accesses, once more behind the last poll.
#pragma once

#include "rt/exec/edge_counter.cuh"
#include "rt/exec/veu.cuh"

namespace rt {

// What step i waits for before its rTask: nothing outside of rPrograms.
template <class Program>
RT_DEVICE Pending VEU<Program>::pending(uint32_t i) const {
  const Step& s = c_.ring[i % c_.kSteps];
  const Wait *staged = c_.waits[i % c_.kOperands], *all = l_.waits + s.wait_begin;
  uint32_t count = s.wait_count;
  if constexpr (Program::kJumps) {
    if (s.jumps > 0) {  // behind the test
      staged = jumps_and_waits(i);
      const uint32_t passed = kJumpWaits * s.jumps + reinterpret_cast<const Jump*>(staged)->gates;
      staged += passed, all += passed, count -= passed;
    }
  }
  return Pending{staged,
                 all,
                 persistent() ? count : 0u,
                 threads_,
                 l_.flags,
                 epoch_,
                 launches_,
                 l_.patience_ns,
                 l_.reports,
                 Report{kWaitReport, l_.segment, veu_, i - first_, 0, 0, s.op, s.rtask, 0, 0}};
}

// Publishes a step in the vEU's flag (signal), and in the counter on line `add`, unless that is 0. A block barrier
// stands before this. The thread is in the vEU's last warp, since the first one may be polling for the next step
// already.
template <class Program>
RT_DEVICE void VEU<Program>::publish(uint32_t order, bool signal, uint32_t add) {
  if (tid_ != threads_ - 32) return;
  delay(Pause::kPublish, order);
  uint64_t *const flag = line(veu_), *const counter = line(add);
  if (signal && add) {
    detail::fence_acq_rel_gpu();  // one for both
    detail::store_relaxed_gpu(flag, epoch_ + order + 1);
    detail::add_relaxed_gpu(counter);
  } else if (signal) {
    detail::store_release_gpu(flag, epoch_ + order + 1);
  } else {
    detail::add_release_gpu(counter);
  }
  trace_.mark(order, kPublished);
}

}  // namespace rt
