// A vEU, as one of its threads sees it: the state that all parts of the executor share. What a part does is in a file
// of its own:
//
//   walk.cuh           from step to step
//   fetch.cuh          brings descriptors of the steps ahead into shared memory
//   mode_plain.cuh     a step whose instance keeps nothing on chip
//   live.cuh           a step that has nothing to do in a run with small extents
//   mode_resident.cuh  a run of steps that share what their instance keeps on chip
//   mode_direct.cuh    steps of a run whose threads poll tagged words themselves
//   mode_near.cuh      steps of a run whose threads take words from slots themselves
//   jump.cuh           jumps over branches that are not taken
//   repeat.cuh         a program that runs again and again in one launch
//   imports.cuh        brings operands into the import area
//   edge_launch.cuh, edge_flag.cuh, edge_counter.cuh, edge_tagged.cuh, edge_slot.cuh
//                      how a step learns of other steps, one file for each kind of edge
#pragma once

#include "rt/device/device.cuh"
#include "rt/exec/delays.cuh"
#include "rt/exec/launch_args.cuh"
#include "rt/exec/layout.cuh"
#include "rt/exec/needs.cuh"

namespace rt {

// The step that a vEU is at, for reports. `order` counts from the vEU's first step of the launch.
struct Place {
  uint32_t order, op, rtask;
};

template <class Program>
class VEU {
 public:
  using Args = ArgsOf<Program>;
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
    for (int i = tid_; i < Program::kSpaces; i += threads_) {
      c_.bases[i] = base(i);
      if (Program::kSpaces <= 32) break;  // there is a thread for each
    }
    if (Layout::kHasRing && l_.stages > 0) detail::wait_for_loader(detail::block_threads());
  }

  // Walks the vEU's steps of the launch (walk.cuh).
  RT_DEVICE void run();
  // Behind a run of a program that repeats: whether it runs again (repeat.cuh).
  RT_DEVICE bool runs_again(uint32_t run);
  // The end of a launch.
  RT_DEVICE void finish();

  // Called by the Program, with the instance of a step: computes one rTask (mode_plain.cuh); runs the steps from i on
  // that share what K keeps on chip, and returns the step behind them (mode_resident.cuh).
  template <class K>
  RT_DEVICE void compute(const void* args, int rtask);
  template <class K>
  RT_DEVICE uint32_t run_resident(uint32_t i);

 private:
  // ---- What the thread is ----

  // Whether the launch is an rProgram, whose vEUs wait for each other.
  RT_DEVICE bool persistent() const { return Program::kPersistent && l_.persistent; }
  // The last warp fetches descriptors. Where there are other warps, those bring operands meanwhile: so many. Without a
  // ring the number of threads is a constant of the launch, and ptxas would keep it less 32, too, while rTasks run.
  RT_DEVICE bool fetches() const { return tid_ >= (Layout::kHasRing ? threads_ : detail::settled(threads_)) - 32; }
  RT_DEVICE uint32_t movers() const { return threads_ > 32 ? static_cast<uint32_t>(threads_) / 32 - 1 : 1; }
  // Whether a block runs one step, and nothing behind it or beside it.
  static constexpr bool kOneStep = !Program::kPersistent && !Program::kSeveralSteps && !Program::kHasResident &&
                                   Program::kSlots == 0 && !Layout::kHasRing && !Tracer::kTraces;
  // Whether the thread takes part in rTasks of K. Where all threads do, this is a constant and leaves no branch.
  template <class K>
  RT_DEVICE bool in() const {
    return K::kThreads == Program::kThreads || tid_ < K::kThreads;
  }
  // Whether the executor brings operands of a step.
  RT_DEVICE static bool has_imports(const Step& s) { return Program::kMoves > 0 && s.imports > 0; }
  // Debug builds: sleeps now and then.
  RT_DEVICE void delay(Pause where, uint32_t order) const { random_pause(l_.delays, where, veu_, order); }

  // The address of an address space.
  RT_DEVICE char* base(int space) const {
    if constexpr (Program::kCallerMaps > 0) {
      if (space == Program::kSpaces - 1) return const_cast<char*>(l_.caller_maps[0].bytes);
    }
    return l_.bases[space];
  }

  // ---- Shared memory (layout.cuh) ----

  RT_DEVICE char* shared(size_t at) const { return reinterpret_cast<char*>(&c_) + at; }
  RT_DEVICE float* imports() const { return reinterpret_cast<float*>(shared(Layout::kImports)); }
  RT_DEVICE uint32_t* slots() const { return reinterpret_cast<uint32_t*>(shared(Layout::kSlots)); }
  RT_DEVICE uint64_t* gates() const { return reinterpret_cast<uint64_t*>(shared(Layout::kGatesAt)); }
  RT_DEVICE uint64_t* turns() const { return reinterpret_cast<uint64_t*>(shared(Layout::kTurns)); }

  // ---- fetch.cuh ----

