// The import area: shared memory where an rTask finds operands that the executor has brought. Each import is a Move;
// its kind says where the elements come from. The warps share the moves, and the elements of each move, among
// themselves.
#pragma once

#include "rt/exec/edge_slot.cuh"
#include "rt/exec/edge_tagged.cuh"
#include "rt/exec/veu.cuh"

namespace rt {

// Brings the operands of step i that go through the import area. The barrier at the end orders what a warp has stored
// there before what the other warps read.
template <class Program>
RT_DEVICE void VEU<Program>::bring(uint32_t i) {
  const Step s = c_.ring[i % c_.kSteps];
  const Place p{i - first_, s.op, s.rtask};
  if constexpr (Program::kMoves > 0) {
    if (s.imports > 0) {
      delay(Pause::kImport, p.order);
      if constexpr (Program::kSlots > 0) {
        if (l_.persistent && tid_ < static_cast<int>(kGateParts)) await_words(c_.moves[i % c_.kOperands], s.imports);
      }
      each_move(c_.moves[i % c_.kOperands], s.imports, [&](const Move& m, uint32_t at, uint32_t stride) {
        if constexpr (Program::kSlots > 0) {
          if (m.kind == kSlotMove && persistent()) return import_near(m, at, stride, p);
        }
        if (m.kind == kPlainMove) {
          import_plain(m, at, stride);
        } else {
          import_tagged(m, at, stride, p);
        }
      });
      detail::block_barrier(threads_);
    }
  }
  delay(Pause::kRTask, p.order);
  trace_.mark(p.order, kStarted);
}

// Divides the warps into one, two or four teams, and deals the moves to the teams in turn. Within a team, body(move,
// at, stride) takes the elements at, at + stride, … for each thread.
template <class Program>
template <class Body>
RT_DEVICE void VEU<Program>::each_move(const Move* moves, uint32_t n, Body body) {
  const uint32_t warp = static_cast<uint32_t>(tid_) / 32, lane = static_cast<uint32_t>(tid_) % 32;
  const uint32_t warps = movers();
  if (warp >= warps) return;
  const uint32_t shift = warps >= 4 && n >= 4 ? 2 : warps >= 2 && n >= 2 ? 1 : 0, teams = 1u << shift;
  const uint32_t team = warp & (teams - 1), member = warp >> shift, members = (warps - team + teams - 1) >> shift;
  RT_NO_UNROLL
  for (uint32_t m = team; m < n; m += teams) body(moves[m], member * 32 + lane, members * 32);
}

// The address of a move's first element in global memory.
template <class Program>
RT_DEVICE uint32_t* VEU<Program>::plain(const Move& m) const {
  return reinterpret_cast<uint32_t*>(detail::global(c_.bases[m.at >> kSpaceShift] + (m.at & kRefOffsetMask)));
}

// Copies elements from global memory, four at a time on their way. Flags or launches have said that they are there.
template <class Program>
RT_DEVICE void VEU<Program>::import_plain(const Move& m, uint32_t at, uint32_t stride) {
  const uint32_t* from = plain(m);
  uint32_t* to = reinterpret_cast<uint32_t*>(imports()) + m.staged;
  RT_NO_UNROLL
  for (; at < m.count; at += 4 * stride) {
    uint32_t v[4];
    RT_UNROLL
    for (uint32_t k = 0; k < 4; ++k) {
      const uint32_t i = at + k * stride;
      if (i < m.count) v[k] = from[static_cast<size_t>(i) * m.step];
    }
    RT_UNROLL
    for (uint32_t k = 0; k < 4; ++k) {
      const uint32_t i = at + k * stride;
      if (i < m.count) to[i] = v[k];
    }
  }
}

}  // namespace rt
