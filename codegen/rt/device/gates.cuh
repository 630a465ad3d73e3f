// Which mbarrier a word of a slot comes through. A gate has kGateParts mbarriers, and the words of each slot are dealt
// to them in groups of kGateWords:
//
//   words of a slot     0 … 63   64 … 127   …   448 … 511   512 … 575   …
//   mbarrier of gate g  8g       8g + 1     …   8g + 7      8g          …
//
// A warp waits for the mbarriers of the words that it takes itself, and not for the words of other warps.
#pragma once

#include "rt/device/types.cuh"

namespace rt {

// The gate's number in Move::gate.
RT_HOST_DEVICE constexpr uint32_t gate_number(uint32_t gate) { return gate & ((1u << kGateShift) - 1); }

// The mbarrier, among those of all gates, that a word of a slot comes through. `gate` is Move::gate.
RT_HOST_DEVICE constexpr uint32_t gate_part(uint32_t gate, uint32_t word) {
  return gate_number(gate) * kGateParts + word / kGateWords % kGateParts;
}

// How many of a slot's first `count` words come through mbarrier `part` of the gate.
RT_HOST_DEVICE constexpr uint32_t gate_words(uint32_t count, uint32_t part) {
  const uint32_t round = kGateWords * kGateParts, rest = count % round, before = part * kGateWords;
  const uint32_t last = rest <= before ? 0 : rest - before < kGateWords ? rest - before : kGateWords;
  return count / round * kGateWords + last;
}

}  // namespace rt
