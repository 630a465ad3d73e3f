// The program tables as the executor reads them, and what a launch is told. Code generation writes the
// tables into the weights file in this form (codegen/tables.go).
#pragma once

#include "rt/device/device.cuh"
#include "rt/exec/step_array.cuh"
#include "rt/trace/trace.cuh"

namespace rt {

// One entry of prog[vEU].
struct alignas(16) Step {
  uint32_t op;           // rOperator, as a row of the program's arguments
  uint32_t rtask;        // its rTask
  uint32_t args;         // byte offset of the rOperator's Args; filled in when the tables are loaded
  uint32_t wait_begin;   // first of its waits; even, so that pairs are 16-byte aligned
  uint16_t wait_count;
  uint16_t instance;     // case of the switch over rKernel instances
  uint16_t args_words;   // 16-byte words of its Args; filled in when the tables are loaded
  uint16_t signal;       // somebody waits for this step
  uint32_t stream;       // its weight block in the weights space, in units of 16 bytes
  uint32_t stream_words;  // length of the block in units of 16 bytes; 0: the rTask streams nothing
  uint32_t move_begin;   // its imports, then its exports
  uint16_t imports, exports;
  uint32_t run;          // this many steps from here on share what their instance keeps on chip; 0: it keeps nothing
  uint32_t add;          // line of the counter that its completion adds one to; 0: it adds to none
  uint32_t chunk_words;  // into so many units of 16 bytes its weight block is cut at a time
  uint32_t chunks;       // and so many there are
  uint32_t direct;       // so many steps of the run from here on take and give tagged words only (words.cuh)
  uint32_t near;         // of a near step (near.cuh): so many of the run are near ones, and more bits
};
static_assert(sizeof(Step) == 64);
// Step::near: how many; a bit for each operand that is in memory; whether the result goes to memory, too or only.
constexpr uint32_t kNearCount = 0xffff, kNearPlain = 16, kNearPlainBits = 0x7fff, kNearToPlain = 0x80000000u;

// The step prog[veu][order] must be complete. With kCounterWait set in veu, the rest is a line of the step
// array, and the counter there must have got order additions in this launch.
struct Wait {
  uint32_t veu, order;
};
static_assert(sizeof(Wait) == 8);
constexpr uint32_t kCounterWait = 0x80000000u;

constexpr uint32_t kStagedWaits = 32;
constexpr uint32_t kMaxArgsBytes = 1024;

// What the blocks of a launch stream, in units of 16 bytes: block b the weights from at + b·stride on, words
// of them, block number last last_words. Words of 0 say nothing.
struct BlockStream {
  uint32_t at, stride, words, chunk_words;
  uint32_t last, last_words;
};

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
