// Near steps: steps of a run, in a cluster, whose operands are in the vEU's slots, or in memory that the program does
// not write. Each thread takes two elements of each operand from the slots, computes, and stores two results straight
// into the slots of the vEUs that want them. A warp waits for the words of its own threads and goes on: there is no
// block barrier.
//
// That is right only if a word is always stored by the warp of the same number as the one that takes it. Then what is
// known of a step holds for each warp's part of it: a warp that sees a result knows that the words which that result
// was made of have been taken, and may be stored to again. codegen marks steps as near only in programs of which this
// is true.
//
// Three kinds of warps work side by side. They hand over by mbarriers, turns: there are four of each kind, for four
// steps in flight.
//
//   last warp       used(k - 2)? ─▶ descriptors of k + 2 are asked for, of k + 1 have landed ─▶ there(k)
//   keeping warp    there(k)?    ─▶ copies operands of step k + 1 from memory behind the slots ─▶ kept_there(k + 1)
//   other warps     there(k)?, kept_there(k)?, gate of k? ─▶ compute, store into slots ─▶ used(k)
#pragma once

#include "rt/exec/edge_slot.cuh"
#include "rt/exec/fetch.cuh"
#include "rt/exec/imports.cuh"
#include "rt/exec/veu.cuh"

namespace rt {

// The second half of a Move, read in one access.
struct alignas(16) SlotEnd {
  uint16_t count, kind;
  uint32_t slot, ranks, gate;
  RT_DEVICE explicit SlotEnd(const Move& m) { memcpy(this, __builtin_assume_aligned(&m.count, 16), 16); }
};

// Runs near steps from i on, up to `stop` at most, and returns the step behind them. Of K's threads, the last 64 have
// no elements: they are the warp that fetches descriptors and the one that keeps operands from memory.
template <class Program>
template <class K>
RT_DEVICE uint32_t VEU<Program>::run_near(uint32_t i, uint32_t stop) {
  const uint32_t n = c_.ring[i % c_.kSteps].near & kNearCountMask;
  stop = stop - i < n ? stop : i + n;
  detail::wait_for_launches_before();
  if (fetches()) {
    RT_NO_UNROLL
    for (uint32_t k = i; k < stop; ++k) feed_near(k);
  } else {
    const bool in = tid_ < K::kThreads - 64, keeps = !in && tid_ < K::kThreads - 32;
    const detail::Ranks around;
    if (keeps) keep_near<K>(i, turn_);
    RT_NO_UNROLL
    for (uint32_t k = i; k < stop; ++k, ++turn_) {
      wait_turn(there(turn_), turn_);
      if (in) {
        step_near<K>(k, around);
        detail::sync_warp();
      } else if (keeps && k + 1 < stop) {
        keep_near<K>(k + 1, turn_ + 1);
      }
      detail::mbarrier_arrive(used(turn_));
    }
  }
  settle<1>();
  return stop;
}

// The mbarriers of a turn, which is the number of a near step: its descriptors are there; they are used; its operands
// from memory are there.
template <class Program>
RT_DEVICE uint64_t* VEU<Program>::there(uint32_t turn) const {
  return turns() + turn % c_.kOperands;
}
template <class Program>
RT_DEVICE uint64_t* VEU<Program>::used(uint32_t turn) const {
  return turns() + c_.kOperands + turn % c_.kOperands;
}
template <class Program>
RT_DEVICE uint64_t* VEU<Program>::kept_there(uint32_t turn) const {
  return turns() + 2 * c_.kOperands + turn % c_.kOperands;
}
template <class Program>
RT_DEVICE void VEU<Program>::wait_turn(uint64_t* bar, uint32_t turn) const {
  detail::mbarrier_wait(bar, turn / c_.kOperands, 2 * l_.patience_ns, l_.reports, Report{});
}

// At step k, asks for the descriptors of step k + 2, and waits until those of step k + 1 have landed. A near step has
// no waits, so its moves and Args are all.
template <class Program>
RT_DEVICE void VEU<Program>::feed_near(uint32_t k) {
  const uint32_t next = k + 2, lane = static_cast<uint32_t>(tid_) % 32;
  trace_.begin(k - first_, c_.ring[k % c_.kSteps].op, c_.ring[k % c_.kSteps].rtask);
  trace_.mark(k - first_, kReady);
  if (turn_ >= 2) wait_turn(used(turn_ - 2), turn_ - 2);
  now_ = k;
  if (next < last_) {
    const Step& s = c_.ring[next % c_.kSteps];
    if (s.wait_count > 0) {
      fetch_operands(next);
    } else {
      const char* moves = reinterpret_cast<const char*>(l_.moves + s.move_begin);
      const uint32_t words = 2 * (uint32_t{s.imports} + s.exports);
      fetch_args(next, s.args, s.args_words);
      RT_NO_UNROLL
      for (uint32_t w = lane; w < words; w += 32) {
        cp_async16(reinterpret_cast<char*>(c_.moves[next % c_.kOperands]) + 16 * w, moves + 16 * w);
      }
    }
  }
  fetch_steps(k + 4);
  cp_async_commit();
  cp_async_wait<1>();
  detail::sync_warp();  // each lane speaks for what the others have copied
  detail::mbarrier_arrive(there(turn_));
  trace_.mark(k - first_, kStarted);
  trace_.mark(k - first_, kComputed);
  ++turn_;
}

// Copies the operands of step i that are in memory to words behind the slots. There are kKeptParts parts of such words,
// which steps use in turn: the step that had the same part before is used already.
template <class Program>
template <class K>
RT_DEVICE void VEU<Program>::keep_near(uint32_t i, uint32_t turn) {
  const Move* kept = c_.moves[i % c_.kOperands] + K::kOperands + 1;
  const uint32_t n = detail::bits(c_.ring[i % c_.kSteps].near >> kNearPlainShift & kNearPlainMask);
  RT_NO_UNROLL
  for (uint32_t k = 0; k < n; ++k) {
    const uint32_t* from = plain(kept[k]);
    uint32_t* to = slots() + kept[k].slot;
    RT_NO_UNROLL
    for (uint32_t e = 2 * (static_cast<uint32_t>(tid_) % 32); e < kept[k].count; e += 64) cp_async8(to + e, from + e);
  }
  detail::copies_arrive(kept_there(turn));
}

// A near step has these moves, in this order:
//
//   an import for each operand      in a slot, or behind the slots where it comes from memory
//   an export to slots              its ranks are 0 where the result goes to memory only
//   one for each operand in memory  where it is (kKeptMove)
//   an export to memory             if the result goes there
//
// All operands have as many elements as the result, one behind the other, and each thread has two of them. What can be
// looked up is looked up before the gate is waited for, while words are on their way.
template <class Program>
template <class K>
RT_DEVICE void VEU<Program>::step_near(uint32_t i, const detail::Ranks& around) {
  constexpr int kOperands = K::kOperands;
  constexpr uint32_t kAll = (1u << kOperands) - 1;
  static_assert(kOperands <= int{kMaxNearOperands}, "Step::near has a bit for each operand");
  const Step& s = c_.ring[i % c_.kSteps];
  const Move* moves = c_.moves[i % c_.kOperands];
  const uint32_t e = 2 * static_cast<uint32_t>(tid_), warp = static_cast<uint32_t>(tid_) / 32, order = i - first_;
  delay(Pause::kImport, order);
  const uint32_t near = s.near;
  uint32_t* const mine = slots() + e;
  uint32_t* word[kOperands];
  RT_UNROLL
  for (int k = 0; k < kOperands; ++k) word[k] = mine + moves[k].slot;
  const SlotEnd from(moves[0]), to(moves[kOperands]);
  if ((near >> kNearPlainShift & kNearPlainMask) != 0) wait_turn(kept_there(turn_), turn_);
  const uint32_t count = from.count, slotted = detail::bits(~(near >> kNearPlainShift) & kAll);
  uint64_t* const gate = gates() + gate_number(from.gate) * kGateParts + warp;
  if (warp * kGateWords < count && slotted > 0) {
    const uint32_t left = count - warp * kGateWords;
    detail::gate_expect(gate, 4 * (left < kGateWords ? left : kGateWords) * slotted, tid_ % 32 == 0);
    detail::gate_wait(gate, from.gate >> kGateShift, l_.patience_ns, l_.reports,
                      Report{kNearReport, l_.segment, veu_, order, 0, moves[0].slot, s.op, s.rtask, 1, 0});
  }
  delay(Pause::kRTask, order);
  if (e >= count) return;
  uint32_t in[kOperands][2];
  RT_UNROLL
  for (int k = 0; k < kOperands; ++k) detail::take_pair(word[k], in[k]);
  const typename K::Args& a = *reinterpret_cast<const typename K::Args*>(c_.args[i % c_.kOperands]);
  float y[2];
  RT_UNROLL
  for (int h = 0; h < 2; ++h) {
    float x[kOperands];
    RT_UNROLL
    for (int k = 0; k < kOperands; ++k) memcpy(&x[k], &in[k][h], 4);
    y[h] = K::apply(a, x);
  }
  if (to.ranks != 0) {
    uint32_t bits[2];
    memcpy(bits, y, sizeof bits);
    uint64_t* const through = gates() + gate_number(to.gate) * kGateParts + warp;
    detail::store_near(mine + to.slot, through, to.ranks, around, bits[0], bits[1]);
  }
  if ((near & kNearToPlain) != 0) {
    const uint32_t kept = detail::bits(near >> kNearPlainShift & kNearPlainMask);
    float* out = reinterpret_cast<float*>(plain(moves[kOperands + 1 + kept])) + e;
    out[0] = y[0], out[1] = y[1];
  }
}

}  // namespace rt
