// What a launch of the executor is told. The program tables that it names are described in rt/schema/tables.cuh.
#pragma once

#include "rt/device/device.cuh"
#include "rt/exec/step_array.cuh"
#include "rt/trace/trace.cuh"

namespace rt {

// Tensor maps of matrices of the caller, whose addresses may be others in every inference. Copy engines read them in
// the kernel's parameter. They are the last address space.
template <int Maps>
struct CallerMaps {
  struct alignas(64) TensorMap {
    char bytes[kTensorMapBytes];
  };
  TensorMap caller_maps[Maps];
};
template <>
struct CallerMaps<0> {};

// The kernel's parameter.
template <int Spaces, int Maps>
struct LaunchArgs : TraceArgs, CallerMaps<Maps> {
  // The segment's program tables, in device memory.
  const Step* steps;
  const Wait* waits;
  const Move* moves;
  const char* args;         // the Args of all rOperators; Step::args are offsets in it
  const StepRange* ranges;  // the steps of each block

  // A launch whose blocks run one step each, all of the same rOperator, says so here. Then blocks need not look these
  // up in memory that may be cold. The Args are op_words units of 16 bytes at op_args; op_words is 0 where the launch
  // is not of that kind. Block b's step is first_step + b·step_stride, unless the stride is 0; it streams what
  // `weights` says.
  uint32_t op_args, op_words, first_step, step_stride;
  BlockStream weights;

  uint32_t persistent;  // 1: an rProgram, whose vEUs wait for each other; 0: what steps follow is ordered by launches
  uint32_t segment;
  uint32_t launch;     // the number of the launch in the segment
  uint32_t first_veu;  // the vEU of block 0
  uint32_t cluster;    // how many blocks reach each other's shared memory; 0: none do
  uint32_t shared;     // bytes of shared memory for an rTask
  uint32_t stages;     // of the ring of weights; 0: the blocks have no loader and no ring
  uint32_t turn;       // of the loop that the segment is part of

  uint64_t* flags;     // the segment's step array (step_array.cuh)
  uint64_t* tagged;    // the program's tagged words
  uint64_t max_steps;  // of any vEU: the epoch grows by so much

  Report* reports;       // the watchdog's notes, one for each block, in debug builds; else one, the guard's
  uint64_t patience_ns;  // how long a wait may take, in debug builds
  uint64_t guard_ns;     // how long the blocks wait for each other before they begin (guard.cuh); 0: they need not
  uint32_t guard_line;   // of the step array
  uint32_t guard_veus;   // how many blocks must be there
  uint64_t delays;       // seed of this launch's random sleeps, in debug builds; 0: none

  // Of an rProgram that runs again and again in the launch (repeat.cuh): the bool that says so, null if it runs once,
  // and what differs between runs.
  const uint8_t* again;
  const Patch* patches;
  uint32_t patch_count;

  char* bases[Spaces];  // the address of each address space
};

template <class Program>
using ArgsOf = LaunchArgs<Program::kSpaces, Program::kCallerMaps>;

// The steps of the block that asks.
template <class Program>
RT_DEVICE StepRange own_steps(const ArgsOf<Program>& l) {
  const uint32_t b = static_cast<uint32_t>(detail::block_index());
  if (Program::kStepsSought && l.step_stride == 0) return l.ranges[b];
  const uint32_t first = l.first_step + b * l.step_stride;
  return StepRange{first, first + 1};
}

}  // namespace rt