  RT_DEVICE void fetch_first();
  RT_DEVICE void fetch_from(uint32_t i);
  template <int N = 1>
  RT_DEVICE void fetch_steps(uint32_t i);
  template <int Lanes = 32>
  RT_DEVICE void fetch_args(uint32_t i, uint32_t at, uint32_t words);
  template <int N = 1>
  RT_DEVICE void fetch_operands(uint32_t i);
  RT_DEVICE void prefetch(uint32_t i);

  // ---- walk.cuh, mode_plain.cuh ----

  RT_DEVICE uint32_t run_steps(uint32_t i);
  RT_DEVICE void run_plain(uint32_t i);
  RT_DEVICE bool waits_late(uint32_t i) const;
  RT_DEVICE void await(uint32_t i);
  RT_DEVICE void end(uint32_t i);
  template <int Left = 0>
  RT_DEVICE void settle();
  template <class K>
  RT_DEVICE bool idle(const void* args, uint32_t rtask);
  RT_DEVICE Stream stream() const;
  template <class K>
  RT_DEVICE Task task() const;

  // ---- jump.cuh ----

  RT_DEVICE uint32_t pass_test(uint32_t i);
  RT_DEVICE uint32_t test(uint32_t i);
  RT_DEVICE void jump(uint32_t i, uint32_t n);
  RT_DEVICE const Wait* jumps_and_waits(uint32_t i) const;

  // ---- repeat.cuh ----

  RT_DEVICE void patch(uint32_t run, uint64_t verdict);
  RT_DEVICE uint64_t await_verdict(const uint64_t* word, uint64_t verdict) const;

  // ---- mode_direct.cuh ----

  // In direct steps a thread keeps what two steps need in registers; larger vEUs have too few of these.
  static constexpr bool kRoomForDirect = Program::kThreads <= 512;
  template <class K>
  static constexpr bool kHasDirect = HasDirect<K> && kRoomForDirect && Program::kPersistent && Program::kDirectSteps;
  template <class K>
  RT_DEVICE uint32_t run_direct(uint32_t i, uint32_t stop);
  template <class K>
  RT_DEVICE bool fetches_apart() const;
  template <class K>
  RT_DEVICE int meeting() const;
  RT_DEVICE void feed_direct(uint32_t k);
  RT_DEVICE void trace_direct(uint32_t k, uint32_t first);
  template <class K>
  RT_DEVICE void step_direct(uint32_t i, uint32_t first, const typename K::Place& here, typename K::Place& next);
  template <class K>
  RT_DEVICE void find_direct(uint32_t i, typename K::Place& p) const;

  // ---- mode_near.cuh ----

  template <class K>
  static constexpr bool kHasNear = Program::kPersistent && Program::kNearSteps && HasNear<K> && Program::kSlots > 0;
  template <class K>
  RT_DEVICE uint32_t run_near(uint32_t i, uint32_t stop);
  RT_DEVICE void feed_near(uint32_t k);
  template <class K>
  RT_DEVICE void keep_near(uint32_t i, uint32_t turn);
  template <class K>
  RT_DEVICE void step_near(uint32_t i, const detail::Ranks& around);
  RT_DEVICE uint64_t* there(uint32_t turn) const;
  RT_DEVICE uint64_t* used(uint32_t turn) const;
  RT_DEVICE uint64_t* kept_there(uint32_t turn) const;
  RT_DEVICE void wait_turn(uint64_t* bar, uint32_t turn) const;

  // ---- imports.cuh ----

  RT_DEVICE void bring(uint32_t i);
  template <class Body>
  RT_DEVICE void each_move(const Move* moves, uint32_t n, Body body);
  RT_DEVICE void import_plain(const Move& m, uint32_t at, uint32_t stride);
  RT_DEVICE uint32_t* plain(const Move& m) const;

  // ---- edge_*.cuh ----

  RT_DEVICE Pending pending(uint32_t i) const;
  RT_DEVICE void publish(uint32_t order, bool signal, uint32_t add);
  RT_DEVICE uint64_t* line(uint32_t number) const { return l_.flags + number * kFlagStride; }
  RT_DEVICE uint32_t tag() const;
  RT_DEVICE void import_tagged(const Move& m, uint32_t at, uint32_t stride, Place p);
  RT_DEVICE void await_words(const Move* moves, uint32_t n);
  RT_DEVICE void import_near(const Move& m, uint32_t at, uint32_t stride, Place p);

  const Args& l_;
  ControlBlock& c_;
  char* smem_;          // the rTask's shared memory
  int tid_, threads_;   // the thread's number, and how many threads compute: the loader's are not among them
  uint32_t first_ = 0;  // the vEU's steps in this launch: from first_ up to, but without, last_
  uint32_t last_ = 0;
  uint32_t now_ = 0;  // the current one
  uint32_t veu_;
  uint64_t epoch_, launches_;  // from the vEU's line of the step array
  Tracer trace_;
  Place place_ = {};     // of a plain step that streams weights, for reports
  Chunks chunks_ = {};   // how its weight block is cut
  RingPlace next_ = {};  // where the next chunk is in the ring
  uint32_t turn_ = 0;    // near steps so far
  uint32_t tests_ = 0;   // of conditions so far, and of whether the program runs again
};

}  // namespace rt
