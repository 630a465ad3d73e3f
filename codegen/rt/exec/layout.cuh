// The shared memory of a thread block, in this order:
//
//   Control       the executor's own: addresses, descriptors of the current step and of those ahead
//   import area   operands that the executor brings
//   slots         words that others in the cluster store; behind them words of near steps
//   gates         mbarriers of the slots, and of the turns of near steps (only with slots)
//   rTask         K::kShared bytes of the running rKernel
//   ring          stages of weights and their mbarriers (only where the launch has a loader)
#pragma once

#include "rt/device/device.cuh"
#include "rt/exec/launch_args.cuh"

namespace rt {

template <int StageBytes, bool Passing>
class Ring;  // ring.cuh

// How the tests of conditions came out, for the loader: over how many steps to jump (jump.cuh), and for all threads,
// whether the program runs again (repeat.cuh). The results of two tests are there, because somebody may read that of
// the one before while the next is made.
template <bool Tests>
struct Verdicts {};
template <>
struct Verdicts<true> {
  uint32_t verdicts[2];
};

// The executor's own shared memory. Rows of kSteps steps are in it, and the other descriptors of kOperands steps; step
// i has places i % kSteps and i % kOperands.
template <int Spaces, int ArgsBytes, int Moves, bool Tests>
struct alignas(128) Control : Verdicts<Tests> {
  static constexpr uint32_t kSteps = kStagedSteps, kOperands = kStagedOperands;
  char* bases[Spaces];
  Step ring[kSteps];
  alignas(16) char args[kOperands][ArgsBytes];
  alignas(16) Wait waits[kOperands][kStagedWaits];
  Move moves[kOperands][Moves > 0 ? Moves : 1];
};

// Where the parts begin, in bytes, and how much there is in all.
template <class Program>
struct SharedLayout {
  using ControlBlock =
      Control<Program::kSpaces, Program::kArgsBytes, Program::kMoves, Program::kJumps || Program::kRepeats>;
  RT_HOST_DEVICE static constexpr size_t aligned(size_t bytes) {
    return (bytes + kSharedAlign - 1) / kSharedAlign * kSharedAlign;
  }
  static constexpr size_t area(int floats) { return aligned(4 * static_cast<size_t>(floats)); }
  static constexpr size_t kImports = sizeof(ControlBlock);
  static constexpr size_t kSlots = kImports + area(Program::kImports);
  static constexpr size_t kGatesAt = kSlots + aligned(4 * static_cast<size_t>(Program::kSlots));
  // The mbarriers of near steps' turns (mode_near.cuh), behind those of the gates.
  static constexpr size_t kTurns = kGatesAt + sizeof(uint64_t) * kGates * kGateParts;
  static constexpr size_t kTask = kGatesAt + (Program::kSlots > 0 ? kGateBytes : 0);
  static_assert(kGatesAt + kGateBytes == aligned(kTurns + sizeof(uint64_t) * kTurnBarriers * kStagedOperands),
                "kGateBytes is what the compiler leaves room for");

  static constexpr bool kHasRing = Program::kStageBytes > 0;
  using WeightRing = Ring<kHasRing ? Program::kStageBytes : int{kSharedAlign}, Program::kPassing>;
  // Where the ring begins in a launch whose rTasks need so many bytes, and the bytes of the whole block.
  RT_HOST_DEVICE static constexpr size_t ring(size_t rtask) { return aligned(kTask + rtask); }
  static constexpr size_t bytes(int rtask, int stages) {
    const size_t task = static_cast<size_t>(rtask);
    return stages > 0 ? ring(task) + static_cast<size_t>(stages) * (Program::kStageBytes + kStageBarrierBytes)
                      : kTask + task;
  }
  // The most threads and bytes that a block of any launch has.
  static constexpr int kMostThreads = Program::kThreads + (kHasRing ? int{kLoaderThreads} : 0);
  static constexpr size_t kMostBytes = kHasRing && bytes(Program::kShared, 0) < size_t{Program::kSharedBudget}
                                           ? size_t{Program::kSharedBudget}
                                           : bytes(Program::kShared, 0);
  // The bytes that a block of so many asks for, so that it shares a multiprocessor with none of its kind.
  static constexpr size_t alone(size_t bytes) {
    return static_cast<int>(bytes) < Program::kAlone ? size_t{Program::kAlone} : bytes;
  }
  // How many stages the ring of a launch has whose blocks stream so many chunks. Blocks that stream more than the
  // largest ring holds get the largest one, since for them bytes on their way are worth more than room for the next
  // launch's ring.
  static constexpr int stages(int rtask, int chunks, bool persistent) {
    const bool largest = persistent || bytes(rtask, chunks) > static_cast<size_t>(Program::kSharedBudget);
    const size_t budget = static_cast<size_t>(largest ? Program::kSharedBudget : Program::kSideBudget);
    int n = kHasRing ? chunks : 0;
    while (n > 0 && bytes(rtask, n) > budget) --n;
    return n;
  }
};

}  // namespace rt
