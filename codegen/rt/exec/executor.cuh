// The executor: runs prog[vEU][order] from tables. A thread block is a vEU; it walks its steps, waits for
// the steps they name, computes their rTasks and publishes those somebody waits for.
#pragma once

#include <initializer_list>

#include "rt/exec/delays.cuh"
#include "rt/device/device.cuh"
#include "rt/exec/guard.cuh"
#include "rt/exec/layout.cuh"
#include "rt/exec/near.cuh"
#include "rt/exec/ring.cuh"
#include "rt/exec/tables.cuh"
#include "rt/exec/words.cuh"

namespace rt {

// What the rKernel instances of a program need at most; an emitted Program derives from it, and says which parts
// of the executor none of its launches uses: their code is left out.
template <class... Kernels>
struct Needs {
  static constexpr int most(int least, std::initializer_list<int> all) {
    for (const int n : all) least = n > least ? n : least;
    return least;
  }
  static constexpr int kThreads = most(32, {Kernels::kThreads...});
  static constexpr int kShared = most(0, {Kernels::kShared...});
  static constexpr int kArgsBytes = (most(16, {static_cast<int>(sizeof(typename Kernels::Args))...}) + 15) / 16 * 16;

  static constexpr int kAlone = 0;           // the least shared memory of a block that is alone on a multiprocessor
  static constexpr bool kPersistent = true;  // rPrograms
  static constexpr bool kWalked = true, kSingle = true;  // loaders that walk steps, or bring each block's only one
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
        tid_(Layout::kHasRing ? detail::kept_thread_index() : detail::thread_index()),
        threads_(detail::block_threads() - (Layout::kHasRing && l.stages > 0 ? 32 : 0)),
        veu_(l.first_veu + static_cast<uint32_t>(detail::block_index())),
        epoch_(persistent() ? l.flags[veu_ * kFlagStride + kEpochWord] : 0),
        launches_(persistent() ? l.flags[veu_ * kFlagStride + kLaunchesWord] : 0),
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
      RT_NO_UNROLL
      for (uint32_t i = first; i < first + 2; ++i) fetch_operands(i);
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
      if constexpr (HasDirect<K> && kRoomForDirect && Program::kPersistent) {
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
      await(i);
      prefetch(i);
      if (in<K>()) {
        K::prepare(task<K>(), *reinterpret_cast<const typename K::Args*>(c_.args[i % c_.kOperands]),
                   static_cast<int>(c_.ring[i % c_.kSteps].rtask), kept);
      }
      bring(i);
      if (in<K>()) {
        K::compute_rtask(task<K>(), *reinterpret_cast<const typename K::Args*>(c_.args[i % c_.kOperands]),
                         static_cast<int>(c_.ring[i % c_.kSteps].rtask), kept);
      }
      end(i);
      ++i;
    }
    return i;
  }

