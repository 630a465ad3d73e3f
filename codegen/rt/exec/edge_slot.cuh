// Slot edges: inside a cluster a vEU stores values straight into the shared memory of the vEUs that want them. A slot
// is an area there of 32-bit words; a gate, an mbarrier beside the slots, counts the bytes that have come
// (device/gates.cuh says which words come through which of a gate's mbarriers):
//
//   exporter                           importer, in its own shared memory
//   st.async word ───────────────────▶ slot
//     the copy itself counts 4 bytes ▶ gate: phase k is complete when all bytes of step k have come
//                                      wait for phase k, then read the slot
//
// Words are used again. That an exporter may overwrite them follows from what it has imported since; vdevice.Verify
// checks it. Everything that one step takes from slots comes through one gate. Gates are made anew in each launch, so
// phases count from 0.
#pragma once

#include "rt/exec/veu.cuh"

namespace rt {

// Tells each mbarrier of the step's gate how many bytes are to come; some may have come already. Thread number k does
// so for part k.
template <class Program>
RT_DEVICE void VEU<Program>::await_words(const Move* moves, uint32_t n) {
  const uint32_t part = static_cast<uint32_t>(tid_);
  uint32_t bytes = 0, gate = kGates;
  RT_NO_UNROLL
  for (uint32_t m = 0; m < n; ++m) {
    if (moves[m].kind != kSlotMove) continue;
    bytes += 4 * gate_words(moves[m].count, part), gate = gate_number(moves[m].gate);
  }
  if (gate < kGates) detail::gate_expect(gates() + gate * kGateParts + part, bytes);
}

// Copies words of a slot into the import area, two at a time: pairs number at, at + stride, …
template <class Program>
RT_DEVICE void VEU<Program>::import_near(const Move& m, uint32_t at, uint32_t stride, Place p) {
  const uint32_t count = m.count, first = m.slot;
  uint32_t* words = slots() + first;
  uint32_t* to = reinterpret_cast<uint32_t*>(imports()) + m.staged;
  RT_NO_UNROLL
  for (at *= 2; at < count; at += 2 * stride) {
    const bool single = at + 1 == count;
    uint32_t v[2];
    detail::gate_wait(gates() + gate_part(m.gate, at), m.gate >> kGateShift, l_.patience_ns, l_.reports,
                      Report{kNearReport, l_.segment, veu_, p.order, 0, first + at, p.op, p.rtask, 1, 0});
    detail::take_pair(words + at, v);
    to[at] = v[0];
    if (!single) to[at + 1] = v[1];
  }
}

// Makes the block's gates and the mbarriers of near steps' turns. Behind it all blocks of the cluster have made theirs,
// and words may come. Called by all threads of a block; loader: whether it has one.
template <class Program>
RT_DEVICE void open_slots(bool loader) {
  using Layout = SharedLayout<Program>;
  constexpr uint32_t kTurns = Layout::ControlBlock::kOperands;
  detail::note_free(reinterpret_cast<uint32_t*>(detail::shared_base() + Layout::kSlots), Program::kSlots);
  uint64_t* gates = reinterpret_cast<uint64_t*>(detail::shared_base() + Layout::kGatesAt);
  RT_NO_UNROLL
  for (uint32_t i = static_cast<uint32_t>(detail::thread_index()); i < kGates * kGateParts;
       i += static_cast<uint32_t>(detail::block_threads())) {
    detail::gate_init(gates + i);
  }
  if (detail::thread_index() == 0) {
    const int warps = detail::block_threads() / 32 - (loader ? 2 : 1);  // all that compute but the one that fetches
    uint64_t* turns = reinterpret_cast<uint64_t*>(detail::shared_base() + Layout::kTurns);
    RT_NO_UNROLL
    for (uint32_t i = 0; i < kTurns; ++i) {
      detail::mbarrier_init(turns + i, 32);
      detail::mbarrier_init(turns + kTurns + i, 32 * (warps > 0 ? warps : 1));
      detail::mbarrier_init(turns + 2 * kTurns + i, 32);
    }
  }
  detail::mbarrier_init_done();
  detail::cluster_barrier();
}

}  // namespace rt
