// What a step waits for: flags of other vEUs and counters, words of the step array (rt/exec/step_array.cuh). The
// executor waits before the rTask, or an rKernel that begins early does so itself, when it asks for its inputs
// (Task::inputs).
#pragma once

#include "rt/device/backend.cuh"
#include "rt/device/report.cuh"
#include "rt/device/types.cuh"
#include "rt/schema/memory.cuh"
#include "rt/schema/tables.cuh"

namespace rt {

constexpr uint32_t kFlagStride = 16;  // words in a line of the step array

struct Pending {
  const Wait* staged;  // the first ones, in shared memory
  const Wait* all;     // and all of them, in the program tables
  uint32_t count;      // 0: nothing to wait for
  int threads;         // that the vEU computes with; all of them wait together
  uint64_t* lines;     // the step array
  uint64_t epoch, launches;
  uint64_t patience_ns;
  Report* reports;
  Report report;  // for the watchdog: who waits

  // Waits until all have come. All threads may read then what was published.
  RT_DEVICE void wait(int tid) const {
    if (tid < 32) {
      RT_NO_UNROLL
      for (uint32_t first = 0; first < count; first += 32) {
        const uint32_t n = first + static_cast<uint32_t>(tid);
        Wait w{0, 0};
        if (n < count) w = n < kStagedWaits ? staged[n] : all[n];
        poll(n < count, w);
      }
    }
    detail::block_barrier(threads);
  }

 private:
  // Each lane polls a word, if it has one (`mine`). All lanes leave together, when the words of all have come.
  RT_DEVICE void poll(bool mine, Wait w) const {
    const uint64_t* flag = lines + (w.veu & ~kCounterWait) * kFlagStride;
    // A flag counts from the epoch. A counter has been added to by all `order` steps in this launch, as in each before.
    const uint64_t target = w.veu & kCounterWait ? (launches + 1) * w.order : epoch + w.order + 1;
    detail::Patience patience(patience_ns);
    for (;;) {
      const uint64_t seen = mine ? detail::load_acquire_gpu(flag) : target;
      if (detail::all_lanes(seen >= target)) return;
      Report r = report;
      r.on_veu = w.veu, r.on_order = w.order, r.expected = target, r.seen = seen;
      patience.spent(seen < target, reports, r);
    }
  }
};

}  // namespace rt
