// Flag edges: a vEU publishes its steps in its flag, a word of the step array (step_array.cuh), and the vEUs that wait
// for a step poll it.
//
//   producer                                consumer
//   all threads store results               warp 0: up to 32 lanes poll a flag or a counter each (relaxed)
//   block barrier                           … until all have come
//   one thread: st.release flag ─────────▶  one fence, acquire and release
//                                           block barrier
//                                           all threads read the results
//
// The barriers of both blocks and the release and fence between them order the results of all threads before the reads
// of all threads.
#pragma once

#include "rt/exec/edge_counter.cuh"
#include "rt/exec/veu.cuh"

namespace rt {

// Waits for `count` flags and counters: the first ones are staged in shared memory, `all` are in the program tables.
template <class Program>
RT_DEVICE void VEU<Program>::wait(const Wait* staged, const Wait* all, uint32_t count, Place p) {
  if (tid_ < 32) {
    delay(Pause::kWait, p.order);
    RT_NO_UNROLL
    for (uint32_t first = 0; first < count; first += 32) {
      const uint32_t n = first + static_cast<uint32_t>(tid_);
      Wait w{0, 0};
      if (n < count) w = n < kStagedWaits ? staged[n] : all[n];
      poll(n < count, w, p);
    }
    detail::fence_acq_rel_gpu();
  }
  detail::block_barrier(threads_);
}

// Each lane polls a word, if it has one (`mine`). All lanes leave together, when the words of all have come.
template <class Program>
RT_DEVICE void VEU<Program>::poll(bool mine, Wait w, Place p) {
  const uint64_t* flag = line(w.veu & ~kCounterWait);
  const uint64_t target = w.veu & kCounterWait ? counter_target(w) : flag_target(w);
  detail::Patience patience(l_.patience_ns);
  for (;;) {
    const uint64_t seen = mine ? detail::load_relaxed_gpu(flag) : target;
    if (detail::all_lanes(seen >= target)) return;
    patience.spent(seen < target, l_.reports,
                   Report{kWaitReport, l_.segment, veu_, p.order, w.veu, w.order, p.op, p.rtask, target, seen});
  }
}

// The value of a vEU's flag once its step has been published.
template <class Program>
RT_DEVICE uint64_t VEU<Program>::flag_target(Wait w) const {
  return epoch_ + w.order + 1;
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
