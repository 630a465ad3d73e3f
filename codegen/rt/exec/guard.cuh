// The guard of rPrograms that cannot be launched cooperatively, so that nobody promises that all blocks are on the
// device at once. Before any work the blocks wait for each other, for a limited time. Then all of them go on or none
// does; the host learns which, and runs the program in waves if none did.
//
// One word decides. It counts the blocks that have come, over all guarded launches of the context:
//
//   launch of 4 blocks   4 → 5 → 6 → 7 → 8          8 is the count of this launch: all go on
//   the same, one late   4 → 5 → 6 → 7 → 7|mark     one block lost patience and set the mark: none goes on
//
// Both the last arrival and the mark are one atomic step on the word, so exactly one of the two happens first.
#pragma once

#include "rt/device/device.cuh"
#include "rt/exec/launch_args.cuh"

namespace rt {

// The mark. After it there are no further launches before the host has cleared the word.
constexpr uint64_t kGivenUp = uint64_t{1} << 63;

// One thread of each block calls this. Returns whether the launch goes on.
template <int Spaces, int Maps>
RT_DEVICE bool announce(const LaunchArgs<Spaces, Maps>& l) {
  uint64_t* const word = l.flags + static_cast<size_t>(l.guard_line) * kFlagStride;
  const uint64_t end = detail::clock_nanoseconds() + l.guard_ns;
  uint64_t seen = detail::add_gpu(word, 1) + 1;
  // All blocks of all guarded launches before have come, else there would be the mark. So the count at which all of
  // this launch's blocks have come is the next multiple of their number.
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
      const uint32_t block = static_cast<uint32_t>(detail::block_index());
      *l.reports = Report{kAbsentReport, l.segment, block, 0, 0, 0, 0, 0, l.guard_veus, l.guard_veus - (all - seen)};
      detail::fence_system();
      return false;
    }
    seen = before;
  }
}

// The same for all threads of a block, which call this before they use shared memory.
template <int Spaces, int Maps>
RT_DEVICE bool all_here(const LaunchArgs<Spaces, Maps>& l) {
  const int threads = detail::block_threads();
  uint32_t* const here = reinterpret_cast<uint32_t*>(detail::shared_base());
  if (detail::thread_index() == 0) *here = announce(l);
  detail::block_barrier(threads);
  const bool all = *here != 0;
  detail::block_barrier(threads);
  return all;
}

}  // namespace rt
