// One emulated thread block: an OS thread that runs a fibre for each CUDA thread. A fibre runs until it waits. Which
// fibre goes on then is drawn from a seed. So where a barrier is missing, the order of the fibres' accesses depends on
// the seed, and with some seeds the result is wrong.
//
//   ready     ──────────▶  running: one fibre at a time
//     ▲                       │
//     │  barrier complete     ├─▶ in a Barrier's list: bar.sync, warp collectives
//     │  a flag was stored    ├─▶ polling: looked at a flag in vain
//     │  phase complete       ├─▶ asleep: waits for an mbarrier
//     └─ others wait ─────────┴─▶ lagging: held up on purpose (maybe_lag)
#pragma once

#include "backend/emu/grid.h"

namespace rt::emu {

constexpr int kWarp = 32;
constexpr int kBarriers = 18;  // those of the device, and two of which it knows no number
constexpr int kRemainingBarrier = 16;
constexpr int kNone = -1;
constexpr size_t kGuardBytes = 64;
constexpr unsigned char kGuard = 0xA5;
constexpr uint64_t kStackGuard = 0x5afe57ac5afe57acull;

// An asynchronous copy that has been started and has not happened yet.
struct Copy {
  void* to;
  const void* from;
  int bytes;
  int group;
};

// A CUDA thread.
struct Fiber {
  Context context;
  char* stack = nullptr;
  int tid = 0;
  int next = kNone;  // the fibre behind it in a barrier's list
  int parity = 0;    // which half of the warp's slots the next exchange uses
  Copy* copies = nullptr;
  int copy_count = 0, copy_capacity = 0;
  int open_group = 0;               // the number of the group of copies that the next commit ends
  const void* sleeps_on = nullptr;  // the mbarrier that it waits for
  uint32_t chunks = 0;              // how many chunks of weights its rTask has taken
  uint32_t inputs = 0;              // how often its rTask has asked for its inputs
#if defined(RT_EMU_TSAN)
  // For ThreadSanitizer, which knows no fences: whether a fence orders what the thread did before its relaxed stores,
  // and the words that it has loaded since its last fence.
  static constexpr int kSeen = 64;
  bool fenced = false;
  int seen_count = 0;
  const uint64_t* seen[kSeen];
#endif
};

struct Barrier {
  int arrived = 0, expected = 0;
  int counted[2] = {};      // how many had a predicate, one for each parity of generation
  unsigned generation = 0;  // how often it was complete; blocks are used for many launches, so this may wrap
  int first = kNone;        // of the list of fibres that wait
  char order[2] = {};       // addresses for ThreadSanitizer, one for each parity of generation
};

// What the 64 bits of an mbarrier hold: how many phases are complete, and the arrivals of the current one.
struct Mbarrier {
  uint32_t completed;
  uint16_t arrived, expected;
};
static_assert(sizeof(Mbarrier) == 8);

// What a lane gives of a product of matrices: its four words of A, then its two of B, as they are or as the numbers in
// them, of which a word has one, two or four.
union Fragment {
  uint32_t words[6];
  float floats[12];
  int32_t integers[24];
};

struct Warp {
  Barrier barrier;
  // Lanes that meet without the others: of converted kernels. A lane is in one group at a time.
  Barrier groups[kWarp];
  uint32_t masks[kWarp];  // of the groups
  uint64_t own[kWarp][2];
  uint64_t slots[2][kWarp][2];
  Fragment fragments[2][kWarp];
};

// What a vEU waits for. It becomes the report of a launch in which nobody can go on.
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

  // Runs entry(param) on every thread of block `index` of the grid. False: it failed, and error() says why.
  bool run(Grid* grid, int index, uint64_t seed, void (*entry)(void*), void* param);
  const char* error() const { return error_; }
  bool stuck() const { return stuck_; }
  const WaitNote& note() const { return note_; }

