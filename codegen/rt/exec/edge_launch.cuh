// Edges of launch order: what was computed in the launches before is there when a launch begins. Where launches overlap
// (programmatic dependent launch) a launch may begin earlier, and waits here before it touches anything that those
// launches produce:
//
//   launch n      ──weights──compute──╮allow next────────end
//   launch n + 1                      ╰──tables──weights──wait ──inputs──compute──…
#pragma once

#include "rt/exec/veu.cuh"

namespace rt {

// Waits for the launches before, for an rTask of K. An rKernel that is Early does so itself, once its weights are on
// their way; but where the executor brings a step's operands, these are inputs, and it has waited already (run_plain).
template <class K>
RT_DEVICE void follow_launches() {
  if constexpr (!Early<K>) detail::wait_for_launches_before();
}

// Lets the next launch come at once: until its steps ask for their inputs, it only reads tables and weights. Where the
// blocks of this launch stream weights of one step each, their loaders say so when they have asked for all that the
// ring holds (ring.cuh): the next launch's weights would otherwise be asked for before these.
template <class Program>
RT_DEVICE void let_next_launch(const ArgsOf<Program>& l) {
  if (!SharedLayout<Program>::kHasRing || l.weights.words == 0) detail::allow_next_launch();
}

}  // namespace rt
