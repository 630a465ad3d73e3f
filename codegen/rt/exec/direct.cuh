// Steps whose threads take their own operands, of tagged words (direct) or of slots in a cluster (near): runs of
// them. The vEU's last warp fetches descriptors, up to two steps ahead of those who compute: they tell each other what is
// there and what is used. Parts of VEU; executor.cuh includes this behind the class.
#pragma once

namespace rt {

// Runs direct steps from i on, up to stop at most, and returns the step behind them. At each of them those who compute
// meet, and the warp that fetches has said that the descriptors of the next one are there. Named barriers do that: to wait
// for an mbarrier takes a branch, and beyond it nvcc knows words on their way by one scoreboard, early and late ones alike.
template <class Program>
template <class K>
RT_DEVICE uint32_t VEU<Program>::run_direct(uint32_t i, uint32_t stop) {
  const uint32_t n = c_.ring[i % c_.kSteps].direct;
  stop = stop - i < n ? stop : i + n;
  detail::wait_for_launches_before();
  const int both = meeting<K>();
  if (fetches() && fetches_apart<K>()) {
    RT_NO_UNROLL
    for (uint32_t k = i; k < stop; ++k) {
      if (k >= i + 2) detail::wait_for_used(k % 2, both);
      feed_direct(k);
      if constexpr (Tracer::kTraces) {
        detail::wait_for_fetched(k % 2, both);
        trace_direct(k, i);
      } else {
        detail::tell_fetched(k % 2, both);
      }
    }
    if (stop >= i + 2) detail::wait_for_used(stop % 2, both);
    detail::wait_for_used((stop + 1) % 2, both);
  } else if (in<K>()) {
    typename K::Place here, next;
    find_direct<K>(i, here);
    RT_NO_UNROLL
    for (uint32_t k = i; k < stop; ++k) {
      if (!K::kFreeWarp && fetches()) feed_direct(k);
      step_direct<K>(k, i, here, next);
      here = next;
    }
  }
  settle<1>();
  trace_.mark(stop - 1 - first_, kComputed);
  return stop;
}

// At step k, asks for what the one after the next needs, where that of step k - 2 was, which all have used; what the next
// one needs has landed.
template <class Program>
RT_DEVICE void VEU<Program>::feed_direct(uint32_t k) {
  prefetch(k);
  cp_async_wait<1>();
  detail::sync_warp();  // lanes tell what others have copied
}

// All have come to step k.
template <class Program>
RT_DEVICE void VEU<Program>::trace_direct(uint32_t k, uint32_t first) {
  if constexpr (Tracer::kTraces) {
    const Step& s = c_.ring[k % c_.kSteps];
    if (k > first) trace_.mark(k - 1 - first_, kComputed);
    trace_.begin(k - first_, s.op, s.rtask);
    trace_.mark(k - first_, kReady);
  }
}

// Behind the last direct step, next is about what is there, and not used. Only what stands between the arrival of
// words and the departure of results counts: all else is done while words are on their way.
template <class Program>
template <class K>
RT_DEVICE void VEU<Program>::step_direct(uint32_t i, uint32_t first, const typename K::Place& here, typename K::Place& next) {
  const uint32_t order = i - first_, tag = tag_of_launch(launches_);
  const auto meanwhile = [&] {
    detail::wait_for_fetched(i % 2, meeting<K>());
    trace_direct(i, first);
    find_direct<K>(i + 1, next);
    return next.count > 0;
  };
  const auto afterwards = [&] {
    if (fetches_apart<K>()) detail::tell_used(i % 2, meeting<K>());
  };
  delay(Pause::kImport, order);
  if (tid_ / 32 * 32 >= here.count) {
    meanwhile();
    afterwards();
    return;
  }
  float x[K::kOperands], y[K::kResults];
  detail::Patience patience(l_.patience_ns);
  take_words(here.from, tag, x, meanwhile, afterwards, [&](uint64_t seen) {
    const Step& s = c_.ring[i % c_.kSteps];
    patience.spent(static_cast<uint32_t>(seen >> 32) != tag, l_.reports,
                   Report{kTaggedReport, l_.segment, veu_, order, 0, static_cast<uint32_t>(here.from[0] - l_.tagged), s.op,
                          s.rtask, tag, seen >> 32});
  });
  trace_.mark(order, kStarted, tid_ == 0);
  delay(Pause::kRTask, order);
  K::apply(here, x, y);
  RT_UNROLL
  for (int k = 0; k < K::kResults; ++k) {
    if (tid_ < here.count) give_word(here.to[k], tag, y[k]);
  }
}

template <class Program>
template <class K>
RT_DEVICE void VEU<Program>::find_direct(uint32_t i, typename K::Place& p) const {
  const Step& s = c_.ring[i % c_.kSteps];
  K::find(tid_, l_.tagged, c_.moves[i % c_.kOperands], *reinterpret_cast<const typename K::Args*>(c_.args[i % c_.kOperands]),
          static_cast<int>(s.rtask), p);
}

// Runs near steps from i on, up to stop at most, and returns the step behind them. The vEU's last warp fetches
// descriptors, and K's last but one what steps take from memory: the others have enough to do. Turns, mbarriers,
// tell who computes that what a step needs is there, and those two that what the step before the last had is used:
// warps need not be at the same step for that.
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

template <class Program>
RT_DEVICE void VEU<Program>::wait_turn(uint64_t* bar, uint32_t turn) const {
  detail::mbarrier_wait(bar, turn / c_.kOperands, 2 * l_.patience_ns, l_.reports, Report{});
}

// At step k, asks for the descriptors of the one after the next; those of the next one have landed. Near steps wait
// for no others.
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
      for (uint32_t w = lane; w < words; w += 32) cp_async16(reinterpret_cast<char*>(c_.moves[next % c_.kOperands]) + 16 * w, moves + 16 * w);
    }
  }
  fetch_step(k + 4);
  cp_async_commit();
  cp_async_wait<1>();
  detail::sync_warp();  // lanes read what others have copied
  detail::mbarrier_arrive(there(turn_));
  trace_.mark(k - first_, kStarted);
  trace_.mark(k - first_, kComputed);
  ++turn_;
}

// Copies step i's operands that are in memory to words behind the slots. Steps have three parts of these in turn: the
// step that had the same part is used.
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

// A step's imports are those of the operands, in their order; all operands have as many elements as the result,
// two for each thread, and these follow one another. The exports are what goes to slots, what is kept of the
// operands in memory, and what goes to memory. What can be looked up is, all at once, while words are on their
// way.
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
    detail::gate_wait(gate, from.gate >> kGateShift, l_.patience_ns, l_.reports, Report{kNearReport, l_.segment, veu_, order, 0, moves[0].slot, s.op, s.rtask, 1, 0});
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
    detail::store_near(mine + to.slot, gates() + gate_number(to.gate) * kGateParts + warp, to.ranks, around, bits[0], bits[1]);
  }
  if ((near & kNearToPlain) != 0) {
    float* out = reinterpret_cast<float*>(plain(moves[kOperands + 1 + detail::bits(near >> kNearPlainShift & kNearPlainMask)])) + e;
    out[0] = y[0], out[1] = y[1];
  }
}

}  // namespace rt
