// One emulated thread block: its fibres, their barriers and warp exchanges, and the scheduler that runs
// them in an order drawn from a seed. A fibre runs until it waits, so whatever a missing barrier leaves
// open depends on the seed and shows as a wrong result.
#pragma once

#include "backend/emu/grid.h"

namespace rt::emu {

constexpr int kWarp = 32;
constexpr int kBarriers = 16;
constexpr int kNone = -1;
constexpr size_t kGuardBytes = 64;
constexpr unsigned char kGuard = 0xA5;
constexpr uint64_t kStackGuard = 0x5afe57ac5afe57acull;

struct Copy {
  void* to;
  const void* from;
  int bytes;
  int group;
};

struct Fiber {
  Context context;
  char* stack = nullptr;
  int tid = 0;
  int next = kNone;  // in a barrier's list
  int parity = 0;    // which half of the warp's slots the next exchange uses
  Copy* copies = nullptr;  // asynchronous copies that have not happened yet
  int copy_count = 0, copy_capacity = 0;
  int open_group = 0;
  const void* sleeps_on = nullptr;  // an mbarrier
  uint32_t chunks = 0;              // of weights that its rTask has taken
  uint32_t inputs = 0;              // how often it has asked for its inputs
};

struct Barrier {
  int arrived = 0, expected = 0;
  unsigned generation = 0;  // of a block that is used again and again: it wraps
  int first = kNone;
  char order[2] = {};  // addresses for ThreadSanitizer, one per parity of generation
};

// What an mbarrier's 64 bits hold.
struct Mbarrier {
  uint32_t completed;  // phases
  uint16_t arrived, expected;
};
static_assert(sizeof(Mbarrier) == 8);

struct Warp {
  Barrier barrier;
  uint64_t slots[2][kWarp][2];
};

// What a waiting vEU waits for; reported when it never comes.
struct WaitNote {
  uint32_t set = 0, segment = 0, veu = 0, step = 0, on_veu = 0, on_order = 0, op = 0, rtask = 0;
  uint64_t expected = 0, seen = 0;
};

class Block;
static thread_local Block* running_block = nullptr;

class Block {
 public:
  Block(int threads, size_t shared);
  ~Block();
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  bool ok() const { return stacks_ != nullptr && shared_raw_ != nullptr; }
  int threads() const { return threads_; }
  size_t shared_bytes() const { return shared_bytes_; }

  // Runs entry(param) on every thread of block `index` of the grid; false leaves the reason in error().
  bool run(Grid* grid, int index, uint64_t seed, void (*entry)(void*), void* param);
  const char* error() const { return error_; }
  bool stuck() const { return stuck_; }
  const WaitNote& note() const { return note_; }

  // For the code that runs on a fibre:
  RT_EMU_QUIET int thread_index() const { return current_->tid; }
  RT_EMU_QUIET int index() const { return index_; }
  RT_EMU_QUIET char* shared() const { return shared_; }
  RT_EMU_QUIET Grid* grid() const { return grid_; }
  RT_EMU_QUIET void set_note(const WaitNote& n) {
    note_.set = n.set, note_.segment = n.segment, note_.veu = n.veu, note_.step = n.step;
    note_.on_veu = n.on_veu, note_.on_order = n.on_order;
    note_.op = n.op, note_.rtask = n.rtask, note_.expected = n.expected, note_.seen = n.seen;
  }
  RT_EMU_QUIET void clear_note() { note_.set = 0; }
  RT_EMU_QUIET void barrier(int id, int expected) { wait_at(barriers_[id], expected); }
  RT_EMU_QUIET void barrier_arrive(int id, int expected) { arrive_at(barriers_[id], expected, false); }
  RT_EMU_QUIET void warp_barrier() { wait_at(warps_[current_->tid / kWarp].barrier, lanes(current_->tid / kWarp)); }
  RT_EMU_QUIET void exchange(const uint64_t in[2], int from_lane, uint64_t out[2]);
  RT_EMU_QUIET bool all_lanes(bool predicate);
  RT_EMU_QUIET void pause();
  RT_EMU_QUIET void maybe_lag();
  RT_EMU_QUIET void cluster_barrier();
  RT_EMU_QUIET uint32_t* near(const uint32_t* p, uint32_t rank);
  RT_EMU_QUIET bool mbarrier_arrive(Mbarrier* m);
  RT_EMU_QUIET bool mbarrier_done(const Mbarrier* m, uint32_t phase);
  RT_EMU_QUIET void mbarrier_sleep(const Mbarrier* m);
  RT_EMU_QUIET void note_chunk() { ++current_->chunks; }
  RT_EMU_QUIET void note_inputs() { ++current_->inputs; }
  RT_EMU_QUIET void expect_streamed(uint32_t chunks, bool inputs) {
    Fiber* f = current_;
    if (f->chunks != chunks) fail("an rTask does not take all chunks of its weights, or more");
    if (inputs && f->inputs == 0) fail("an rTask that streams weights does not ask for its inputs");
    f->chunks = f->inputs = 0;
  }
  void add_copy(void* to, const void* from, int bytes);
  RT_EMU_QUIET void commit_copies() { ++current_->open_group; }
  void finish_copies(int groups_left);
  [[noreturn]] RT_EMU_QUIET void fail(const char* what);

