// Near steps: those of an rKernel all of whose operands are in the vEU's slots, or in memory that the
// program does not write, and whose results go to slots of its cluster, or to memory. Every thread takes
// its own operands from the slots, computes, and stores the results into the shared memory of those who
// wait for them. A warp waits for what its own threads take and goes on: no barrier is on the way. That takes
// that a word is only ever stored by the warp of the same number as the one that takes it: as far as a step
// follows from another, so does each warp's part, and a warp that sees a result knows that the words before it
// are free. Code generation marks near steps in programs of which this is true, and in no others.
#pragma once

#include "rt/device/device.cuh"

namespace rt {

// rKernels that have them.
template <class K>
concept HasNear = requires { K::kNear; };

// A Move's second half, in one access.
struct alignas(16) SlotEnd {
  uint16_t count, kind;
  uint32_t slot, ranks, gate;
  RT_DEVICE explicit SlotEnd(const Move& m) { memcpy(this, __builtin_assume_aligned(&m.count, 16), 16); }
};

}  // namespace rt
