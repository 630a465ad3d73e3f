// What the host side works with, beside the rows that the emitted program consists of (rt/schema/library.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "rt/exec/launch_args.cuh"
#include "rt/schema/library.h"

namespace rt {

// Thrown inside the library; the C interface turns it into a status and a message.
struct Error {
  int code;
  std::string text;
};

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
  uint64_t seed = 0;         // emulator: order of threads; 0 asks the environment
  int max_resident = 0;      // emulator: co-resident blocks; 0 asks the environment
  uint64_t patience_ns = 0;  // debug builds: how long a wait may take; 0 is ten seconds
  uint64_t delays = 0;       // debug builds: seed of random sleeps; 0 is none
};

}  // namespace rt