 private:
  RT_EMU_QUIET int lanes(int warp) const {
    const int left = threads_ - warp * kWarp;
    return left < kWarp ? left : kWarp;
  }
  RT_EMU_QUIET uint64_t draw() {  // xorshift64*
    rng_ ^= rng_ >> 12, rng_ ^= rng_ << 25, rng_ ^= rng_ >> 27;
    return rng_ * 0x2545F4914F6CDD1Dull;
  }
  RT_EMU_QUIET Fiber* take_ready() {
    const int i = static_cast<int>((draw() >> 32) % static_cast<uint64_t>(ready_count_));
    Fiber* f = &fibers_[ready_[i]];
    ready_[i] = ready_[--ready_count_];
    return f;
  }
  RT_EMU_QUIET void resume(Fiber* f) {  // from a fibre or from the scheduler's own stack
    Context& from = current_ ? current_->context : scheduler_;
    if (current_ == f) return;
    current_ = f;
    switch_context(from, f->context);
  }
  RT_EMU_QUIET void wake_lagging();
  RT_EMU_QUIET void suspend() {  // the current fibre waits; it stands in some list
    if (ready_count_ == 0) wake_lagging();
    if (ready_count_ > 0) return resume(take_ready());
    Fiber* f = current_;
    current_ = nullptr;
    switch_context(f->context, scheduler_);
  }
  RT_EMU_QUIET void wait_at(Barrier& b, int expected);
  RT_EMU_QUIET void arrive_at(Barrier& b, int expected, bool waits);
  RT_EMU_QUIET void schedule();
  RT_EMU_QUIET bool wake_pollers();
  RT_EMU_QUIET void describe_barriers();
  RT_EMU_QUIET void reset(Grid* grid, int index, uint64_t seed);
  void check_guards();
  RT_EMU_QUIET static void fiber_entry();
  RT_EMU_QUIET void end_fiber();

  int threads_;
  size_t shared_bytes_;
  Fiber* fibers_;
  Warp* warps_;
  int* ready_;
  int* polling_;
  int* asleep_;   // at mbarriers
  int* lagging_;  // until others wait
  char* stacks_;
  void* shared_raw_ = nullptr;
  char* shared_ = nullptr;

