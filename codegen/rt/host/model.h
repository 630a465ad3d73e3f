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

// How a launch is ordered with those before it on its stream.
enum class LaunchKind {
  kCooperative,  // an rProgram, after all launches before; the device starts all of its vEUs at once, or refuses
  kGuarded,      // an rProgram, after all launches before; its vEUs find out whether all of them are there
  kDependent,    // after all launches before
  kOverlapping,  // after all launches before, but its blocks may start while the last of them ends
};

// What a device can hold of a program.
struct Residency {
  int veus;          // how many vEUs at once, on the multiprocessors that are this process's
  bool cooperative;  // whether launches can be cooperative
  bool tenants;      // whether kernels of other processes run beside this one's (MPS)
};

// NAME_options of the C interface, and what tests set.
struct Options {
  const char* weights_path = nullptr;  // null: beside the library
  int device = -1;                     // -1: the current one
  int mode = kAutoMode;
  uint64_t seed = 0;     // emulator: order of threads; 0 asks the environment
  int max_resident = 0;  // emulator: co-resident blocks; 0 asks the environment
  // The extents that the program takes, as JSON; null for a program that is the only one of its library.
  const char* program = nullptr;
  uint64_t patience_ns = 0;  // debug builds: how long a wait may take; 0 is ten seconds
  uint64_t delays = 0;       // debug builds: seed of random sleeps; 0 is none
};

}  // namespace rt
