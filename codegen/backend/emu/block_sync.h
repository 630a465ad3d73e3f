// What fibres of a block do to wait for each other: barriers, exchanges in a warp, polling, mbarriers, and asynchronous
// copies.
#pragma once

#include "backend/emu/block.h"

namespace rt::emu {

inline void Block::wait_at(Barrier& b, int expected) {
  const unsigned parity = b.generation & 1;
  arrive_at(b, expected, true);
  suspend();
  order_acquire(&b.order[parity]);
  unfence();
}

inline void Block::arrive_at(Barrier& b, int expected, bool waits) {
  if (b.arrived > 0 && b.expected != expected) fail("threads of one barrier disagree about how many they are");
  order_release(&b.order[b.generation & 1]);
  b.expected = expected;
  if (waits) {
    current_->next = b.first;
    b.first = current_->tid;
  }
  if (++b.arrived >= expected) release(b);
}

inline void Block::release(Barrier& b) {
  for (int i = b.first; i != kNone; i = fibers_[i].next) ready_[ready_count_++] = i;
  b.arrived = 0, b.first = kNone, ++b.generation;
}

// The count of a generation is taken before the one after the next can begin, and that one begins with 0.
inline int Block::count_at(int id, int expected, bool predicate) {
  Barrier& b = barriers_[id];
  const unsigned parity = b.generation & 1;
  if (b.arrived == 0) b.counted[parity] = 0;
  b.counted[parity] += predicate ? 1 : 0;
  wait_at(b, expected);
  return b.counted[parity];
}

// Whoever ends while others wait is not waited for any more (end_fiber).
inline int Block::remaining_barrier(bool predicate) {
  return count_at(kRemainingBarrier, threads_ - finished_, predicate);
}

// The lanes of the mask meet, and lanes of other masks may meet meanwhile.
inline void Block::meet(uint32_t mask) {
  Warp& w = warps_[current_->tid / kWarp];
  if ((mask >> (current_->tid % kWarp) & 1) == 0) fail("a lane meets others by a mask that does not have it");
  int at = kNone;
  for (int i = 0; i < kWarp; ++i) {
    if (w.groups[i].arrived > 0 && w.masks[i] == mask) at = i;
  }
  for (int i = 0; i < kWarp && at == kNone; ++i) {
    if (w.groups[i].arrived == 0) at = i;
  }
  w.masks[at] = mask;
  wait_at(w.groups[at], __builtin_popcount(mask));
}

constexpr int kClusterBarrier = kBarriers - 1;

// First all threads of the block meet, then thread 0 waits for the other blocks of the cluster.
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

// The place in the shared memory of the cluster's block of the given rank that p is in this block's own.
inline uint32_t* Block::near(const uint32_t* p, uint32_t rank) {
  const int cluster = grid_->cluster();
  if (rank >= static_cast<uint32_t>(cluster)) fail("a word for a block that is not in the cluster");
  char* const base = grid_->shared(index_ / cluster * cluster + static_cast<int>(rank));
  if (!base) fail("a word for a block that has not begun");
  return reinterpret_cast<uint32_t*>(base + (reinterpret_cast<const char*>(p) - shared_));
}

// Exchanges use the two halves of the slots in turn. Therefore one barrier for each exchange is enough: a lane can
// write into a half again only after all lanes have arrived at the exchange in between, and by then they have read the
// half.
inline void Block::exchange(const uint64_t in[2], int from_lane, uint64_t out[2]) {
  Fiber* f = current_;
  Warp& w = warps_[f->tid / kWarp];
  uint64_t(*half)[2] = w.slots[f->parity];
  f->parity ^= 1;
  half[f->tid % kWarp][0] = in[0], half[f->tid % kWarp][1] = in[1];
  warp_barrier();
  out[0] = half[from_lane][0], out[1] = half[from_lane][1];
}

// Gives a lane's elements of a warp's fragments, waits until all lanes have given theirs, and returns them by lane. As
// in exchange, the halves alternate, so that one barrier is enough.
inline const Fragment* Block::share_fragment(const Fragment& mine) {
  Fiber* f = current_;
  Fragment* half = warps_[f->tid / kWarp].fragments[f->parity];
  f->parity ^= 1;
  half[f->tid % kWarp] = mine;
  warp_barrier();
  return half;
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

// The fibre has looked at a flag in vain. It gives way until some block has stored one.
inline void Block::pause() {
  polling_[polling_count_++] = current_->tid;
  suspend();
}

// For an action that hardware may carry out at any time: the fibre goes on at once, or not before the others wait, as
// drawn.
inline void Block::maybe_lag() {
  if (draw() >> 63) return;
  lagging_[lagging_count_++] = current_->tid;
  suspend();
}

inline void Block::wake_lagging() {
  for (int i = 0; i < lagging_count_; ++i) ready_[ready_count_++] = lagging_[i];
  lagging_count_ = 0;
}

// Reports whether this was the last arrival of a phase. As on hardware, what threads did before they arrived comes
// before what other threads do after they have seen the phase complete.
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

// Hardware tells phases apart by their parity alone. So a thread may only ask for the current phase or for the one
// before; the emulator refuses others, which hardware would take for one of these.
inline bool Block::mbarrier_done(const Mbarrier* m, uint32_t phase) {
  if (m->completed < phase) fail("an mbarrier is waited for before the phase has begun");
  if (m->completed == phase) return false;
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

// The copy happens at once, or when it is waited for, as drawn: hardware promises no more.
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

// Carries out the copies of all committed groups but the latest groups_left. With -1 the open group's, too.
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

}  // namespace rt::emu
