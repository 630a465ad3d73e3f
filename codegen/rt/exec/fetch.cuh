// Descriptors: a step's row, the Args of its rOperator, its waits and its moves. The vEU's last warp copies them from
// the program tables into shared memory while earlier steps run. A step's row says where the rest is, so it comes
// first:
//
//   while step i runs     the row of step i + 4, and Args, waits and moves of step i + 2 are asked for
//   at the end of i + 1   all that was asked for while step i ran has landed: every step but the latest has settled
//
// What is in shared memory while step k runs, and who may still read it:
//
//   step                             k - 2   k - 1   k           k + 1    k + 2       k + 3    k + 4
//   row, 8 places                    free    late    read        landed   landed      coming   asked for
//   Args, waits, moves, 4 places     free    late    read        coming   asked for
//   operands, one import area                free    stored and
//                                                    then read
//
// Only the last warp reads descriptors of steps ahead; in direct steps the others look at those of step k + 1, too,
// when it has told them that they are there. The row of step k + 4 takes the place of that of k - 4, and the other
// descriptors of k + 2 take the place of those of k - 2. Nobody reads these any more: in plain and resident steps all
// warps meet at a block barrier at the end of every step, so all are at step k. In direct and near steps the warps that
// compute may be late and still be at step k - 1; there the last warp waits until all have used what step k - 2 had.
//
// The import area has room for one step. Warps store operands of step k behind the barrier at the end of step k - 1,
// read them behind the barrier of bring (imports.cuh), and have read them when they meet at the end of step k. Direct
// and near steps do not use it, and a run of them ends with a block barrier.
#pragma once

#include "rt/exec/veu.cuh"

namespace rt {

static_assert(kStagedSteps >= 6, "the rows of steps k - 1 to k + 4 are there at once");
static_assert(kStagedOperands >= 4, "the other descriptors of steps k - 1 to k + 2 are there at once");

// The rows of N steps from i on, 16 bytes by each lane.
template <class Program>
template <int N>
RT_DEVICE void VEU<Program>::fetch_steps(uint32_t i) {
  constexpr int kLanes = sizeof(Step) / 16;
  static_assert(N * kLanes <= 32);
  const int lane = tid_ % 32;
  if (N > 1) i += static_cast<uint32_t>(lane / kLanes);
  if (i < last_ && fetches() && lane < N * kLanes) {
    cp_async16(reinterpret_cast<char*>(&c_.ring[i % c_.kSteps]) + 16 * (lane % kLanes),
               reinterpret_cast<const char*>(l_.steps + i) + 16 * (lane % kLanes));
  }
}

// The Args of step i, by so many lanes.
template <class Program>
template <int Lanes>
RT_DEVICE void VEU<Program>::fetch_args(uint32_t i, uint32_t at, uint32_t words) {
  if (!fetches()) return;
  RT_NO_UNROLL
  for (uint32_t w = static_cast<uint32_t>(tid_) % Lanes; w < words; w += Lanes) {
    cp_async16(c_.args[i % c_.kOperands] + 16 * w, l_.args + at + 16 * w);
  }
}

// How many of a step's waits are staged in shared memory. As 32 bits: nvcc makes more of a minimum of 16.
RT_DEVICE int staged_waits(uint32_t count) { return static_cast<int>(count < kStagedWaits ? count : kStagedWaits); }

// Args, moves and the first waits of N steps from i on, whose rows are there. The steps share the warp's lanes.
template <class Program>
template <int N>
RT_DEVICE void VEU<Program>::fetch_operands(uint32_t i) {
  constexpr int kLanes = 32 / N;
  if (N > 1) i += static_cast<uint32_t>(tid_ % 32 / kLanes);
  if (i >= last_ || !fetches()) return;
  const int lane = tid_ % kLanes;
  const Step s = c_.ring[i % c_.kSteps];
  fetch_args<kLanes>(i, s.args, s.args_words);
  if constexpr (Program::kMoves > 0) {
    RT_NO_UNROLL
    for (int w = lane; w < 2 * (s.imports + s.exports); w += kLanes) {
      cp_async16(reinterpret_cast<char*>(c_.moves[i % c_.kOperands]) + 16 * w,
                 reinterpret_cast<const char*>(l_.moves + s.move_begin) + 16 * w);
    }
  }
  if (persistent()) {
    const int pairs = (staged_waits(s.wait_count) + 1) / 2;
    RT_NO_UNROLL
    for (int w = lane; w < pairs; w += kLanes) {
      cp_async16(&c_.waits[i % c_.kOperands][2 * w], l_.waits + s.wait_begin + 2 * w);
    }
  }
}

// What the first steps need, which has not been fetched while others ran: two ways to memory, or one where the launch
// has told where the Args of its only step are.
template <class Program>
RT_DEVICE void VEU<Program>::fetch_first() {
  constexpr int kRows = Program::kSeveralSteps ? 4 : 1, kOthers = Program::kSeveralSteps ? 2 : 1;
  fetch_steps<kRows>(first_);
  if (Program::kArgsTold && l_.op_words > 0) fetch_args(first_, l_.op_args, l_.op_words);
  cp_async_commit();
  settle();
  if constexpr (Program::kArgsSought) {
    if (l_.op_words > 0) return;
    fetch_operands<kOthers>(first_);
    cp_async_commit();
    settle();
  }
}

// What step i and those behind it need, where the walk goes on with it after a jump.
template <class Program>
RT_DEVICE void VEU<Program>::fetch_from(uint32_t i) {
  fetch_steps<4>(i);
  cp_async_commit();
  settle();
  fetch_operands<2>(i);
  cp_async_commit();
  settle();
}

// Makes i the current step, and starts the copies of what later steps need.
template <class Program>
RT_DEVICE void VEU<Program>::prefetch(uint32_t i) {
  now_ = i;
  if (!Program::kSeveralSteps || !fetches()) return;
  fetch_operands(i + 2);
  fetch_steps(i + 4);
  cp_async_commit();
}

}  // namespace rt
