// The guard of persistent launches whose blocks nobody promises to have on the device all at once: before
// any work they wait for each other, for a limited time. Either all of them go on or none does.
#pragma once

#include "rt/device/device.cuh"
#include "rt/exec/tables.cuh"

namespace rt {

// In the guard's word, above the count of blocks that have come: one of them has given up. The count goes
// on from launch to launch; after giving up there is none.
constexpr uint64_t kGivenUp = uint64_t{1} << 63;

// One thread of a block announces it. The word decides for all of them, in one atomic step: the last to
// come completes the count, or one that has waited too long sets the mark before that.
template <int Spaces>
RT_DEVICE bool announce(const LaunchArgs<Spaces>& l) {
  uint64_t* const word = l.flags + static_cast<size_t>(l.guard_line) * kFlagStride;
  const uint64_t end = detail::clock_nanoseconds() + l.guard_ns;
  uint64_t seen = detail::add_gpu(word, 1) + 1;
  // Where nobody has given up, all of the guarded launches before have come. Others do not count here.
  const uint64_t all = (seen + l.guard_veus - 1) / l.guard_veus * l.guard_veus;
  for (;;) {
    if (seen & kGivenUp) return false;
    if (seen >= all) return true;
    if (detail::clock_nanoseconds() < end) {
      detail::relax();
      seen = detail::load_relaxed_gpu(word);
      continue;
    }
    const uint64_t before = detail::compare_swap_gpu(word, seen, seen | kGivenUp);
    if (before == seen) {
      *l.reports = Report{kAbsentReport, l.segment, static_cast<uint32_t>(detail::block_index()), 0, 0, 0, 0, 0, l.guard_veus,
                         l.guard_veus - (all - seen)};
      detail::fence_system();
      return false;
    }
    seen = before;
  }
}

// Called by all threads of a block, before they use shared memory.
template <int Spaces>
RT_DEVICE bool all_here(const LaunchArgs<Spaces>& l) {
  const int threads = detail::block_threads();
  uint32_t* const here = reinterpret_cast<uint32_t*>(detail::shared_base());
  if (detail::thread_index() == 0) *here = announce(l);
  detail::block_barrier(threads);
  const bool all = *here != 0;
  detail::block_barrier(threads);
  return all;
}

}  // namespace rt
