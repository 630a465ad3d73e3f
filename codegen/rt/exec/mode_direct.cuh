// Direct steps: steps of a run whose operands and results are nothing but tagged words, one move each. Every thread
// polls the words that it computes with, and stores its results as words. Between a word's arrival and the result's
// departure there are a comparison and the arithmetic, no shared memory and no block barrier. An rKernel K with direct
// steps has
//
//   kOperands, kResults   of an element
//   Place                 where a thread's words are: from[kOperands], to[kResults]; and count, the elements of the
//                         rTask, one for each thread. Threads without an element look at the words of the last one
//   find                  finds that out, one step ahead
//   apply                 computes
//
// The vEU's last warp fetches descriptors, and the warps that compute use them. They hand over at named barriers, even
// and odd steps at barriers of their own:
//
//   warp that fetches      step k - 2 used? ─▶ ask for k + 2 ─▶ k + 1 has landed ─▶ tell fetched(k)
//                                 ▲                                                       │
//   warps that compute     tell used(k - 2) … poll words of k   fetched(k)? ◀─────────────╯
//                                             find words of k + 1, tell used(k)
//                                             words of k are here: apply, give results
//
// Descriptors of step k + 2 come to where those of step k - 2 were, since there is room for four steps. These barriers
// are not mbarriers: waiting for an mbarrier takes a branch, and nvcc tracks loads that are on their way across a
// branch by one scoreboard, so that a check of early loads would wait for late ones, too.
#pragma once

#include "rt/exec/edge_tagged.cuh"
#include "rt/exec/fetch.cuh"
#include "rt/exec/veu.cuh"

namespace rt {

// Runs direct steps from i on, up to `stop` at most, and returns the step behind them.
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

// Whether the warp that fetches has nothing to compute in direct steps of K.
template <class Program>
template <class K>
RT_DEVICE bool VEU<Program>::fetches_apart() const {
  return K::kFreeWarp || K::kThreads < threads_;
}

// How many threads meet at the barriers of direct steps: those of K that compute, and the warp that fetches.
template <class Program>
template <class K>
RT_DEVICE int VEU<Program>::meeting() const {
  return (K::kThreads < threads_ ? K::kThreads : threads_ - 32) + 32;
}

// At step k, asks for the descriptors of step k + 2, and waits until those of step k + 1 have landed.
template <class Program>
RT_DEVICE void VEU<Program>::feed_direct(uint32_t k) {
  prefetch(k);
  cp_async_wait<1>();
  detail::sync_warp();  // each lane speaks for what the others have copied
}

// In tracing builds: all threads have come to step k.
template <class Program>
RT_DEVICE void VEU<Program>::trace_direct(uint32_t k, uint32_t first) {
  if constexpr (Tracer::kTraces) {
    const Step& s = c_.ring[k % c_.kSteps];
    if (k > first) trace_.mark(k - 1 - first_, kComputed);
    trace_.begin(k - first_, s.op, s.rtask);
    trace_.mark(k - first_, kReady);
  }
}

// Runs step i, whose words are at `here`, and finds out where those of step i + 1 are. Time counts only between the
// arrival of words and the departure of results, so everything else is done while words are on their way. Behind the
// last direct step, `next` is made of whatever descriptors are there, and nobody uses it.
template <class Program>
template <class K>
RT_DEVICE void VEU<Program>::step_direct(uint32_t i, uint32_t first, const typename K::Place& here,
                                         typename K::Place& next) {
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
  if (tid_ / 32 * 32 >= here.count) {  // no thread of the warp has an element
    meanwhile();
    afterwards();
    return;
  }
  float x[K::kOperands], y[K::kResults];
  detail::Patience patience(l_.patience_ns);
  take_words(here.from, tag, x, meanwhile, afterwards, [&](uint64_t seen) {
    const Step& s = c_.ring[i % c_.kSteps];
    patience.spent(static_cast<uint32_t>(seen >> 32) != tag, l_.reports,
                   Report{kTaggedReport, l_.segment, veu_, order, 0, static_cast<uint32_t>(here.from[0] - l_.tagged),
                          s.op, s.rtask, tag, seen >> 32});
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
  K::find(tid_, l_.tagged, c_.moves[i % c_.kOperands],
          *reinterpret_cast<const typename K::Args*>(c_.args[i % c_.kOperands]), static_cast<int>(s.rtask), p);
}

}  // namespace rt
