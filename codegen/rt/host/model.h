// What the host run time knows about the program it belongs to: constant tables that code generation
// writes, and the status codes of the C interface.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "rt/exec/tables.cuh"

namespace rt {

// The values of NAME_status in the generated header.
enum StatusCode : int {
  kOk = 0,
  kBadArgument = 1,
  kWeightsMissing = 2,
  kWeightsMismatch = 3,
  kDeviceUnfit = 4,
  kOutOfMemory = 5,
  kRunFailed = 6,
  kNotResident = 7,
  kInternal = 8,
  kStuck = 9,
  kDeviceLost = 10,
  kNoDevice = 11,
};

// Thrown inside the library; the C interface turns it into a status and a message.
struct Error {
  int code;
  std::string text;
};

// One row for each rOperator of the program.
struct OpRow {
  const void* args;
  uint32_t args_bytes;
  const char* name;
  const char* kind;
  const char* nodes;  // the ONNX nodes it carries out
};

// A kernel launch: no more blocks, threads and shared memory than its rTasks need, unless it says so.
struct LaunchRow {
  int grid, threads;
  int shared;       // bytes for an rTask, beside what the executor needs
  int chunks;       // of weights that a block streams, at most; 0: no block has a loader
  bool overlap;     // may start while the launch before it on its stream ends
  bool alone;       // where it overlaps, its blocks share no multiprocessor (Program::kAlone)
  int first_veu;    // the vEU of block 0
  uint64_t ranges;  // StepRange[grid], an offset in the tables
  int stream;       // of the segment; 0 is the one that the inference is put on
  int wait_begin, wait_count;  // of the model's launch_waits: earlier launches of the segment on other streams
  bool awaited;                // by such a launch
  // Where every block runs one step, all of rOperator op; otherwise op is -1 and the rest says nothing. Block
  // b's step is first_step + b·step_stride, unless the stride is 0.
  int op;
  uint32_t first_step, step_stride;
  BlockStream weights;
};

enum SegmentKind {
  kRProgram,  // one persistent launch; further ones are its waves, for devices that do not hold it
  kWaves,     // a launch for each wave
  kGraph,     // a launch for each rOperator, one after another
  kParallel,  // a launch for each rOperator, on several streams
};

// Tables are byte offsets in the tables part of the weights file.
struct SegmentRow {
  SegmentKind kind;
  int veus, streams;
  int counters;
  int cluster;     // vEUs that make up a cluster in the rProgram; 0: none do
  int first_line;  // of an rProgram's step array, among all lines of a context
  int first_launch, launches;  // rows of the model's launches
  uint32_t max_steps;  // of any vEU
  uint64_t steps, step_count;
  uint64_t waits, wait_count;
  uint64_t moves, move_count;
};

struct PortRow {
  const char* name;
  uint64_t bytes;
};

struct Model {
  const char* name;
  const char* weights_file;
  uint64_t weights_hash;
  uint64_t weights_bytes;  // constants, from the start of the payload
  uint64_t tables_bytes;   // program tables, behind them
  uint64_t arena_bytes;
  uint64_t tagged_bytes;
  const OpRow* ops;
  int op_count;
  const SegmentRow* segments;
  int segment_count;
  const LaunchRow* launches;
  const int* launch_waits;
  const PortRow* inputs;
  int input_count;
  const PortRow* outputs;
  int output_count;
};

enum Mode : int { kAutoMode = 0, kRProgramMode = 1, kWavesMode = 2 };

// How a launch stands to the one before it in the stream.
enum class LaunchKind {
  kCooperative,  // an rProgram, after everything before: the device starts all vEUs or none
  kGuarded,      // an rProgram whose vEUs have to make sure that all are there
  kDependent,    // after everything before
  kOverlapping,  // after everything before, but its blocks may come while the launch before it ends
};

// How an rProgram can be on a device.
struct Residency {
  int veus;          // so many of its vEUs at once, on the multiprocessors that are this process's
  bool cooperative;  // a cooperative launch starts all of them or none
  bool tenants;      // kernels of other processes run beside this one's (MPS)
};

struct Options {
  const char* weights_path = nullptr;  // null: beside the library
  int device = -1;                     // -1: the current one
  int mode = kAutoMode;
  uint64_t seed = 0;        // emulator: order of threads; 0 asks the environment
  int max_resident = 0;     // emulator: co-resident blocks; 0 asks the environment
  uint64_t patience_ns = 0;  // debug builds: how long a wait may take; 0 is ten seconds
  uint64_t delays = 0;       // debug builds: seed of random sleeps; 0 is none
};

}  // namespace rt
