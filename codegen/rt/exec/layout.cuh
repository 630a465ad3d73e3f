// What a thread block has in shared memory: the executor's own part, the import area, slots, the rTask's, and
// the ring of weights.
#pragma once

#include "rt/device/device.cuh"
#include "rt/exec/ring.cuh"
#include "rt/exec/tables.cuh"

namespace rt {

// The executor's own shared memory: beside what the current step needs, what is on its way for later ones.
template <int Spaces, int ArgsBytes, int Moves>
struct alignas(128) Control {
  static constexpr uint32_t kSteps = kStagedSteps, kOperands = kStagedOperands;
  char* bases[Spaces];
  Step ring[kSteps];
  alignas(16) char args[kOperands][ArgsBytes];
  alignas(16) Wait waits[kOperands][kStagedWaits];
  Move moves[kOperands][Moves > 0 ? Moves : 1];
};

// A vEU's shared memory: the executor's, the import area, the slots and their gates, the rTask's, the ring of weights.
template <class Program>
struct SharedLayout {
  using ControlBlock = Control<Program::kSpaces, Program::kArgsBytes, Program::kMoves>;
  RT_HOST_DEVICE static constexpr size_t aligned(size_t bytes) {
    return (bytes + kSharedAlign - 1) / kSharedAlign * kSharedAlign;
  }
  static constexpr size_t area(int floats) { return aligned(4 * static_cast<size_t>(floats)); }
  static constexpr size_t kImports = sizeof(ControlBlock);
  static constexpr size_t kSlots = kImports + area(Program::kImports);
  static constexpr size_t kGatesAt = kSlots + aligned(4 * static_cast<size_t>(Program::kSlots));
  // The gates, and the mbarriers of near steps' turns (executor.cuh).
  static constexpr size_t kTurns = kGatesAt + sizeof(uint64_t) * kGates * kGateParts;
  static constexpr size_t kTask = kGatesAt + (Program::kSlots > 0 ? kGateBytes : 0);
  static_assert(kGatesAt + kGateBytes == aligned(kTurns + sizeof(uint64_t) * kTurnBarriers * kStagedOperands),
                "kGateBytes is what the compiler leaves room for");

  static constexpr bool kHasRing = Program::kStageBytes > 0;
  using WeightRing = Ring<kHasRing ? Program::kStageBytes : int{kSharedAlign}>;
  // Where rTasks need so much.
  RT_HOST_DEVICE static constexpr size_t ring(size_t rtask) { return aligned(kTask + rtask); }
  static constexpr size_t bytes(int rtask, int stages) {
    const size_t task = static_cast<size_t>(rtask);
    return stages > 0 ? ring(task) + WeightRing::bytes(stages) : kTask + task;
  }
  // Of any launch.
  static constexpr int kMostThreads = Program::kThreads + (kHasRing ? int{kLoaderThreads} : 0);
  static constexpr size_t kMostBytes = kHasRing && bytes(Program::kShared, 0) < size_t{Program::kSharedBudget}
                                           ? size_t{Program::kSharedBudget}
                                           : bytes(Program::kShared, 0);
  // What a block takes that shares a multiprocessor with none of its kind.
  static constexpr size_t alone(size_t bytes) { return static_cast<int>(bytes) < Program::kAlone ? size_t{Program::kAlone} : bytes; }
  // How many stages a launch has whose blocks stream so many chunks. Blocks that stream more than any ring
  // holds take the largest: bytes on their way count for more than room for the next launch's ring.
  static constexpr int stages(int rtask, int chunks, bool persistent) {
    const bool largest = persistent || bytes(rtask, chunks) > static_cast<size_t>(Program::kSharedBudget);
    const size_t budget = static_cast<size_t>(largest ? Program::kSharedBudget : Program::kSideBudget);
    int n = kHasRing ? chunks : 0;
    while (n > 0 && bytes(rtask, n) > budget) --n;
    return n;
  }
};

}  // namespace rt
