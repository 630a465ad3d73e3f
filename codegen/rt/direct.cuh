// Steps whose threads take their own operands, of tagged words (direct) or of slots in a cluster (near): runs of
// them, between which a vEU's threads meet for the descriptors alone. Parts of VEU; executor.cuh includes this
// behind the class.
#pragma once

namespace rt {

// Runs direct steps from i on, up to stop at most, and returns the step behind them. Only the descriptors
// are shared: a barrier at each step, while words are on their way, says that those of the next one are
// there and those of the one before free. The vEU's last warp fetches, also where it has elements.
template <class Program>
template <class K>
RT_DEVICE uint32_t VEU<Program>::run_direct(uint32_t i, uint32_t stop) {
  const uint32_t n = c_.ring[i % c_.kSteps].direct;
  stop = stop - i < n ? stop : i + n;
  detail::wait_for_launches_before();
  const int pace = (K::kThreads < threads_ ? K::kThreads : threads_ - 32) + 32;
  if (fetches() && (K::kFreeWarp || !in<K>())) {
    RT_NO_UNROLL
    for (uint32_t k = i; k < stop; ++k) {
      feed_direct(k);
      turn_direct(k, i, pace);
    }
  } else if (in<K>()) {
    typename K::Place here, next;
    find_direct<K>(i, here);
    RT_NO_UNROLL
    for (uint32_t k = i; k < stop; ++k) {
      if (!K::kFreeWarp && fetches()) feed_direct(k);
      step_direct<K>(k, i, pace, here, next);
      here = next;
    }
  }
  settle<1>();
  trace_.mark(stop - 1 - first_, kComputed);
  return stop;
}

// At step k, asks for what the one after the next needs; what the next one needs has landed.
template <class Program>
RT_DEVICE void VEU<Program>::feed_direct(uint32_t k) {
  prefetch(k);
  cp_async_wait<1>();
}

// All threads have turned to step k of those from first on.
template <class Program>
RT_DEVICE void VEU<Program>::turn_direct(uint32_t k, uint32_t first, int pace) {
  detail::pace_barrier(pace);
  if constexpr (Tracer::kTraces) {
    const Step& s = c_.ring[k % c_.kSteps];
    if (k > first) trace_.mark(k - 1 - first_, kComputed);
    trace_.begin(k - first_, s.op, s.rtask);
    trace_.mark(k - first_, kReady);
  }
}

// Behind the last direct step, next is about what is there, and not used.
template <class Program>
template <class K>
RT_DEVICE void VEU<Program>::step_direct(uint32_t i, uint32_t first, int pace, const typename K::Place& here, typename K::Place& next) {
  const uint32_t order = i - first_, tag = static_cast<uint32_t>(launches_) + 1;
  const auto meanwhile = [&] {
    turn_direct(i, first, pace);
    find_direct<K>(i + 1, next);
    return next.count > 0;
  };
  delay(Pause::kImport, order);
  if (tid_ / 32 * 32 >= here.count) {
    meanwhile();
    return;
  }
  float x[K::kOperands], y[K::kResults];
  detail::Patience patience(l_.patience_ns);
  take_words(here.from, tag, x, meanwhile, [&](uint64_t seen) {
    const Step& s = c_.ring[i % c_.kSteps];
    patience.spent(static_cast<uint32_t>(seen >> 32) != tag, l_.report,
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

// Runs near steps from i on, up to stop at most, and returns the step behind them. The vEU's last warp
// fetches; the barrier of each step also says that the descriptors of the next are there, and those of the
// one before it free.
template <class Program>
template <class K>
RT_DEVICE uint32_t VEU<Program>::run_near(uint32_t i, uint32_t stop) {
  const uint32_t n = c_.ring[i % c_.kSteps].near;
  stop = stop - i < n ? stop : i + n;
  detail::wait_for_launches_before();
  if (fetches()) {
    feed_near(i, stop, K::kThreads);
  } else if (tid_ < K::kThreads - 32) {
    NearPlace<K::kOperands> at;
    find_near<K>(i, at);
    RT_NO_UNROLL
    for (uint32_t k = i; k < stop; ++k) {
      step_near<K>(k, at);
      if (k + 1 < stop) find_near<K>(k + 1, at);
    }
  }
  settle<1>();
  return stop;
}

template <class Program>
RT_DEVICE void VEU<Program>::feed_near(uint32_t i, uint32_t stop, int pace) {
  RT_NO_UNROLL
  for (uint32_t k = i; k < stop; ++k) {
    const Step& s = c_.ring[k % c_.kSteps];
    trace_.begin(k - first_, s.op, s.rtask);
    trace_.mark(k - first_, kReady);
    prefetch(k);
    cp_async_wait<1>();
    detail::movers_barrier(pace);
    trace_.mark(k - first_, kStarted);
    trace_.mark(k - first_, kComputed);
  }
}

template <class Program>
template <class K>
RT_DEVICE void VEU<Program>::step_near(uint32_t i, NearPlace<K::kOperands>& at) {
  const uint32_t order = i - first_;
  delay(Pause::kImport, order);
  if (at.mine && at.in_slots != 0) {
    detail::Patience patience(l_.patience_ns);
    take_near(slots(), at, [&] {
      const Step& s = c_.ring[i % c_.kSteps];
      patience.spent(true, l_.report, Report{kNearReport, l_.segment, veu_, order, 0, at.word[0], s.op, s.rtask, 1, 0});
    });
  }
  const typename K::Args& a = *reinterpret_cast<const typename K::Args*>(c_.args[i % c_.kOperands]);
  float y[2] = {};
  RT_UNROLL
  for (int e = 0; e < 2 && at.mine; ++e) {
    float x[K::kOperands];
    RT_UNROLL
    for (int k = 0; k < K::kOperands; ++k) x[k] = at.x[k][e];
    y[e] = K::apply(a, x);
  }
  detail::movers_barrier(K::kThreads);
  delay(Pause::kRTask, order);
  if (at.mine) give_near(at, y);
}

// Its imports are those of the operands, in their order, and their elements follow one another.
template <class Program>
template <class K>
RT_DEVICE void VEU<Program>::find_near(uint32_t i, NearPlace<K::kOperands>& at) const {
  const Step& s = c_.ring[i % c_.kSteps];
  const Move* moves = c_.moves[i % c_.kOperands];
  const uint32_t e = 2 * static_cast<uint32_t>(tid_);
  at.mine = static_cast<int>(e) < K::count(*reinterpret_cast<const typename K::Args*>(c_.args[i % c_.kOperands]), static_cast<int>(s.rtask));
  at.in_slots = 0, at.to = nullptr, at.ranks = 0, at.plain = nullptr;
  RT_UNROLL
  for (int k = 0; k < K::kOperands; ++k) {
    at.word[k] = moves[k].slot + e;
    at.in_slots |= (moves[k].kind == kSlotMove ? 1u : 0u) << k;
  }
  RT_UNROLL
  for (int k = 0; k < K::kOperands; ++k) {
    if (!at.mine || (at.in_slots >> k & 1) != 0) continue;
    const float* from = reinterpret_cast<const float*>(plain(moves[k])) + e;
    at.x[k][0] = from[0], at.x[k][1] = from[1];
  }
  RT_NO_UNROLL
  for (uint32_t k = s.imports; k < uint32_t{s.imports} + s.exports; ++k) {
    const Move& m = moves[k];
    if (m.kind == kSlotMove) {
      at.to = slots() + m.slot + e, at.ranks = m.ranks;
    } else if (m.kind == kPlainMove) {
      at.plain = reinterpret_cast<float*>(plain(m)) + e;
    }
  }
}

}  // namespace rt