  // The end of a launch: all vEUs, also those without steps, go on to the next epoch.
  RT_DEVICE void finish() {
    trace_.end();
    if (!persistent()) return;
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

 private:
  // Whether this launch is an rProgram with waits.
  RT_DEVICE bool persistent() const { return Program::kPersistent && l_.persistent; }

  // A thread keeps what two direct steps need in registers.
  static constexpr bool kRoomForDirect = Program::kThreads <= 512;

  template <class K>
  RT_DEVICE uint32_t run_direct(uint32_t i, uint32_t stop);

  // Whether the warp that fetches for K's direct steps has nothing to compute, and the threads of K and that warp.
  template <class K>
  RT_DEVICE bool fetches_apart() const {
    return K::kFreeWarp || K::kThreads < threads_;
  }
  template <class K>
  RT_DEVICE int meeting() const {
    return (K::kThreads < threads_ ? K::kThreads : threads_ - 32) + 32;
  }

  RT_DEVICE void feed_direct(uint32_t k);
  RT_DEVICE void trace_direct(uint32_t k, uint32_t first);

  template <class K>
  RT_DEVICE void step_direct(uint32_t i, uint32_t first, const typename K::Place& here, typename K::Place& next);

  template <class K>
  RT_DEVICE void find_direct(uint32_t i, typename K::Place& p) const;

  template <class K>
  static constexpr bool kHasNear = HasNear<K> && Program::kSlots > 0 && Program::kPersistent;

  template <class K>
  RT_DEVICE uint32_t run_near(uint32_t i, uint32_t stop);

  RT_DEVICE void feed_near(uint32_t k);

  template <class K>
  RT_DEVICE void keep_near(uint32_t i, uint32_t turn);

  template <class K>
  RT_DEVICE void step_near(uint32_t i, const detail::Ranks& around);

  // Turns of near steps: their descriptors are there, or used, and their operands from memory are there.
  RT_DEVICE uint64_t* there(uint32_t turn) const { return turns() + turn % c_.kOperands; }
  RT_DEVICE uint64_t* used(uint32_t turn) const { return turns() + c_.kOperands + turn % c_.kOperands; }
  RT_DEVICE uint64_t* kept_there(uint32_t turn) const { return turns() + 2 * c_.kOperands + turn % c_.kOperands; }
  RT_DEVICE uint64_t* turns() const { return reinterpret_cast<uint64_t*>(reinterpret_cast<char*>(&c_) + Layout::kTurns); }
  RT_DEVICE void wait_turn(uint64_t* bar, uint32_t turn) const;

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
      return Task{tid_, smem_, c_.bases, K::kThreads, imports(), exports, s.exports, tag(), l_.tagged, Program::kSlots > 0 ? slots() : nullptr, Program::kSlots > 0 ? gates() : nullptr};
    } else {
      return Task{tid_, smem_, c_.bases, K::kThreads, nullptr, nullptr, 0, 0, nullptr, nullptr, nullptr};
    }
  }
  RT_DEVICE float* imports() const {
    return reinterpret_cast<float*>(reinterpret_cast<char*>(&c_) + Layout::kImports);
  }

  RT_DEVICE uint32_t* slots() const {
    return reinterpret_cast<uint32_t*>(reinterpret_cast<char*>(&c_) + Layout::kSlots);
  }
  RT_DEVICE uint64_t* gates() const {
    return reinterpret_cast<uint64_t*>(reinterpret_cast<char*>(&c_) + Layout::kGatesAt);
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
    if (persistent() && s.wait_count > 0) wait(c_.waits[i % c_.kOperands], l_.waits + s.wait_begin, s.wait_count, p);
    trace_.mark(p.order, kReady);
  }

  RT_DEVICE void bring(uint32_t i);

  // Everything that has to happen after it.
  RT_DEVICE void end(uint32_t i) {
    const Step& s = c_.ring[i % c_.kSteps];
    const bool signal = persistent() && s.signal;
    const uint32_t add = persistent() ? s.add : 0;
    if (!Tracer::kTraces && !persistent() && i + 1 == last_) return;  // the launch's end is enough
    // rTasks whose operands the executor brings leave no copies of their own behind.
    if (s.imports + s.exports > 0) {
      settle<1>();  // for later steps
    } else {
      settle();
    }
    trace_.mark(i - first_, kComputed);
    if (signal || add) publish(i - first_, signal, add);
  }

  template <class Body>
  RT_DEVICE void each_move(const Move* moves, uint32_t n, Body body);

  RT_DEVICE void import_tagged(const Move& m, uint32_t at, uint32_t stride, Place p);

  RT_DEVICE void await_words(const Move* moves, uint32_t n);

  RT_DEVICE void import_near(const Move& m, uint32_t at, uint32_t stride, Place p);

  RT_DEVICE void import_plain(const Move& m, uint32_t at, uint32_t stride);

  RT_DEVICE uint32_t* plain(const Move& m) const {
    return reinterpret_cast<uint32_t*>(detail::global(c_.bases[m.at >> kSpaceShift] + (m.at & kRefOffsetMask)));
  }

  // The tag of the words that this launch exports. In waves nobody polls words, and 0 says so.
  RT_DEVICE uint32_t tag() const { return persistent() ? tag_of_launch(launches_) : 0; }

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
    if (persistent()) {
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
    return ring.stream(chunks_, next_, Watch{r, l_.reports, l_.patience_ns, ChunkPen(l_)});
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
      patience.spent(seen < target, l_.reports, Report{kWaitReport, l_.segment, veu_, p.order, w.veu, w.order, p.op, p.rtask, target, seen});
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
  uint32_t turn_ = 0;    // near steps so far
};

}  // namespace rt

