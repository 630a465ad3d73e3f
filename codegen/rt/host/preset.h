// For tests: a context that begins as if it had run many inferences before. Counters that wrap, or that a program takes
// for something else once they are large, would otherwise show after hours or years.
#pragma once

#include <cstdint>
#include <vector>

#include "rt/exec/step_array.cuh"
#include "rt/exec/launch_args.cuh"
#include "rt/host/environment.h"
#include "rt/host/model.h"

namespace rt {

// How many inferences there were before the context's first one, by RAMMER_LAUNCHES_BEFORE. The emulator and debug
// builds ask for it; in other builds there were none.
inline uint64_t launches_before() {
#if defined(RT_DEBUG) || !defined(__CUDACC__)
  return environment("RAMMER_LAUNCHES_BEFORE", 0);
#else
  return 0;
#endif
}

// Sets a segment's step array to what so many launches leave behind. steps are the segment's table, lines begins with
// the line of vEU 0 and ends with the guard's.
inline void preset_lines(const SegmentRow& seg, uint64_t launches, const std::vector<Step>& steps, uint64_t* lines) {
  const size_t veus = static_cast<size_t>(seg.veus), counters = static_cast<size_t>(seg.counters);
  for (size_t v = 0; v < veus; ++v) {
    uint64_t* const line = lines + v * kFlagStride;
    line[0] = line[kEpochWord] = launches * seg.max_steps;
    line[kLaunchesWord] = launches;
  }
  for (const Step& s : steps) {
    if (s.add != 0) lines[s.add * kFlagStride] += launches;
  }
  lines[(veus + counters) * kFlagStride] = launches * veus;
}

// Tagged words that so many launches leave behind: those of the latest, with payloads that are NaNs, so that a word
// which is taken too early shows in results.
inline void preset_words(uint64_t launches, std::vector<uint64_t>& words) {
  for (uint64_t& w : words) w = static_cast<uint64_t>(tag_of_launch(launches - 1)) << 32 | 0xffffffffu;
}

}  // namespace rt
