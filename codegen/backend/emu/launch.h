// Launches on the emulator: one OS thread per block when the blocks wait for each other, a few OS
// threads that take blocks in turn when they do not.
#pragma once

#include "backend/emu/block.h"

namespace rt::emu {

// More co-resident blocks than this are refused: a GPU would refuse them too, and each costs an OS thread.
constexpr int kDefaultMaxResident = 256;

struct Launch {
  int grid = 1;
  int threads = 32;
  size_t shared = 0;
  bool together = false;  // blocks wait for each other: all must be resident
  int max_resident = kDefaultMaxResident;
  int cluster = 0;     // blocks that reach each other's shared memory; 0: none do
  int room = 1 << 30;  // blocks that find room at once; those beyond come when others have ended
  uint64_t seed = 1;
};

struct Failure {
  char text[256] = "";
  WaitNote note;
};

// Blocks are kept for the next launch: their stacks are warm.
class BlockPool {
 public:
  std::unique_ptr<Block> take(int threads, size_t shared) {
    {
      std::lock_guard<std::mutex> hold(mutex_);
      for (size_t i = 0; i < free_.size(); ++i) {
        if (free_[i]->threads() != threads || free_[i]->shared_bytes() != shared) continue;
        std::unique_ptr<Block> b = std::move(free_[i]);
        free_[i] = std::move(free_.back());
        free_.pop_back();
        return b;
      }
    }
    auto b = std::make_unique<Block>(threads, shared);
    return b->ok() ? std::move(b) : nullptr;
  }
  void give(std::unique_ptr<Block> b) {
    std::lock_guard<std::mutex> hold(mutex_);
    if (free_.size() < kKept) free_.push_back(std::move(b));
  }

 private:
  static constexpr size_t kKept = 256;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Block>> free_;
};

inline BlockPool& block_pool() {
  static BlockPool pool;
  return pool;
}

class Launcher {
 public:
  Launcher(const Launch& l, void (*entry)(void*), void* param)
      : launch_(l), entry_(entry), param_(param), grid_(l.grid, l.cluster) {}

  bool run(Failure* f) {
    failure_ = f;
    std::vector<std::thread> threads;
    const int workers = launch_.together ? (launch_.grid < launch_.room ? launch_.grid : launch_.room) : few_workers();
    try {
      for (int i = 0; i < workers; ++i) threads.emplace_back([this] { work(); });
    } catch (const std::system_error&) {
      report("the system gives no more threads", nullptr);
      grid_.fail();
    }
    for (std::thread& t : threads) t.join();
    return failure_->text[0] == 0;
  }

 private:
  int few_workers() const {
    const int cores = static_cast<int>(std::thread::hardware_concurrency());
    return cores < 1 ? 1 : cores < launch_.grid ? cores : launch_.grid;
  }

  void work() {
    std::unique_ptr<Block> b = block_pool().take(launch_.threads, launch_.shared);
    if (!b) {
      report("no memory for the stacks of a block", nullptr);
      grid_.fail();
      return;
    }
    bool ok = true;
    for (int i; ok && (i = next_.fetch_add(1)) < launch_.grid;) ok = run_block(*b, i);
    if (ok) block_pool().give(std::move(b));
  }

  bool run_block(Block& b, int index) {
    if (b.run(&grid_, index, launch_.seed, entry_, param_)) {
      grid_.finish();
      return true;
    }
    report(b.error(), b.stuck() && b.note().set ? &b.note() : nullptr);
    grid_.fail();
    return false;
  }

  // Keeps the first text that says why. Of the blocks that are stuck, the one at the earliest step is
  // nearest to the cause: the others wait for it, or for what it would have done.
  void report(const char* text, const WaitNote* note) {
    std::lock_guard<std::mutex> hold(mutex_);
    if (failure_->text[0] == 0) std::snprintf(failure_->text, sizeof failure_->text, "%s", text);
    WaitNote& kept = failure_->note;
    if (note && (!kept.set || note->step < kept.step || (note->step == kept.step && note->veu < kept.veu))) kept = *note;
  }

  Launch launch_;
  void (*entry_)(void*);
  void* param_;
  Grid grid_;
  std::atomic<int> next_{0};
  std::mutex mutex_;
  Failure* failure_ = nullptr;
};

// Runs entry(param) on launch.grid × launch.threads threads and waits for their end.
inline bool run_launch(const Launch& l, void (*entry)(void*), void* param, Failure* f) {
  if (l.threads < 1 || l.threads > 1024 || l.grid < 1) {
    std::snprintf(f->text, sizeof f->text, "a launch of %d blocks of %d threads is impossible", l.grid, l.threads);
    return false;
  }
  if (l.together && l.grid > l.max_resident) {
    std::snprintf(f->text, sizeof f->text, "a grid of %d blocks is larger than the %d that are resident at once",
                  l.grid, l.max_resident);
    return false;
  }
#if defined(RT_EMU_TSAN)
  constexpr int kMostFibers = 6000;  // ThreadSanitizer counts fibres as threads and ends at 8128
  if (l.together && l.grid > kMostFibers / l.threads) {
    std::snprintf(f->text, sizeof f->text,
                  "%d blocks of %d threads are more than ThreadSanitizer can follow; plan for fewer vEUs", l.grid, l.threads);
    return false;
  }
#endif
  return Launcher(l, entry, param).run(f);
}

}  // namespace rt::emu
