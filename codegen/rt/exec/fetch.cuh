// Descriptors: a step's row, the Args of its rOperator, its waits and its moves. The vEU's last warp copies them from
// the program tables into shared memory while earlier steps run. A step's row says where the rest is, so it comes
// first:
//
//   while step i runs     the row of step i + 4, and Args, waits and moves of step i + 2 are asked for
//   at the end of i + 1   all that was asked for while step i ran has landed: every step but the latest has settled
//
// Shared memory has room for the rows of 8 steps and the other descriptors of 4, so nothing is overwritten that a
// thread may still read.
#pragma once

#include "rt/exec/veu.cuh"

namespace rt {

template <class Program>
RT_DEVICE void VEU<Program>::fetch_step(uint32_t i) {
  const int lane = tid_ % 32;
  if (i < last_ && fetches() && lane < static_cast<int>(sizeof(Step) / 16)) {
    cp_async16(reinterpret_cast<char*>(&c_.ring[i % c_.kSteps]) + 16 * lane,
               reinterpret_cast<const char*>(l_.steps + i) + 16 * lane);
  }
}

template <class Program>
RT_DEVICE void VEU<Program>::fetch_args(uint32_t i, uint32_t at, uint32_t words) {
  if (!fetches()) return;
  RT_NO_UNROLL
  for (uint32_t w = static_cast<uint32_t>(tid_) % 32; w < words; w += 32) {
    cp_async16(c_.args[i % c_.kOperands] + 16 * w, l_.args + at + 16 * w);
  }
}

// How many of a step's waits are staged in shared memory. As 32 bits: nvcc makes more of a minimum of 16.
RT_DEVICE int staged_waits(uint32_t count) { return static_cast<int>(count < kStagedWaits ? count : kStagedWaits); }

// Args, moves and the first waits of step i, whose row is there.
template <class Program>
RT_DEVICE void VEU<Program>::fetch_operands(uint32_t i) {
  if (i >= last_ || !fetches()) return;
  const int lane = tid_ % 32;
  const Step s = c_.ring[i % c_.kSteps];
  fetch_args(i, s.args, s.args_words);
  if constexpr (Program::kMoves > 0) {
    RT_NO_UNROLL
    for (int w = lane; w < 2 * (s.imports + s.exports); w += 32) {
      cp_async16(reinterpret_cast<char*>(c_.moves[i % c_.kOperands]) + 16 * w,
                 reinterpret_cast<const char*>(l_.moves + s.move_begin) + 16 * w);
    }
  }
  if (persistent()) {
    const int pairs = (staged_waits(s.wait_count) + 1) / 2;
    RT_NO_UNROLL
    for (int w = lane; w < pairs; w += 32) {
      cp_async16(&c_.waits[i % c_.kOperands][2 * w], l_.waits + s.wait_begin + 2 * w);
    }
  }
}

// Makes i the current step, and starts the copies of what later steps need.
template <class Program>
RT_DEVICE void VEU<Program>::prefetch(uint32_t i) {
  now_ = i;
  if (!fetches()) return;
  fetch_operands(i + 2);
  fetch_step(i + 4);
  cp_async_commit();
}

}  // namespace rt
