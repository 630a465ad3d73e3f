// The executor: runs prog[vEU][order] from tables. A thread block is a vEU; it walks its steps, waits for
// the steps they name, computes their rTasks and publishes those somebody waits for.
#pragma once

#include <initializer_list>

#include "rt/delays.cuh"
#include "rt/device.cuh"
#include "rt/guard.cuh"
#include "rt/near.cuh"
#include "rt/ring.cuh"
#include "rt/tables.cuh"
#include "rt/words.cuh"

namespace rt {

// The executor's own shared memory: beside what the current step needs, what is on its way for later ones.
template <int Spaces, int ArgsBytes, int Moves>
struct alignas(128) Control {
  static constexpr uint32_t kSteps = 8, kOperands = 4;
  char* bases[Spaces];
  Step ring[kSteps];
  alignas(16) char args[kOperands][ArgsBytes];
  alignas(16) Wait waits[kOperands][kStagedWaits];
  Move moves[kOperands][Moves > 0 ? Moves : 1];
};

// A vEU's shared memory: the executor's, the import area, the slots, the rTask's, the ring of weights.
template <class Program>
struct SharedLayout {
  using ControlBlock = Control<Program::kSpaces, Program::kArgsBytes, Program::kMoves>;
  RT_HOST_DEVICE static constexpr size_t aligned(size_t bytes) { return (bytes + 127) / 128 * 128; }
  static constexpr size_t area(int floats) { return aligned(4 * static_cast<size_t>(floats)); }
  static constexpr size_t kImports = sizeof(ControlBlock);
  static constexpr size_t kSlots = kImports + area(Program::kImports);
  static constexpr size_t kTask = kSlots + aligned(4 * static_cast<size_t>(Program::kSlots));

  static constexpr bool kHasRing = Program::kStageBytes > 0;
  using WeightRing = Ring<kHasRing ? Program::kStageBytes : 128>;
  // Where rTasks need so much.
  RT_HOST_DEVICE static constexpr size_t ring(size_t rtask) { return aligned(kTask + rtask); }
  static constexpr size_t bytes(int rtask, int stages) {
    const size_t task = static_cast<size_t>(rtask);
    return stages > 0 ? ring(task) + WeightRing::bytes(stages) : kTask + task;
  }
  // Of any launch.
  static constexpr int kMostThreads = Program::kThreads + (kHasRing ? 32 : 0);
  static constexpr size_t kMostBytes = kHasRing && bytes(Program::kShared, 0) < size_t{Program::kSharedBudget}
                                           ? size_t{Program::kSharedBudget}
                                           : bytes(Program::kShared, 0);
  // How many stages a launch has whose blocks stream so many chunks. Blocks that stream more than any ring
  // holds take the largest: bytes on their way count for more than room for the next launch's ring.
  static constexpr int stages(int rtask, int chunks, bool persistent) {
    const bool largest = persistent || bytes(rtask, chunks) > static_cast<size_t>(Program::kSharedBudget);
    const size_t budget = static_cast<size_t>(largest ? Program::kSharedBudget : Program::kSideBudget);
    int n = kHasRing ? chunks : 0;
    while (n > 0 && bytes(rtask, n) > budget) --n;
    return n;
  }
};

// What the rKernel instances of a program need at most; an emitted Program derives from it.
template <class... Kernels>
struct Needs {
  static constexpr int most(int least, std::initializer_list<int> all) {
    for (const int n : all) least = n > least ? n : least;
    return least;
  }
  static constexpr int kThreads = most(32, {Kernels::kThreads...});
  static constexpr int kShared = most(0, {Kernels::kShared...});
  static constexpr int kArgsBytes = (most(16, {static_cast<int>(sizeof(typename Kernels::Args))...}) + 15) / 16 * 16;
};

// Where a vEU stands, for reports.
struct Place {
  uint32_t order, op, rtask;
};

// One thread's view of the vEU it belongs to.
template <class Program>
class VEU {
 public:
  using Args = LaunchArgs<Program::kSpaces>;
  using Layout = SharedLayout<Program>;
  using ControlBlock = typename Layout::ControlBlock;

