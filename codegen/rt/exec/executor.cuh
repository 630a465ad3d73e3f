// The executor: what each thread of a launch does. A thread block is a vEU; its threads are the vEU's, or those of its
// loader:
//
//   guard         where it is asked for, the blocks find out whether all of them are there
//   open_slots    in clusters, the gates are made
//   loader        its warp walks the weight blocks of the vEU's steps (ring.cuh)
//   other warps   walk the steps (walk.cuh)
#pragma once

#include "rt/exec/edge_flag.cuh"
#include "rt/exec/edge_launch.cuh"
#include "rt/exec/edge_slot.cuh"
#include "rt/exec/guard.cuh"
#include "rt/exec/mode_resident.cuh"
#include "rt/exec/repeat.cuh"
#include "rt/exec/ring.cuh"
#include "rt/exec/walk.cuh"

namespace rt {

// The loader of the block. A wait that takes too long is reported by the warps that compute. The loader is only held up
// by it; it gives them twice the time before it ends the launch, and reports nothing.
template <class Program>
RT_DEVICE void run_loader(const ArgsOf<Program>& l) {
  using Layout = SharedLayout<Program>;
  typename Layout::WeightRing ring(detail::shared_base() + Layout::ring(l.shared), l.stages);
  ring.open(detail::block_threads() - 32);
  const uint32_t block = static_cast<uint32_t>(detail::block_index());
  Watch watch{Report{}, l.reports, 2 * l.patience_ns, ChunkPen(l), l.delays, l.first_veu + block};
  const char* weights = l.bases[kWeightsSpace];
  const StepRange mine = own_steps<Program>(l);
  if (Program::kSingle && (!Program::kWalked || l.weights.words > 0)) {
    load_block(ring, l.weights, mine.first, weights, watch);
  } else if constexpr (Program::kWalked && (Program::kJumps || Program::kRepeats)) {
    auto* control = reinterpret_cast<typename Layout::ControlBlock*>(detail::shared_base());
    uint32_t tests = 0;
    auto verdict = [&] {
      if (!l.persistent) return 0u;
      detail::wait_for_loader(detail::block_threads());
      return control->verdicts[tests++ % 2];
    };
    RingPlace at;
    do {
      load_weights<Program::kJumps>(ring, l.steps, mine, at, weights, watch, verdict);
    } while (Program::kRepeats && l.again && verdict() != 0);
    ring.close(watch);
  } else if constexpr (Program::kWalked && Program::kSeveralSteps) {
    RingPlace at;
    load_weights<false>(ring, l.steps, mine, at, weights, watch, [] { return 0u; });
    ring.close(watch);
  } else if constexpr (Program::kWalked) {
    if (mine.first < mine.last) load_step(ring, l.steps, mine.first, weights, watch);
  }
}

// What the thread is: the vEU's, or its loader's, which is the block's last warp.
template <class Program>
RT_DEVICE void run_role(const ArgsOf<Program>& l) {
  using Layout = SharedLayout<Program>;
  if constexpr (Layout::kHasRing) {
    const int warp = detail::same_in_warp(detail::thread_index() / 32);
    if (l.stages > 0 && 32 * warp >= detail::block_threads() - 32) return run_loader<Program>(l);
  }
  VEU<Program> veu(l);
  veu.run();
  if constexpr (Program::kRepeats) {
    if (l.again) {
      RT_NO_UNROLL
      for (uint32_t run = 0; veu.runs_again(run); ++run) veu.run();
    }
  }
  veu.finish();
}

// One thread of a thread block.
template <class Program>
RT_DEVICE void run_thread(const ArgsOf<Program>& l) {
  if constexpr (Program::kPersistent) {
    if (l.guard_ns > 0 && !all_here(l)) return;
  }
  let_next_launch<Program>(l);
  if constexpr (Program::kSlots > 0) {
    if (l.cluster > 1) open_slots<Program>(SharedLayout<Program>::kHasRing && l.stages > 0);
  }
  run_role<Program>(l);
  if constexpr (Program::kSlots > 0) {
    if (l.cluster > 1) detail::cluster_barrier();  // no word comes for a block that has ended
  }
}

}  // namespace rt