  Barrier barriers_[kBarriers];
  Context scheduler_;
  Fiber* current_ = nullptr;
  int ready_count_ = 0, polling_count_ = 0, asleep_count_ = 0, lagging_count_ = 0, finished_ = 0;
  uint64_t rng_ = 1;
  uint32_t seen_version_ = 0;
  uint32_t rounds_ = 0;  // of the cluster's barrier
  Grid* grid_ = nullptr;
  int index_ = 0;
  void (*entry_)(void*) = nullptr;
  void* param_ = nullptr;
  char start_ = 0, end_ = 0;  // addresses for ThreadSanitizer
  bool aborted_ = false, stuck_ = false;
  WaitNote note_;
  char error_[256] = "";
};

inline Block::Block(int threads, size_t shared)
    : threads_(threads),
      shared_bytes_(shared),
      fibers_(new Fiber[static_cast<size_t>(threads)]),
      warps_(new Warp[static_cast<size_t>((threads + kWarp - 1) / kWarp)]),
      ready_(new int[static_cast<size_t>(threads)]),
      polling_(new int[static_cast<size_t>(threads)]),
      asleep_(new int[static_cast<size_t>(threads)]),
      lagging_(new int[static_cast<size_t>(threads)]),
      stacks_(reserve_stacks(threads)) {
  const size_t bytes = (shared + 127) / 128 * 128 + 128;
  shared_raw_ = std::aligned_alloc(128, bytes);
  shared_ = static_cast<char*>(shared_raw_);
  for (int i = 0; i < threads; ++i) {
    fibers_[i].tid = i;
    fibers_[i].stack = stacks_ + kStackBytes * static_cast<size_t>(i);
#if defined(RT_EMU_TSAN)
    fibers_[i].context.tsan = __tsan_create_fiber(0);
#endif
  }
}

inline Block::~Block() {
  for (int i = 0; i < threads_; ++i) {
    std::free(fibers_[i].copies);
#if defined(RT_EMU_TSAN)
    __tsan_destroy_fiber(fibers_[i].context.tsan);
#endif
  }
  if (stacks_) release_stacks(stacks_, threads_);
  std::free(shared_raw_);
  delete[] fibers_;
  delete[] warps_;
  delete[] ready_;
  delete[] polling_;
  delete[] asleep_;
  delete[] lagging_;
}

inline void Block::reset(Grid* grid, int index, uint64_t seed) {
  grid_ = grid, index_ = index;
  rng_ = (seed + 1) * 0x9E3779B97F4A7C15ull ^ (static_cast<uint64_t>(index) + 1) * 0xD1B54A32D192ED03ull;
  if (rng_ == 0) rng_ = 1;
  for (Barrier& b : barriers_) b.arrived = b.expected = 0, b.first = kNone;
  for (int w = 0; w * kWarp < threads_; ++w) warps_[w].barrier.arrived = 0, warps_[w].barrier.first = kNone;
  for (int i = 0; i < threads_; ++i) {
    Fiber& f = fibers_[i];
    f.next = kNone, f.parity = 0, f.copy_count = 0, f.open_group = 0, f.chunks = f.inputs = 0;
    *reinterpret_cast<uint64_t*>(f.stack) = kStackGuard;
    prepare_context(f.context, f.stack, kStackBytes, fiber_entry);
    ready_[i] = i;
  }
  ready_count_ = threads_, polling_count_ = asleep_count_ = lagging_count_ = finished_ = 0;
  current_ = nullptr, aborted_ = stuck_ = false, note_.set = 0, error_[0] = 0;
  seen_version_ = grid->version();
  rounds_ = 0;
  grid->enter(index, shared_);
}

inline bool Block::run(Grid* grid, int index, uint64_t seed, void (*entry)(void*), void* param) {
  reset(grid, index, seed);
  entry_ = entry, param_ = param;
  for (size_t i = 0; i < kGuardBytes; ++i) shared_[shared_bytes_ + i] = static_cast<char>(kGuard);
  Block* outer = running_block;
  running_block = this;
#if defined(RT_EMU_TSAN)
  scheduler_.tsan = __tsan_get_current_fiber();
#endif
  order_release(&start_);
  schedule();
  order_acquire(&end_);
  running_block = outer;
  if (!aborted_) check_guards();
  return error_[0] == 0;
}

inline void Block::schedule() {
  while (finished_ < threads_ && !aborted_) {
    if (ready_count_ == 0 && !wake_pollers()) return;
    resume(take_ready());
  }
}

// Called when no thread is ready: sleeps until a flag may have changed and lets the pollers look again.
inline bool Block::wake_pollers() {
  if (polling_count_ == 0) {
    describe_barriers();
    return false;
  }
  if (!grid_->park(seen_version_)) {
    stuck_ = true;
    std::snprintf(error_, sizeof error_, "no vEU can go on");
    return false;
  }
  seen_version_ = grid_->version();
  for (int i = 0; i < polling_count_; ++i) ready_[ready_count_++] = polling_[i];
  polling_count_ = 0;
  return true;
}

inline void Block::describe_barriers() {
  if (asleep_count_ > 0) {
    stuck_ = true;
    std::snprintf(error_, sizeof error_, "block %d: %d of %d threads wait at an mbarrier of the weights' ring for ever",
                  index_, asleep_count_, threads_);
    return;
  }
  for (int i = 0; i < kBarriers; ++i) {
    const Barrier& b = barriers_[i];
    if (b.arrived == 0) continue;
    std::snprintf(error_, sizeof error_,
                  "block %d: %d of %d threads wait at barrier %d for ever (%d of the block's %d threads have ended)",
                  index_, b.arrived, b.expected, i, finished_, threads_);
    return;
  }
  std::snprintf(error_, sizeof error_, "block %d: a warp collective was called by some lanes only", index_);
}

inline void Block::fiber_entry() {
  Block* b = running_block;
  order_acquire(&b->start_);
#if defined(RT_EMU_ASAN)
  __sanitizer_finish_switch_fiber(nullptr, &b->scheduler_.bottom, &b->scheduler_.size);
#endif
  b->entry_(b->param_);
  b->end_fiber();
}

inline void Block::end_fiber() {
  finish_copies(-1);
  order_release(&end_);
  ++finished_;
  suspend();
  std::abort();  // an ended fibre is in no list
}

inline void Block::wait_at(Barrier& b, int expected) {
  const unsigned parity = b.generation & 1;
  arrive_at(b, expected, true);
  suspend();
  order_acquire(&b.order[parity]);
}

inline void Block::arrive_at(Barrier& b, int expected, bool waits) {
  if (b.arrived > 0 && b.expected != expected) fail("threads of one barrier disagree about how many they are");
  order_release(&b.order[b.generation & 1]);
  b.expected = expected;
  if (waits) {
    current_->next = b.first;
    b.first = current_->tid;
  }
  if (++b.arrived < expected) return;
  for (int i = b.first; i != kNone; i = fibers_[i].next) ready_[ready_count_++] = i;
  b.arrived = 0, b.first = kNone, ++b.generation;
}

constexpr int kClusterBarrier = kBarriers - 1;

// All threads of the block, then all blocks of the cluster.
inline void Block::cluster_barrier() {
  order_release(grid_->order(index_));
  barrier(kClusterBarrier, threads_);
  if (current_->tid == 0) {
    grid_->arrive(index_);
    const uint32_t all = ++rounds_ * static_cast<uint32_t>(grid_->cluster());
    while (grid_->arrived(index_) < all) pause();
  }
  barrier(kClusterBarrier, threads_);
  order_acquire(grid_->order(index_));
}

// The same place in the shared memory of the cluster's block of the given rank.
inline uint32_t* Block::near(const uint32_t* p, uint32_t rank) {
  const int cluster = grid_->cluster();
  if (rank >= static_cast<uint32_t>(cluster)) fail("a word for a block that is not in the cluster");
  char* const base = grid_->shared(index_ / cluster * cluster + static_cast<int>(rank));
  if (!base) fail("a word for a block that has not begun");
  return reinterpret_cast<uint32_t*>(base + (reinterpret_cast<const char*>(p) - shared_));
}

// One barrier an exchange is enough because the halves alternate: a lane cannot write a half again
// before all lanes have arrived at the next exchange, so have read this one.
inline void Block::exchange(const uint64_t in[2], int from_lane, uint64_t out[2]) {
  Fiber* f = current_;
  Warp& w = warps_[f->tid / kWarp];
  uint64_t(*half)[2] = w.slots[f->parity];
  f->parity ^= 1;
  half[f->tid % kWarp][0] = in[0], half[f->tid % kWarp][1] = in[1];
  warp_barrier();
  out[0] = half[from_lane][0], out[1] = half[from_lane][1];
}

inline bool Block::all_lanes(bool predicate) {
  Fiber* f = current_;
  const int warp = f->tid / kWarp;
  uint64_t(*half)[2] = warps_[warp].slots[f->parity];
  f->parity ^= 1;
  half[f->tid % kWarp][0] = predicate;
  warp_barrier();
  for (int i = 0; i < lanes(warp); ++i) {
    if (!half[i][0]) return false;
  }
  return true;
}

// A poller that saw too little gives way until something was published.
inline void Block::pause() {
  polling_[polling_count_++] = current_->tid;
  suspend();
}

// For a thread that hardware promises nothing of: it goes on at once, or when others wait for it.
inline void Block::maybe_lag() {
  if (draw() >> 63) return;
  lagging_[lagging_count_++] = current_->tid;
  suspend();
}

inline void Block::wake_lagging() {
  for (int i = 0; i < lagging_count_; ++i) ready_[ready_count_++] = lagging_[i];
  lagging_count_ = 0;
}

// Reports whether this was the last arrival of a phase. It orders like the hardware's: what arriving
// threads did comes before what those do that have seen the phase complete.
inline bool Block::mbarrier_arrive(Mbarrier* m) {
  order_release(m);
  if (++m->arrived < m->expected) return false;
  m->arrived = 0, ++m->completed;
  int kept = 0;
  for (int i = 0; i < asleep_count_; ++i) {
    if (fibers_[asleep_[i]].sleeps_on == m) {
      ready_[ready_count_++] = asleep_[i];
    } else {
      asleep_[kept++] = asleep_[i];
    }
  }
  asleep_count_ = kept;
  return true;
}

// The hardware tells phases apart by their parity alone, so a phase must be asked for while it is the
// current one or the one before.
inline bool Block::mbarrier_done(const Mbarrier* m, uint32_t phase) {
  if (m->completed <= phase) return false;
  if (m->completed > phase + 1) fail("an mbarrier is waited for when its phase is long over");
  order_acquire(const_cast<Mbarrier*>(m));
  return true;
}

inline void Block::mbarrier_sleep(const Mbarrier* m) {
  wake_lagging();
  current_->sleeps_on = m;
  asleep_[asleep_count_++] = current_->tid;
  suspend();
}

// Whether a copy happens at once or at its wait is drawn: hardware promises no more.
inline void Block::add_copy(void* to, const void* from, int bytes) {
  if (draw() >> 63) {
    std::memcpy(to, from, static_cast<size_t>(bytes));
    return;
  }
  Fiber* f = current_;
  if (f->copy_count == f->copy_capacity) {
    f->copy_capacity = f->copy_capacity ? 2 * f->copy_capacity : 64;
    f->copies = static_cast<Copy*>(std::realloc(f->copies, sizeof(Copy) * static_cast<size_t>(f->copy_capacity)));
  }
  f->copies[f->copy_count++] = Copy{to, from, bytes, f->open_group};
}

// Carries out the copies of all but the latest groups_left committed groups; -1 takes the open group too.
inline void Block::finish_copies(int groups_left) {
  Fiber* f = current_;
  int kept = 0;
  for (int i = 0; i < f->copy_count; ++i) {
    const Copy& c = f->copies[i];
    if (c.group < f->open_group - groups_left) {
      std::memcpy(c.to, c.from, static_cast<size_t>(c.bytes));
    } else {
      f->copies[kept++] = c;
    }
  }
  f->copy_count = kept;
}

// Gives up the whole block; its fibres are never resumed.
inline void Block::fail(const char* what) {
  std::snprintf(error_, sizeof error_, "block %d, thread %d: %s", index_, current_->tid, what);
  aborted_ = true;
  Fiber* f = current_;
  current_ = nullptr;
  switch_context(f->context, scheduler_);
  std::abort();
}

inline void Block::check_guards() {
  for (size_t i = 0; i < kGuardBytes; ++i) {
    if (static_cast<unsigned char>(shared_[shared_bytes_ + i]) != kGuard) {
      std::snprintf(error_, sizeof error_, "block %d wrote beyond its %zu bytes of shared memory", index_, shared_bytes_);
      return;
    }
  }
  for (int i = 0; i < threads_; ++i) {
    if (*reinterpret_cast<uint64_t*>(fibers_[i].stack) != kStackGuard) {
      std::snprintf(error_, sizeof error_, "block %d, thread %d: the emulator's stack of %zu bytes is too small",
                    index_, i, kStackBytes);
      return;
    }
  }
}

}  // namespace rt::emu