  RT_DEVICE explicit VEU(const Args& l)
      : l_(l),
        c_(*reinterpret_cast<ControlBlock*>(detail::shared_base())),
        smem_(detail::shared_base() + Layout::kTask),
        tid_(detail::thread_index()),
        threads_(detail::block_threads() - (Layout::kHasRing && l.stages > 0 ? 32 : 0)),
        veu_(l.first_veu + static_cast<uint32_t>(detail::block_index())),
        epoch_(l.persistent ? l.flags[veu_ * kFlagStride + kEpochWord] : 0),
        launches_(l.persistent ? l.flags[veu_ * kFlagStride + kLaunchesWord] : 0),
        trace_(l, tid_ == threads_ - 32) {
    RT_NO_UNROLL
    for (int i = tid_; i < Program::kSpaces; i += threads_) c_.bases[i] = l_.bases[i];
    if (Layout::kHasRing && l_.stages > 0) detail::wait_for_loader(detail::block_threads());
  }

  // Walks the vEU's steps. Asynchronous copies bring descriptors and then operands; they are asked for two
  // steps before they are due, so that the copies of a whole step may be on their way.
  RT_DEVICE void run() {
    const StepRange mine = own_steps(l_);
    const uint32_t first = mine.first, last = mine.last;
    if (first == last) {
      detail::wait_for_launches_before();
      trace_.ready();
      return;
    }
    first_ = first, last_ = last;
    RT_NO_UNROLL
    for (uint32_t i = first; i < first + 4; ++i) fetch_step(i);
    if (l_.op_words > 0) fetch_args(first, l_.op_args, l_.op_words);
    cp_async_commit();
    settle();
    if (l_.op_words == 0) {
      fetch_operands(first);
      fetch_operands(first + 1);
      cp_async_commit();
      settle();
    }
    if constexpr (Tracer::kTraces) {
      detail::wait_for_launches_before();
      trace_.ready();
    }
    RT_NO_UNROLL
    for (uint32_t i = first; i < last;) {
      const Step& s = c_.ring[i % c_.kSteps];
      if constexpr (Program::kHasResident) {
        if (s.run > 0) {
          i = Program::run(*this, s.instance, i);
          continue;
        }
      }
      prefetch(i);
      detail::poison(smem_, static_cast<int>(l_.shared), threads_);
      begin(i);
      place_ = Place{i - first_, s.op, s.rtask};
      chunks_ = Chunks{s.chunk_words, s.chunks};
      Program::compute(*this, s.instance, c_.args[i % c_.kOperands], static_cast<int>(s.rtask));
      end(i);
      ++i;
    }
  }

  // Runs the steps from i on that share what K keeps on chip as one loop, and returns the step behind them.
  template <class K>
  RT_DEVICE uint32_t run_resident(uint32_t i) {
    static_assert(K::kThreads % 32 == 0 && K::kThreads <= Program::kThreads && K::kShared <= Program::kShared);
    const uint32_t left = last_ - i, n = c_.ring[i % c_.kSteps].run;
    const uint32_t stop = i + (n < left ? n : left);
    typename K::Resident kept;
    now_ = i;
    detail::poison(smem_, static_cast<int>(l_.shared), threads_);
    trace_.begin(i - first_, c_.ring[i % c_.kSteps].op, c_.ring[i % c_.kSteps].rtask);
    if (in<K>()) {
      K::load(task<K>(), *reinterpret_cast<const typename K::Args*>(c_.args[i % c_.kOperands]), static_cast<int>(c_.ring[i % c_.kSteps].rtask), kept);
    }
    trace_.mark(i - first_, kLoaded);
    RT_NO_UNROLL
    while (i < stop) {
      if constexpr (HasDirect<K> && kRoomForDirect) {
        if (l_.persistent && c_.ring[i % c_.kSteps].direct > 0) {
          i = run_direct<K>(i, stop);
          continue;
        }
      }
      if constexpr (kHasNear<K>) {
        if (l_.persistent && c_.ring[i % c_.kSteps].near > 0) {
          i = run_near<K>(i, stop);
          continue;
        }
      }
      now_ = i;
      // Where the last warp takes no part in rTasks, it fetches while the others are at the step.
      constexpr bool kApart = K::kFreeWarp && !kTraced;
      if (!kApart || c_.ring[i % c_.kSteps].wait_count > 0) await(i);
      if (!kApart || fetches()) prefetch(i);
      if (kApart && fetches()) {
        end(i);
        ++i;
        continue;
      }
      if (in<K>()) {
        K::prepare(task<K>(), *reinterpret_cast<const typename K::Args*>(c_.args[i % c_.kOperands]),
                   static_cast<int>(c_.ring[i % c_.kSteps].rtask), kept);
      }
      bring(i, kApart);
      if (in<K>()) {
        K::compute_rtask(task<K>(), *reinterpret_cast<const typename K::Args*>(c_.args[i % c_.kOperands]),
                         static_cast<int>(c_.ring[i % c_.kSteps].rtask), kept);
      }
      end(i);
      ++i;
    }
    return i;
  }

