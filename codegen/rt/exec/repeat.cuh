// A program that runs again and again in one launch, such as the steps of a search: while a bool that each run computes
// is true. Between two runs all vEUs meet, since a run writes what others of the run before have read:
//
//   every vEU          adds one to the arrivals, when all its steps are complete
//   the last to come   writes what the next run is told (Patch), reads the bool, publishes the verdict
//   every vEU          polls the verdict, and goes on or ends; so does its loader
//
// Both words are on the guard's line of the step array, and neither is ever reset. Of arrivals it is enough to know
// which one is the last. The verdict behind run number n of the context, counted from 0, is 2·(n + 1) + 1 if another
// one follows, and 2·(n + 1) if not. Flags, counters and tags go on as they do from launch to launch.
#pragma once

#include "rt/exec/veu.cuh"

namespace rt {

constexpr uint32_t kArrivalsWord = 4;  // in the guard's line
constexpr uint32_t kVerdictWord = 8;

// Called by all threads behind run number `run` of the launch, counted from 0. Returns whether another one follows.
template <class Program>
RT_DEVICE bool VEU<Program>::runs_again(uint32_t run) {
  uint32_t* const heard = &c_.verdicts[tests_ % 2];
  detail::block_barrier(threads_);  // the vEU's steps are complete
  if (fetches()) {
    uint64_t* const words = line(l_.guard_line);
    const uint64_t verdict = 2 * (launches_ + 1);
    const int lane = tid_ % 32;
    uint32_t last = 0;
    if (lane == 0) {
      detail::fence_acq_rel_gpu();
      last = (detail::add_gpu(words + kArrivalsWord, 1) + 1) % l_.guard_veus == 0;
      detail::fence_acq_rel_gpu();
    }
    detail::sync_warp();
    if (detail::shfl(last, 0) != 0) patch(run + 1, verdict);
    const uint64_t told = await_verdict(words + kVerdictWord, verdict);
    detail::fence_acq_rel_gpu();
    if (lane == 0) *heard = static_cast<uint32_t>(told & 1);
  }
  detail::block_barrier(threads_);
  const bool again = *heard != 0;
  ++tests_;
  if constexpr (Layout::kHasRing) {
    if (l_.stages > 0) detail::wait_for_loader(detail::block_threads());
  }
  if (again) epoch_ += l_.max_steps, ++launches_;
  return again;
}

// The last vEU's part, of one warp: the next run is `run`, or the first of the next launch.
template <class Program>
RT_DEVICE void VEU<Program>::patch(uint32_t run, uint64_t verdict) {
  const uint32_t again = *l_.again;
  char* const args = const_cast<char*>(l_.args);
  RT_NO_UNROLL
  for (uint32_t i = static_cast<uint32_t>(tid_) % 32; i < l_.patch_count; i += 32) {
    const Patch p = l_.patches[i];
    *reinterpret_cast<uint32_t*>(args + p.at) = p.first + (again ? run : 0) * p.step;
  }
  detail::sync_warp();
  if (tid_ % 32 == 0) {
    detail::fence_acq_rel_gpu();
    detail::store_release_gpu(line(l_.guard_line) + kVerdictWord, verdict + again);
  }
}

// All lanes of a warp wait for the verdict.
template <class Program>
RT_DEVICE uint64_t VEU<Program>::await_verdict(const uint64_t* word, uint64_t verdict) const {
  detail::Patience patience(l_.patience_ns);
  for (;;) {
    const uint64_t seen = detail::load_relaxed_gpu(word);
    if (detail::all_lanes(seen >= verdict)) return seen;
    patience.spent(
        seen < verdict, l_.reports,
        Report{kWaitReport, l_.segment, veu_, static_cast<uint32_t>(l_.max_steps), 0, 0, 0, 0, verdict, seen});
  }
}

}  // namespace rt
