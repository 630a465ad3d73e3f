// What a program asks of the executor. An emitted Program derives from Needs and has, beside its own:
//
//   Kernels                          its CUDA kernels, a struct each; the first one is that of rPrograms
//   kSpaces                          address spaces
//   kCallerMaps                      tensor maps of matrices of the caller
//   kMoves, kImports, kSlots         the most moves of a step, elements of the import area, words of slots
//   kStageBytes, kSharedBudget, …    the ring of weights (layout.cuh)
//
// The struct of a kernel derives from Program. The executor is instantiated with it, and it has, beside its own:
//
//   kBlocksPerSM                     how many of its blocks a multiprocessor must have registers for
//   kSideBudget                      the shared memory of a block of launches that overlap
//   compute(veu, instance, …)        runs one rTask of an rKernel instance
//   run(veu, instance, step)         runs the steps from `step` on that share what an instance keeps on chip
//
// Where instances need very different numbers of registers, a kernel has those of its own launches alone, and hides
// constants of Program, such as kThreads, by what these launches need.
#pragma once

#include <initializer_list>

#include "rt/device/types.cuh"

namespace rt {

// rKernels that take their weights from Task::stream have kStreamStep: they take a multiple of so many bytes at a time.
template <class K>
concept Streams = requires { K::kStreamStep; };

// rKernels that begin with their weights and wait for their inputs by themselves (Task::inputs, Task::wait_for_inputs):
// those that stream, and those that have kEarly.
template <class K>
concept Early = Streams<K> || requires { K::kEarly; };

// The most that the rKernel instances of a program need. A Program hides the constants behind them where it knows
// better.
template <class... Kernels>
struct Needs {
  static constexpr int most(int least, std::initializer_list<int> all) {
    for (const int n : all) least = n > least ? n : least;
    return least;
  }
  static constexpr int kThreads = most(32, {Kernels::kThreads...});
  static constexpr int kShared = most(0, {Kernels::kShared...});
  static constexpr int kArgsBytes = (most(16, {static_cast<int>(sizeof(typename Kernels::Args))...}) + 15) / 16 * 16;

  // Tensor maps that launches have in their parameter (launch_args.cuh).
  static constexpr int kCallerMaps = 0;

  // Whether rKernels poll and store tagged words themselves.
  static constexpr bool kWords = false;

  // The most rules of an rOperator, and members of Args that follow from what the device finds (live.cuh).
  static constexpr int kRules = 0, kMembers = 0;

  // Whether an instance begins early; false for those that have no bit in a word.
  RT_HOST_DEVICE static constexpr uint64_t early_ones() {
    uint64_t ones = 0;
    int i = 0;
    ((ones |= Early<Kernels> && i < 64 ? uint64_t{1} << i : 0, ++i), ...);
    return ones;
  }
  RT_DEVICE static bool early(uint32_t instance) {
    constexpr uint64_t kOnes = early_ones();
    return instance < 64 && (kOnes >> instance & 1) != 0;
  }

  // The least shared memory of a block that shares a multiprocessor with none of its kind.
  static constexpr int kAlone = 0;

  // Parts of the executor. The code of a part that is false is left out, and where no kernel has it, its headers may be
  // missing. Each kernel has constants of its own, by what its launches use (codegen/parts.go). The headers of moves,
  // slots and the ring may be missing where a program has none of them.
  static constexpr bool kPersistent = true;    // rPrograms: flags, counters, the guard
  static constexpr bool kHasResident = true;   // mode_resident.cuh
  static constexpr bool kDirectSteps = true;   // mode_direct.cuh
  static constexpr bool kNearSteps = true;     // mode_near.cuh
  static constexpr bool kJumps = true;         // jump.cuh
  static constexpr bool kRepeats = true;       // repeat.cuh
  static constexpr bool kWalked = true;        // loaders that read the step table
  static constexpr bool kSingle = true;        // loaders of launches that tell them what each block needs
  static constexpr bool kSeveralSteps = true;  // blocks of several steps, whose descriptors are fetched ahead
  static constexpr bool kArgsTold = true;      // launches with LaunchArgs::op_words
  static constexpr bool kArgsSought = true;    // launches without
  static constexpr bool kStepsSought = true;   // launches without LaunchArgs::step_stride
};

// The CUDA kernels of a program.
template <class... K>
struct Kernels {
  static constexpr int kCount = sizeof...(K);
  // Calls body with a null pointer to the struct of kernel `number`, or of each kernel in order.
  template <class Body>
  static void one(int number, Body body) {
    int i = 0;
    ((i++ == number ? body(static_cast<K*>(nullptr)) : void()), ...);
  }
  template <class Body>
  static void each(Body body) {
    (body(static_cast<K*>(nullptr)), ...);
  }
};

// rKernels with direct steps (mode_direct.cuh) of few enough operands: kDirect, by their manifests.
template <class K>
concept HasDirect =
    requires { typename K::Place; } && K::kResults <= 2 && K::kOperands > 0 && K::kOperands <= K::kDirect;

// rKernels with near steps (mode_near.cuh).
template <class K>
concept HasNear = requires { K::kNear; };

}  // namespace rt