  // For programs printed step by step (Rammer, Figure 9): a barrier-rTask, and a step.
  template <int N>
  RT_DEVICE void barrier(const Wait (&waits)[N], Place p) {
    trace_.begin(p.order, p.op, p.rtask);
    wait(waits, waits, N, p);
    trace_.mark(p.order, kReady);
  }
  template <class K>
  RT_DEVICE void step(const typename K::Args& args, Place p, Chunks chunks) {
    trace_.begin(p.order, p.op, p.rtask);
    detail::poison(smem_, static_cast<int>(l_.shared), threads_);
    trace_.mark(p.order, kStarted);
    place_ = p, chunks_ = chunks;
    compute<K>(&args, static_cast<int>(p.rtask));
    settle();
    trace_.mark(p.order, kComputed);
  }

  // The end of a launch: all vEUs, also those without steps, go on to the next epoch.
  RT_DEVICE void finish() {
    trace_.end();
    if (!l_.persistent) return;
    detail::block_barrier(threads_);  // everybody has read the old one
    if (tid_ != threads_ - 32) return;
    l_.flags[veu_ * kFlagStride + kEpochWord] = epoch_ + l_.max_steps;
    l_.flags[veu_ * kFlagStride + kLaunchesWord] = launches_ + 1;
  }

  // Runs one rTask of K on the vEU's first K::kThreads threads.
  template <class K>
  RT_DEVICE void compute(const void* args, int rtask) {
    static_assert(K::kThreads % 32 == 0 && K::kThreads <= Program::kThreads && K::kShared <= Program::kShared);
    static_assert(sizeof(typename K::Args) <= kMaxArgsBytes, "an rKernel's Args take at most 1 KB");
    const typename K::Args& a = *static_cast<const typename K::Args*>(args);
    if constexpr (Streams<K>) {
      static_assert(Layout::kHasRing && Program::kStageBytes >= K::kStreamStep);
      const Stream stream = this->stream();
      if (K::kThreads == Program::kThreads || tid_ < K::kThreads) {
        Task t = task<K>();
        t.stream = stream;
        K::compute_rtask(t, a, rtask);
      } else {
        Layout::WeightRing::skip(stream, chunks_);
      }
      detail::expect_streamed(chunks_.count, tid_ < K::kThreads);
      next_.pass(chunks_.count, l_.stages);
    } else if (tid_ < K::kThreads) {
      K::compute_rtask(task<K>(), a, rtask);
    }
  }

  // The first warp polls up to 32 flags and counters at a time; one fence after the last of them orders
  // everything the producers wrote before what this thread block reads after the barrier.
  RT_DEVICE void wait(const Wait* staged, const Wait* all, uint32_t count, Place p) {
    if (tid_ < 32) {
      delay(Pause::kWait, p.order);
      RT_NO_UNROLL
      for (uint32_t first = 0; first < count; first += 32) {
        const uint32_t n = first + static_cast<uint32_t>(tid_);
        Wait w{0, 0};
        if (n < count) w = n < kStagedWaits ? staged[n] : all[n];
        poll(n < count, w, p);
      }
      detail::fence_acq_rel_gpu();
    }
    detail::block_barrier(threads_);
  }

