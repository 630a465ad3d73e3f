// What a program asks of the executor. An emitted Program derives from Needs and has, beside its own:
//
//   kSpaces                          address spaces
//   kMoves, kImports, kSlots         the most moves of a step, elements of the import area, words of slots
//   kStageBytes, kSharedBudget, …    the ring of weights (layout.cuh)
//   compute(veu, instance, …)        runs one rTask of an rKernel instance
//   run(veu, instance, step)         runs the steps from `step` on that share what an instance keeps on chip
#pragma once

#include <initializer_list>

#include "rt/device/types.cuh"

namespace rt {

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

  // The least shared memory of a block that shares a multiprocessor with none of its kind.
  static constexpr int kAlone = 0;

  // Parts of the executor. The code of a part that is false is left out, and its headers may be missing. The headers
  // of moves, slots and the ring may be missing where a program has none of them (codegen/parts.go).
  static constexpr bool kPersistent = true;   // rPrograms: flags, counters, the guard
  static constexpr bool kDirectSteps = true;  // mode_direct.cuh
  static constexpr bool kNearSteps = true;    // mode_near.cuh
  static constexpr bool kWalked = true;       // loaders that walk the steps of their vEU
  static constexpr bool kSingle = true;       // loaders of blocks that run one step each
};

// rKernels that take their weights from Task::stream have kStreamStep: they take a multiple of so many bytes at a time.
template <class K>
concept Streams = requires { K::kStreamStep; };

// rKernels that begin with their weights and wait for their inputs by themselves (Task::inputs, Task::wait_for_inputs):
// those that stream, and those that have kEarly.
template <class K>
concept Early = Streams<K> || requires { K::kEarly; };

// rKernels with direct steps (mode_direct.cuh) of few enough operands: kDirect, by their manifests.
template <class K>
concept HasDirect =
    requires { typename K::Place; } && K::kResults <= 2 && K::kOperands > 0 && K::kOperands <= K::kDirect;

// rKernels with near steps (mode_near.cuh).
template <class K>
concept HasNear = requires { K::kNear; };

}  // namespace rt
