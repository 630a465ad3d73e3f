// Resident steps: a run of steps that share what their instance K keeps on chip, for example a block of weights in
// registers. The run is a loop of its own in the executor, and K has
//
//   Resident        what a thread keeps
//   load            loads it, once for a run
//   prepare         finds out what it can before the operands come
//   compute_rtask   computes one step
//   kFreeWarp       whether the last warp has nothing to compute in direct steps (mode_direct.cuh)
//
// Steps of a run may be direct or near ones; then the loop hands over to these modes for as many steps as are.
#pragma once

#include "rt/exec/imports.cuh"
#include "rt/exec/mode_direct.cuh"
#include "rt/exec/mode_near.cuh"
#include "rt/exec/veu.cuh"

namespace rt {

template <class Program>
template <class K>
RT_DEVICE uint32_t VEU<Program>::run_resident(uint32_t i) {
  static_assert(K::kThreads % 32 == 0 && K::kThreads <= Program::kThreads && K::kShared <= Program::kShared);
  const uint32_t left = last_ - i, n = c_.ring[i % c_.kSteps].run;
  const uint32_t stop = i + (n < left ? n : left);
  typename K::Resident kept;
  now_ = i;
  detail::poison(smem_, static_cast<int>(l_.shared), threads_);
  trace_.begin(i - first_, c_.ring[i % c_.kSteps].op, c_.ring[i % c_.kSteps].rtask);
  if (in<K>()) {
    K::load(task<K>(), *reinterpret_cast<const typename K::Args*>(c_.args[i % c_.kOperands]),
            static_cast<int>(c_.ring[i % c_.kSteps].rtask), kept);
  }
  trace_.mark(i - first_, kLoaded);
  RT_NO_UNROLL
  while (i < stop) {
    if constexpr (kHasDirect<K>) {
      if (l_.persistent && c_.ring[i % c_.kSteps].direct > 0) {
        i = run_direct<K>(i, stop);
        continue;
      }
    }
    if constexpr (kHasNear<K>) {
      if (l_.persistent && c_.ring[i % c_.kSteps].near > 0) {
        i = run_near<K>(i, stop);
        continue;
      }
    }
    detail::wait_for_launches_before();
    await(i);
    prefetch(i);
    if (in<K>()) {
      K::prepare(task<K>(), *reinterpret_cast<const typename K::Args*>(c_.args[i % c_.kOperands]),
                 static_cast<int>(c_.ring[i % c_.kSteps].rtask), kept);
    }
    bring(i);
    if (in<K>()) {
      K::compute_rtask(task<K>(), *reinterpret_cast<const typename K::Args*>(c_.args[i % c_.kOperands]),
                       static_cast<int>(c_.ring[i % c_.kSteps].rtask), kept);
    }
    end(i);
    ++i;
  }
  return i;
}

}  // namespace rt