  // A block barrier stands before this. The vEU's last warp publishes: the first one may be polling for
  // the next step already. Both are releases of what all threads wrote: the flag's store, and the addition to
  // the counter on line add, unless that is 0. Whoever sees the last of several additions has seen them all.
  RT_DEVICE void publish(uint32_t order, bool signal, uint32_t add) {
    if (tid_ != threads_ - 32) return;
    delay(Pause::kPublish, order);
    uint64_t *const flag = l_.flags + veu_ * kFlagStride, *const counter = l_.flags + add * kFlagStride;
    if (signal && add) {
      detail::fence_acq_rel_gpu();
      detail::store_relaxed_gpu(flag, epoch_ + order + 1);
      detail::add_relaxed_gpu(counter);
    } else if (signal) {
      detail::store_release_gpu(flag, epoch_ + order + 1);
    } else {
      detail::add_release_gpu(counter);
    }
    trace_.mark(order, kPublished);
  }

  // Ends a step: all copies but the Left latest have landed, all threads are done, shared memory is free.
  template <int Left = 0>
  RT_DEVICE void settle() {
    cp_async_wait<Left>();
    detail::block_barrier(threads_);
  }

  // Debug builds: sleeps now and then.
  RT_DEVICE void delay(Pause where, uint32_t order) const { random_pause(l_.delays, where, veu_, order); }

  RT_DEVICE uint32_t index() const { return veu_; }
  RT_DEVICE uint32_t segment() const { return l_.segment; }

 private:
  // A thread keeps what two direct steps need in registers.
  static constexpr bool kRoomForDirect = Program::kThreads <= 512;

