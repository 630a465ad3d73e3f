// Near steps: those of an rKernel all of whose operands are in the vEU's slots, or in memory that the
// program does not write, and whose results go to slots of its cluster, or to memory. Every thread takes
// its own operands from the slots, computes, and stores the results into the shared memory of those who
// wait for them: on the way from one vEU to the next there is one barrier, which says that all threads have
// taken theirs, so that who sees a result knows that the words before it are free.
#pragma once

#include "rt/device.cuh"

namespace rt {

// rKernels that have them.
template <class K>
concept HasNear = requires { K::kNear; };

// What a thread knows of a near step: it has two elements of each operand.
template <int Operands>
struct NearPlace {
  uint32_t in_slots;         // a bit for each operand that comes in a slot
  uint32_t word[Operands];   // the first of its words there
  float x[Operands][2];      // operands; those from memory are asked for a step ahead
  uint32_t* to;              // words of the result
  uint32_t ranks;            // in whose slots
  float* plain;              // in memory; may be null
  bool mine;                 // whether the thread has elements
};

// Takes what is in slots once all of it has come; until then, waiting() after each look.
template <int Operands, class Waiting>
RT_DEVICE void take_near(uint32_t* slots, NearPlace<Operands>& p, Waiting waiting) {
  uint32_t v[Operands][2];
  for (;;) {
    uint32_t most = 0;  // empty words have all bits
    RT_UNROLL
    for (int k = 0; k < Operands; ++k) {
      if ((p.in_slots >> k & 1) == 0) continue;
      detail::load_own(slots + p.word[k], v[k]);
    }
    RT_UNROLL
    for (int k = 0; k < Operands; ++k) {
      if ((p.in_slots >> k & 1) == 0) continue;
      const uint32_t larger = v[k][0] > v[k][1] ? v[k][0] : v[k][1];
      most = most > larger ? most : larger;
    }
    if (most != kEmptyWord) break;
    waiting();
  }
  RT_UNROLL
  for (int k = 0; k < Operands; ++k) {
    if ((p.in_slots >> k & 1) == 0) continue;
    detail::store_own(slots + p.word[k], kEmptyWord);
    memcpy(p.x[k], v[k], sizeof v[k]);
  }
}

template <int Operands>
RT_DEVICE void give_near(const NearPlace<Operands>& p, const float (&y)[2]) {
  uint32_t bits[2];
  memcpy(bits, y, sizeof bits);
  detail::store_near(p.to, p.ranks, near_bits(bits[0]), near_bits(bits[1]));
  if (p.plain) p.plain[0] = y[0], p.plain[1] = y[1];
}

}  // namespace rt