  // What the primitives (device.h) call on a fibre.
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
#if defined(RT_EMU_TSAN)
  // A fence orders what the thread did before it, or knew by a barrier, before its relaxed stores behind it. What the
  // thread knows by a later barrier is not ordered by that fence.
  RT_EMU_QUIET void fence() {
    for (int i = 0; i < current_->seen_count; ++i) order_acquire(const_cast<uint64_t*>(current_->seen[i]));
    current_->seen_count = 0;
    current_->fenced = true;
  }
  RT_EMU_QUIET bool fenced() const { return current_->fenced; }
  RT_EMU_QUIET void unfence() { current_->fenced = false; }
  RT_EMU_QUIET void saw(const uint64_t* p) {
    Fiber* f = current_;
    if (f->seen_count > 0 && f->seen[f->seen_count - 1] == p) return;
    if (f->seen_count == Fiber::kSeen) fail("a thread loads more words than the emulator remembers, without a fence");
    f->seen[f->seen_count++] = p;
  }
#else
  RT_EMU_QUIET void unfence() {}
#endif
  RT_EMU_QUIET void barrier(int id, int expected) { wait_at(barriers_[id], expected); }
  RT_EMU_QUIET void barrier_arrive(int id, int expected) { arrive_at(barriers_[id], expected, false); }
  RT_EMU_QUIET int count_at(int id, int expected, bool predicate);
  RT_EMU_QUIET int remaining_barrier(bool predicate);
  RT_EMU_QUIET void meet(uint32_t mask);
  RT_EMU_QUIET uint64_t (*warp_slots())[2] { return warps_[current_->tid / kWarp].own; }
  RT_EMU_QUIET void warp_barrier() { wait_at(warps_[current_->tid / kWarp].barrier, lanes(current_->tid / kWarp)); }
  RT_EMU_QUIET void exchange(const uint64_t in[2], int from_lane, uint64_t out[2]);
  RT_EMU_QUIET bool all_lanes(bool predicate);
  RT_EMU_QUIET const Fragment* share_fragment(const Fragment& mine);
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
  // Switches to a fibre, from another one or from the scheduler's own stack.
  RT_EMU_QUIET void resume(Fiber* f) {
    Context& from = current_ ? current_->context : scheduler_;
    if (current_ == f) return;
    current_ = f;
    switch_context(from, f->context);
  }
  RT_EMU_QUIET void wake_lagging();
  // The current fibre waits, and stands in the list of what it waits for. Goes on with another one, or with the
  // scheduler.
  RT_EMU_QUIET void suspend() {
    if (ready_count_ == 0) wake_lagging();
    if (ready_count_ > 0) return resume(take_ready());
    Fiber* f = current_;
    current_ = nullptr;
    switch_context(f->context, scheduler_);
  }
  RT_EMU_QUIET void wait_at(Barrier& b, int expected);
  RT_EMU_QUIET void arrive_at(Barrier& b, int expected, bool waits);
  RT_EMU_QUIET void release(Barrier& b);
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
  int* asleep_;
  int* lagging_;
  char* stacks_;
  void* shared_raw_ = nullptr;
  char* shared_ = nullptr;

  Barrier barriers_[kBarriers];
  Context scheduler_;
  Fiber* current_ = nullptr;
  int ready_count_ = 0, polling_count_ = 0, asleep_count_ = 0, lagging_count_ = 0, finished_ = 0;
  uint64_t rng_ = 1;
  uint32_t seen_version_ = 0;
  uint32_t rounds_ = 0;  // how often the block has come to its cluster's barrier
  Grid* grid_ = nullptr;
  int index_ = 0;
  void (*entry_)(void*) = nullptr;
  void* param_ = nullptr;
  char start_ = 0, end_ = 0;  // addresses for ThreadSanitizer
  bool aborted_ = false, stuck_ = false;
  WaitNote note_;
  char error_[256] = "";
};

}  // namespace rt::emu