  // Runs direct steps from i on, up to stop at most, and returns the step behind them. Only the descriptors
  // are shared: a barrier at each step, while words are on their way, says that those of the next one are
  // there and those of the one before free. The vEU's last warp fetches, also where it has elements.
  template <class K>
  RT_DEVICE uint32_t run_direct(uint32_t i, uint32_t stop) {
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
  RT_DEVICE void feed_direct(uint32_t k) {
    prefetch(k);
    cp_async_wait<1>();
  }
  // All threads have turned to step k of those from first on.
  RT_DEVICE void turn_direct(uint32_t k, uint32_t first, int pace) {
    detail::pace_barrier(pace);
    if constexpr (Tracer::kTraces) {
      const Step& s = c_.ring[k % c_.kSteps];
      if (k > first) trace_.mark(k - 1 - first_, kComputed);
      trace_.begin(k - first_, s.op, s.rtask);
      trace_.mark(k - first_, kReady);
    }
  }

  // Behind the last direct step, next is about what is there, and not used.
  template <class K>
  RT_DEVICE void step_direct(uint32_t i, uint32_t first, int pace, const typename K::Place& here, typename K::Place& next) {
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

  template <class K>
  RT_DEVICE void find_direct(uint32_t i, typename K::Place& p) const {
    const Step& s = c_.ring[i % c_.kSteps];
    K::find(tid_, l_.tagged, c_.moves[i % c_.kOperands], *reinterpret_cast<const typename K::Args*>(c_.args[i % c_.kOperands]),
            static_cast<int>(s.rtask), p);
  }

  template <class K>
  static constexpr bool kHasNear = HasNear<K> && Program::kSlots > 0;

  // Runs near steps from i on, up to stop at most, and returns the step behind them. The vEU's last warp
  // fetches; the barrier of each step also says that the descriptors of the next are there, and those of the
  // one before it free.
  template <class K>
  RT_DEVICE uint32_t run_near(uint32_t i, uint32_t stop) {
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

  RT_DEVICE void feed_near(uint32_t i, uint32_t stop, int pace) {
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

  template <class K>
  RT_DEVICE void step_near(uint32_t i, NearPlace<K::kOperands>& at) {
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
  template <class K>
  RT_DEVICE void find_near(uint32_t i, NearPlace<K::kOperands>& at) const {
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

  // Whether the thread takes part in rTasks of K; where all do, no branch must be left of it.
  template <class K>
  RT_DEVICE bool in() const {
    return K::kThreads == Program::kThreads || tid_ < K::kThreads;
  }

  // What the rTask of the current step is told.
  template <class K>
  RT_DEVICE Task task() const {
    if constexpr (Program::kMoves > 0) {
      const Step& s = c_.ring[now_ % c_.kSteps];
      const Move* exports = c_.moves[now_ % c_.kOperands] + s.imports;
      return Task{tid_, smem_, c_.bases, K::kThreads, imports(), exports, s.exports, tag(), l_.tagged, Program::kSlots > 0 ? slots() : nullptr};
    } else {
      return Task{tid_, smem_, c_.bases, K::kThreads, nullptr, nullptr, 0, 0, nullptr, nullptr};
    }
  }
  RT_DEVICE float* imports() const {
    return reinterpret_cast<float*>(reinterpret_cast<char*>(&c_) + Layout::kImports);
  }

  RT_DEVICE uint32_t* slots() const {
    return reinterpret_cast<uint32_t*>(reinterpret_cast<char*>(&c_) + Layout::kSlots);
  }

  // Makes i the current step and starts the copies of what those after it need.
  RT_DEVICE void prefetch(uint32_t i) {
    now_ = i;
    if (!fetches()) return;
    fetch_operands(i + 2);
    fetch_step(i + 4);
    cp_async_commit();
  }

  // Everything that has to happen before a step's rTask.
  RT_DEVICE void begin(uint32_t i) {
    await(i);
    bring(i);
  }

  // Waits for the steps that step i waits for: what they wrote is there, and what it polls may not be.
  RT_DEVICE void await(uint32_t i) {
    const Step s = c_.ring[i % c_.kSteps];
    const Place p{i - first_, s.op, s.rtask};
    trace_.begin(p.order, p.op, p.rtask);
    // What streams weights asks for its inputs itself, when the weights have been turned to already.
    if (!Layout::kHasRing || s.stream_words == 0 || s.imports > 0) detail::wait_for_launches_before();
    if (l_.persistent && s.wait_count > 0) wait(c_.waits[i % c_.kOperands], l_.waits + s.wait_begin, s.wait_count, p);
    trace_.mark(p.order, kReady);
  }

  // Brings the operands that go through the import area; apart: without the warp that fetches.
  RT_DEVICE void bring(uint32_t i, bool apart = false) {
    const Step s = c_.ring[i % c_.kSteps];
    const Place p{i - first_, s.op, s.rtask};
    if constexpr (Program::kMoves > 0) {
      if (s.imports > 0) {
        delay(Pause::kImport, p.order);
        each_move(c_.moves[i % c_.kOperands], s.imports, [&](const Move& m, uint32_t at, uint32_t stride) {
          if (Program::kSlots > 0 && m.kind == kSlotMove && l_.persistent) {
            import_near(m, at, stride, p);
          } else if (m.kind == kPlainMove) {
            import_plain(m, at, stride);
          } else {
            import_tagged(m, at, stride, p);
          }
        });
        if (apart) {
          detail::movers_barrier(threads_ - 32);
        } else {
          detail::block_barrier(threads_);
        }
      }
    }
    delay(Pause::kRTask, p.order);
    trace_.mark(p.order, kStarted);
  }

  // Everything that has to happen after it.
  RT_DEVICE void end(uint32_t i) {
    const Step& s = c_.ring[i % c_.kSteps];
    const bool signal = l_.persistent && s.signal;
    const uint32_t add = l_.persistent ? s.add : 0;
    if (!Tracer::kTraces && !l_.persistent && i + 1 == last_) return;  // the launch's end is enough
    // rTasks whose operands the executor brings leave no copies of their own behind.
    if (s.imports + s.exports > 0) {
      settle<1>();  // for later steps
    } else {
      settle();
    }
    trace_.mark(i - first_, kComputed);
    if (signal || add) publish(i - first_, signal, add);
  }

  // Deals the moves to the warps, in one, two or four teams; body(move, at, stride) takes the elements at,
  // at + stride, …
  template <class Body>
  RT_DEVICE void each_move(const Move* moves, uint32_t n, Body body) {
    const uint32_t warp = static_cast<uint32_t>(tid_) / 32, lane = static_cast<uint32_t>(tid_) % 32;
    const uint32_t warps = movers();
    if (warp >= warps) return;
    const uint32_t shift = warps >= 4 && n >= 4 ? 2 : warps >= 2 && n >= 2 ? 1 : 0, teams = 1u << shift;
    const uint32_t team = warp & (teams - 1), member = warp >> shift, members = (warps - team + teams - 1) >> shift;
    RT_NO_UNROLL
    for (uint32_t m = team; m < n; m += teams) body(moves[m], member * 32 + lane, members * 32);
  }

  // Polls the words themselves, two pairs at a time.
  RT_DEVICE void import_tagged(const Move& m, uint32_t at, uint32_t stride, Place p) {
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
        if (all || !l_.persistent) break;
        patience.spent(true, l_.report,
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

  // Polls words in the vEU's own shared memory, where others of its cluster put them, and empties them.
  RT_DEVICE void import_near(const Move& m, uint32_t at, uint32_t stride, Place p) {
    const uint32_t count = m.count, first = m.slot;
    uint32_t* words = slots() + first;
    uint32_t* to = reinterpret_cast<uint32_t*>(imports()) + m.staged;
    RT_NO_UNROLL
    for (at *= 2; at < count; at += 2 * stride) {
      const bool single = at + 1 == count;
      uint32_t v[2];
      detail::Patience patience(l_.patience_ns);
      for (;;) {
        detail::load_own(words + at, v);
        if (v[0] != kEmptyWord && (single || v[1] != kEmptyWord)) break;
        patience.spent(true, l_.report, Report{kNearReport, l_.segment, veu_, p.order, 0, first + at, p.op, p.rtask, 1, 0});
      }
      detail::store_own(words + at, kEmptyWord);
      to[at] = v[0];
      if (!single) to[at + 1] = v[1];
    }
  }

  RT_DEVICE void import_plain(const Move& m, uint32_t at, uint32_t stride) {
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

  RT_DEVICE uint32_t* plain(const Move& m) const {
    return reinterpret_cast<uint32_t*>(detail::global(c_.bases[m.at >> 56] + (m.at & kRefOffsetMask)));
  }

  // The tag of this launch: none before had it, and words start as zeros. In waves nobody polls words.
  RT_DEVICE uint32_t tag() const { return l_.persistent ? static_cast<uint32_t>(launches_) + 1 : 0; }

  // The last warp fetches. Where there are others, they bring operands meanwhile.
  RT_DEVICE bool fetches() const { return tid_ >= threads_ - 32; }
  RT_DEVICE uint32_t movers() const { return threads_ > 32 ? static_cast<uint32_t>(threads_) / 32 - 1 : 1; }

  RT_DEVICE void fetch_step(uint32_t i) {
    const int lane = tid_ % 32;
    if (i < last_ && fetches() && lane < static_cast<int>(sizeof(Step) / 16)) {
      cp_async16(reinterpret_cast<char*>(&c_.ring[i % c_.kSteps]) + 16 * lane,
                 reinterpret_cast<const char*>(l_.steps + i) + 16 * lane);
    }
  }

  RT_DEVICE void fetch_args(uint32_t i, uint32_t at, uint32_t words) {
    if (!fetches()) return;
    RT_NO_UNROLL
    for (uint32_t w = static_cast<uint32_t>(tid_) % 32; w < words; w += 32) {
      cp_async16(c_.args[i % c_.kOperands] + 16 * w, l_.args + at + 16 * w);
    }
  }

  RT_DEVICE void fetch_operands(uint32_t i) {
    if (i >= last_ || !fetches()) return;
    const int lane = tid_ % 32;
    const Step s = c_.ring[i % c_.kSteps];
    fetch_args(i, s.args, s.args_words);
    if constexpr (Program::kMoves > 0) {
      RT_NO_UNROLL
      for (int w = lane; w < 2 * (s.imports + s.exports); w += 32) {
        cp_async16(reinterpret_cast<char*>(c_.moves[i % c_.kOperands]) + 16 * w,
                   reinterpret_cast<const char*>(l_.moves + s.move_begin) + 16 * w);
      }
    }
    if (l_.persistent) {
      const int pairs = (min_waits(s.wait_count) + 1) / 2;
      RT_NO_UNROLL
      for (int w = lane; w < pairs; w += 32) {
        cp_async16(&c_.waits[i % c_.kOperands][2 * w], l_.waits + s.wait_begin + 2 * w);
      }
    }
  }

  // The stream of the step at hand.
  RT_DEVICE Stream stream() const {
    const Report r{kWeightsReport, l_.segment, veu_, place_.order, 0, 0, place_.op, place_.rtask, 0, 0};
    typename Layout::WeightRing ring(detail::shared_base() + Layout::ring(l_.shared), l_.stages);
    return ring.stream(chunks_, next_, Watch{r, l_.report, l_.patience_ns, ChunkPen(l_)});
  }

  RT_DEVICE static int min_waits(uint32_t n) { return static_cast<int>(n < kStagedWaits ? n : kStagedWaits); }

  // All lanes leave together, when every lane's flag or counter has come.
  RT_DEVICE void poll(bool mine, Wait w, Place p) {
    const uint64_t* flag = l_.flags + (w.veu & ~kCounterWait) * kFlagStride;
    const uint64_t target = w.veu & kCounterWait ? (launches_ + 1) * w.order : epoch_ + w.order + 1;
    detail::Patience patience(l_.patience_ns);
    for (;;) {
      const uint64_t seen = mine ? detail::load_relaxed_gpu(flag) : target;
      if (detail::all_lanes(seen >= target)) return;
      patience.spent(seen < target, l_.report, Report{kWaitReport, l_.segment, veu_, p.order, w.veu, w.order, p.op, p.rtask, target, seen});
    }
  }

  const Args& l_;
  ControlBlock& c_;
  char* smem_;
  int tid_, threads_;
  uint32_t first_ = 0, last_ = 0, now_ = 0;  // its steps in this launch, and the current one
  uint32_t veu_;
  uint64_t epoch_;     // nobody has published more before this launch
  uint64_t launches_;  // so many before this one
  Tracer trace_;
  Place place_ = {};     // of the step at hand
  Chunks chunks_ = {};   // of its weights
  RingPlace next_ = {};  // where they are
};

// Empties a block's slots. When all of its cluster have, others' words may come.
template <class Program>
RT_DEVICE void open_slots() {
  uint32_t* slots = reinterpret_cast<uint32_t*>(detail::shared_base() + SharedLayout<Program>::kSlots);
  const int threads = detail::block_threads();
  RT_NO_UNROLL
  for (int i = 2 * detail::thread_index(); i < Program::kSlots; i += 2 * threads) detail::store_own(slots + i, kEmptyWord);
  detail::cluster_barrier();
}

// What the thread is: the vEU's, or its loader's.
template <class Program>
RT_DEVICE void run_role(const LaunchArgs<Program::kSpaces>& l) {
  using Layout = SharedLayout<Program>;
  if (Layout::kHasRing && l.stages > 0 && detail::thread_index() >= detail::block_threads() - 32) {
    typename Layout::WeightRing ring(detail::shared_base() + Layout::ring(l.shared), l.stages);
    ring.open(detail::block_threads() - 32);
    // The vEU's own waits are reported; the loader is only held up. It ends a launch that hangs later
    // than they would, and says nothing.
    const uint32_t block = static_cast<uint32_t>(detail::block_index());
    Watch watch{Report{}, l.report, 2 * l.patience_ns, ChunkPen(l), l.delays, l.first_veu + block};
    const char* weights = l.bases[kWeightsSpace];
    if (l.weights.words > 0) return load_block(ring, l.weights, own_steps(l).first, weights, watch);
    return load_weights(ring, l.steps, own_steps(l), weights, watch);
  }
  VEU<Program> veu(l);
  Program::run(veu, l.persistent != 0);
  veu.finish();
}

// One thread of a thread block.
template <class Program>
RT_DEVICE void run_thread(const LaunchArgs<Program::kSpaces>& l) {
  if (l.guard_ns > 0 && !all_here(l)) return;
  // A launch may start while the one before it ends. Until a step asks for its inputs only tables and
  // weights are read.
  detail::allow_next_launch();
  if constexpr (Program::kSlots > 0) {
    if (l.cluster > 1) open_slots<Program>();
  }
  run_role<Program>(l);
  if constexpr (Program::kSlots > 0) {
    if (l.cluster > 1) detail::cluster_barrier();  // no word comes for a block that has ended
  }
}

}  // namespace rt
