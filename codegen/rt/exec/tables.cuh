// What a launch of the executor is told. The program tables that it names are described in rt/schema/tables.cuh.
#pragma once

#include "rt/device/device.cuh"
#include "rt/exec/step_array.cuh"
#include "rt/trace/trace.cuh"

namespace rt {

// The kernel's parameter.
template <int Spaces>
struct LaunchArgs : TraceArgs {
  const Step* steps;
  const Wait* waits;
  const Move* moves;
  const char* args;
  const StepRange* ranges;  // what each block runs
  // What blocks that run one step each of one rOperator need not look up: its Args, op_words units of 16 bytes
  // at op_args, if that is not 0; that block b's step is first_step + b·step_stride, if the stride is not 0;
  // and what they stream.
  uint32_t op_args, op_words, first_step, step_stride;
  BlockStream weights;
  uint32_t persistent;      // an rProgram with waits; 0: ordered by launches
  uint32_t segment;
  uint32_t launch;     // among the segment's
  uint32_t first_veu;  // the vEU of block 0
  uint32_t cluster;    // blocks that reach each other's shared memory; 0: none do
  uint32_t shared;  // bytes of shared memory for an rTask
  uint32_t stages;  // of the ring of weights, which is behind; 0: the block has no loader
  uint64_t* flags;         // the segment's step array: kFlagStride words a line
  uint64_t* tagged;        // tagged words
  uint64_t max_steps;      // of any vEU: by this much the epoch grows
  Report* reports;         // debug builds: the watchdog's notes, one of every block; else the guard's
  uint64_t patience_ns;    // debug builds: how long a wait may take
  uint64_t guard_ns;       // how long the blocks wait for each other before they begin; 0: a cooperative launch needs no guard
  uint32_t guard_line;     // of the step array
  uint32_t guard_veus;     // blocks of the launch
  uint64_t delays;         // debug builds: seed of this launch's random sleeps; 0: none
  char* bases[Spaces];
};

// The steps of the block that asks.
template <class Args>
RT_DEVICE StepRange own_steps(const Args& l) {
  const uint32_t b = static_cast<uint32_t>(detail::block_index());
  if (l.step_stride == 0) return l.ranges[b];
  const uint32_t first = l.first_step + b * l.step_stride;
  return StepRange{first, first + 1};
}

}  // namespace rt
