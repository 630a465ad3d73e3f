// How a block runs: its fibres are made, run one at a time in an order that the seed draws, and end.
#pragma once

#include "backend/emu/block.h"

namespace rt::emu {

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
  for (int w = 0; w * kWarp < threads_; ++w) {
    warps_[w].barrier.arrived = 0, warps_[w].barrier.first = kNone;
    for (Barrier& b : warps_[w].groups) b.arrived = 0, b.first = kNone;
  }
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

// Called when no fibre is ready. Sleeps until some block has stored a flag, and lets the fibres that poll look again.
// False: that can never happen any more, and error_ says so.
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

// Says for what fibres wait that no fibre is left to bring about.
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
  Barrier& b = barriers_[kRemainingBarrier];
  if (b.arrived > 0) {
    --b.expected;
    order_release(&b.order[b.generation & 1]);
    if (b.arrived == b.expected) release(b);
  }
  suspend();
  std::abort();  // an ended fibre is in no list
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

// Bytes behind the shared memory and at the end of each stack must be as run() and reset() left them.
inline void Block::check_guards() {
  for (size_t i = 0; i < kGuardBytes; ++i) {
    if (static_cast<unsigned char>(shared_[shared_bytes_ + i]) != kGuard) {
      std::snprintf(error_, sizeof error_, "block %d wrote beyond its %zu bytes of shared memory", index_,
                    shared_bytes_);
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
