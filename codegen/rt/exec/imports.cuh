// How operands come into a vEU's import area, from memory, from tagged words or from slots in a cluster. Parts of
// VEU; executor.cuh includes this behind the class.
#pragma once

namespace rt {

// Brings the operands that go through the import area. The barrier behind it orders what a warp stored there before
// what the others read.
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
        if (Program::kSlots > 0 && m.kind == kSlotMove && persistent()) {
          import_near(m, at, stride, p);
        } else if (m.kind == kPlainMove) {
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

// Deals the moves to the warps, in one, two or four teams; body(move, at, stride) takes the elements at,
// at + stride, …
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

// Polls the words themselves, two pairs at a time.
template <class Program>
RT_DEVICE void VEU<Program>::import_tagged(const Move& m, uint32_t at, uint32_t stride, Place p) {
  const uint64_t* words = l_.tagged + m.at;
  uint32_t* to = reinterpret_cast<uint32_t*>(imports()) + m.staged;
  const bool pairs = (m.at | m.count) % 2 == 0 && m.step == 1;
  const uint32_t wide = pairs ? 2 : 1, count = m.count / wide;
  const uint32_t tag = this->tag();
  RT_NO_UNROLL
  for (; at < count; at += 2 * stride) {
    uint64_t v[2][2] = {};
    detail::Patience patience(l_.patience_ns);
    for (;;) {
      bool all = true;
      RT_UNROLL
      for (uint32_t k = 0; k < 2; ++k) {
        const uint32_t i = at + k * stride;
        if (i >= count) continue;
        if (pairs) {
          detail::load_words(words + 2 * i, v[k]);
          all = all && static_cast<uint32_t>(v[k][0] >> 32) == tag && static_cast<uint32_t>(v[k][1] >> 32) == tag;
        } else {
          v[k][0] = detail::load_word(words + static_cast<size_t>(i) * m.step);
          all = all && static_cast<uint32_t>(v[k][0] >> 32) == tag;
        }
      }
      if (all || !persistent()) break;
      patience.spent(true, l_.reports,
                     Report{kTaggedReport, l_.segment, veu_, p.order, 0, static_cast<uint32_t>(m.at + wide * at), p.op, p.rtask,
                            tag, v[0][0] >> 32});
    }
    RT_UNROLL
    for (uint32_t k = 0; k < 2; ++k) {
      const uint32_t i = at + k * stride;
      if (i >= count) continue;
      to[wide * i] = static_cast<uint32_t>(v[k][0]);
      if (pairs) to[2 * i + 1] = static_cast<uint32_t>(v[k][1]);
    }
  }
}

// Tells each part of the step's gate how many bytes are to come; some may have come already.
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

// Takes words in the vEU's own shared memory, where others of its cluster put them.
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

template <class Program>
RT_DEVICE void VEU<Program>::import_plain(const Move& m, uint32_t at, uint32_t stride) {
  const uint32_t* from = plain(m);
  uint32_t* to = reinterpret_cast<uint32_t*>(imports()) + m.staged;
  RT_NO_UNROLL
  for (; at < m.count; at += 4 * stride) {
    uint32_t v[4];  // on their way at once
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
