// What a launch tells the host when it cannot go on.
#pragma once

#include "rt/device/types.cuh"

namespace rt {

// Where a vEU waits, and for what.
struct Report {
  uint32_t set;                 // a ReportKind; 0: nothing to report
  uint32_t segment, veu, step;  // who waits
  uint32_t on_veu, on_order;    // what for; the kind says how to read it
  uint32_t op, rtask;           // the rTask that would run then
  uint64_t expected, seen;      // the value that is waited for, and the latest one that was seen
};

enum ReportKind : uint32_t {
  kWaitReport = 1,     // waits for a flag or a counter: on_veu and on_order are those of a Wait
  kTaggedReport = 2,   // waits for tagged word number on_order; the values are tags
  kWeightsReport = 3,  // waits for stage on_order of the ring to be filled; the values count fillings
  kAbsentReport = 4,   // no wait: the guard gave up, since `seen` of `expected` vEUs came
  kNearReport = 5,     // waits for word on_order of the vEU's slots
};

}  // namespace rt
