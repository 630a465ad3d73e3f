// Plain steps: those whose instance keeps nothing on chip from step to step.
//
//   prefetch   descriptors of later steps are asked for
//   await      flags, counters; an rKernel that is Early waits for these itself, when it asks for its inputs
//   bring      operands that go through the import area
//   compute    launches before, the rTask; an rKernel that is Early waits for these launches itself
//   end        all threads meet; the step is published
#pragma once

#include "rt/exec/edge_launch.cuh"
#include "rt/exec/imports.cuh"
#include "rt/exec/live.cuh"
#include "rt/exec/ring.cuh"
#include "rt/exec/veu.cuh"

namespace rt {

template <class Program>
RT_DEVICE void VEU<Program>::run_plain(uint32_t i) {
  const Step& s = c_.ring[i % c_.kSteps];
  prefetch(i);
  detail::poison(smem_, static_cast<int>(l_.shared), threads_);
  if (persistent() || has_imports(s)) detail::wait_for_launches_before();
  if (!waits_late(i)) await(i);
  bring(i);
  place_ = Place{i - first_, s.op, s.rtask};
  chunks_ = Chunks{s.chunk_words, s.chunks};
  Program::compute(*this, s.instance, c_.args[i % c_.kOperands], static_cast<int>(s.rtask));
  end(i);
}

// Whether the rTask of a step waits for other steps itself (Task::inputs). A tracing build waits before it, so that the
// trace tells waiting from computing; and so do steps whose operands the executor brings.
template <class Program>
RT_DEVICE bool VEU<Program>::waits_late(uint32_t i) const {
  if constexpr (!Program::kPersistent || Tracer::kTraces) return false;
  const Step& s = c_.ring[i % c_.kSteps];
  return persistent() && s.wait_count > 0 && !has_imports(s) && Program::early(s.instance);
}

// Runs one rTask of K on the vEU's first K::kThreads threads.
template <class Program>
template <class K>
RT_DEVICE void VEU<Program>::compute(const void* args, int rtask) {
  static_assert(K::kThreads % 32 == 0 && K::kThreads <= Program::kThreads && K::kShared <= Program::kShared);
  static_assert(sizeof(typename K::Args) <= kMaxArgsBytes, "an rKernel's Args take at most 1 KB");
  const typename K::Args& a = *static_cast<const typename K::Args*>(args);
  if constexpr (Program::kRules > 0) {
    if (idle<K>(args, static_cast<uint32_t>(rtask))) {
      detail::wait_for_launches_before();
      if constexpr (Early<K> && Program::kPersistent) {
        if (waits_late(now_)) pending(now_).wait(tid_);
      }
      if constexpr (Streams<K>) {
        Layout::WeightRing::skip(this->stream(), chunks_);
        detail::expect_streamed(chunks_.count, false);
        next_.pass(chunks_.count, l_.stages);
      }
      return;
    }
  }
  follow_launches<K>();
  Pending late = {};
  if constexpr (Early<K> && Program::kPersistent) {
    if (waits_late(now_)) late = pending(now_);
    if (tid_ >= K::kThreads && late.count > 0) late.wait(tid_);
  }
  if constexpr (Streams<K>) {
    static_assert(Layout::kHasRing && Program::kStageBytes >= K::kStreamStep);
    const Stream stream = this->stream();
    if (K::kThreads == Program::kThreads || tid_ < K::kThreads) {
      Task t = task<K>();
      t.stream = stream, t.pending = late;
      K::compute_rtask(t, a, rtask);
    } else {
      Layout::WeightRing::skip(stream, chunks_);
    }
    detail::expect_streamed(chunks_.count, tid_ < K::kThreads);
    next_.pass(chunks_.count, l_.stages);
  } else if (tid_ < K::kThreads) {
    Task t = task<K>();
    t.pending = late;
    t.alone = kOneStep;
    K::compute_rtask(t, a, rtask);
    if constexpr (Early<K>) detail::expect_streamed(0, true);
  }
}

// The weights of the current step as they come through the ring.
template <class Program>
RT_DEVICE Stream VEU<Program>::stream() const {
  const Report r{kWeightsReport, l_.segment, veu_, place_.order, 0, 0, place_.op, place_.rtask, 0, 0};
  typename Layout::WeightRing ring(detail::shared_base() + Layout::ring(l_.shared), l_.stages);
  return ring.stream(chunks_, next_, Watch{r, l_.reports, l_.patience_ns, ChunkPen(l_)});
}

// What the rTask of the current step is told.
template <class Program>
template <class K>
RT_DEVICE Task VEU<Program>::task() const {
  if constexpr (Program::kMoves > 0) {
    const Step& s = c_.ring[now_ % c_.kSteps];
    const Move* exports = c_.moves[now_ % c_.kOperands] + s.imports;
    Task t{tid_,
           smem_,
           c_.bases,
           K::kThreads,
           imports(),
           exports,
           s.exports,
           tag(),
           l_.tagged,
           Program::kSlots > 0 ? slots() : nullptr,
           Program::kSlots > 0 ? gates() : nullptr};
    t.turn = l_.turn;
    return t;
  } else {
    Task t{tid_, smem_, c_.bases, K::kThreads, nullptr, nullptr, 0, 0, nullptr, nullptr, nullptr};
    if constexpr (Program::kWords) t.tag = tag(), t.tagged = l_.tagged;
    t.turn = l_.turn;
    return t;
  }
}

}  // namespace rt