#include "rt/exec/direct.cuh"
#include "rt/exec/imports.cuh"

namespace rt {

// Makes a block's gates. When all of its cluster have, others' words may come.
template <class Program>
RT_DEVICE void open_slots(bool loader) {
  using Layout = SharedLayout<Program>;
  constexpr uint32_t kTurns = Layout::ControlBlock::kOperands;
  detail::note_free(reinterpret_cast<uint32_t*>(detail::shared_base() + Layout::kSlots), Program::kSlots);
  uint64_t* gates = reinterpret_cast<uint64_t*>(detail::shared_base() + Layout::kGatesAt);
  RT_NO_UNROLL
  for (uint32_t i = static_cast<uint32_t>(detail::thread_index()); i < kGates * kGateParts; i += static_cast<uint32_t>(detail::block_threads())) {
    detail::gate_init(gates + i);
  }
  if (detail::thread_index() == 0) {
    const int warps = detail::block_threads() / 32 - (loader ? 2 : 1);  // but the one that fetches
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

// What the thread is: the vEU's, or its loader's.
template <class Program>
RT_DEVICE void run_role(const LaunchArgs<Program::kSpaces>& l) {
  using Layout = SharedLayout<Program>;
  const int warp = Layout::kHasRing ? detail::same_in_warp(detail::thread_index() / 32) : 0;
  if (Layout::kHasRing && l.stages > 0 && 32 * warp >= detail::block_threads() - 32) {
    typename Layout::WeightRing ring(detail::shared_base() + Layout::ring(l.shared), l.stages);
    ring.open(detail::block_threads() - 32);
    // The vEU's own waits are reported; the loader is only held up. It ends a launch that hangs later
    // than they would, and says nothing.
    const uint32_t block = static_cast<uint32_t>(detail::block_index());
    Watch watch{Report{}, l.reports, 2 * l.patience_ns, ChunkPen(l), l.delays, l.first_veu + block};
    const char* weights = l.bases[kWeightsSpace];
    if (Program::kSingle && (!Program::kWalked || l.weights.words > 0)) {
      load_block(ring, l.weights, own_steps(l).first, weights, watch);
    } else if constexpr (Program::kWalked) {
      load_weights(ring, l.steps, own_steps(l), weights, watch);
    }
    return;
  }
  VEU<Program> veu(l);
  veu.run();
  veu.finish();
}

// One thread of a thread block.
template <class Program>
RT_DEVICE void run_thread(const LaunchArgs<Program::kSpaces>& l) {
  if (Program::kPersistent && l.guard_ns > 0 && !all_here(l)) return;
  // A launch may start while the one before it ends. Until a step asks for its inputs only tables and
  // weights are read. Where blocks stream one step's weights the loader allows it, when it has asked for what its ring
  // holds: weights of the next launch would come before these.
  if (!SharedLayout<Program>::kHasRing || l.weights.words == 0) detail::allow_next_launch();
  if constexpr (Program::kSlots > 0) {
    if (l.cluster > 1) open_slots<Program>(SharedLayout<Program>::kHasRing && l.stages > 0);
  }
  run_role<Program>(l);
  if constexpr (Program::kSlots > 0) {
    if (l.cluster > 1) detail::cluster_barrier();  // no word comes for a block that has ended
  }
}

}  // namespace rt
