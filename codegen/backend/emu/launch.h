// Launches on the emulator. Where the blocks of a launch wait for each other, each has an OS thread; elsewhere a few OS
// threads take one block after another.
#pragma once

#include "backend/emu/block_run.h"
#include "backend/emu/block_sync.h"

namespace rt::emu {

// A launch of more blocks that wait for each other is refused, as a GPU would refuse it: each block costs an OS thread.
constexpr int kDefaultMaxResident = 256;

struct Launch {
  int grid = 1;
  int threads = 32;
  size_t shared = 0;
  bool together = false;                   // blocks wait for each other, so all must run at once
  int max_resident = kDefaultMaxResident;  // how many blocks may be asked to run at once
  int cluster = 0;                         // how many blocks reach each other's shared memory; 0: none do
  int room = 1 << 30;  // how many blocks find room at once; further ones start when others have ended
  uint64_t seed = 1;
};

struct Failure {
  char text[256] = "";
  WaitNote note;
};

// Blocks that have ended are kept for later launches, which saves mapping their stacks anew.
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

  // Keeps the first text that says why the launch failed. Of the blocks that are stuck it keeps the note of the one at
  // the earliest step: it is nearest to the cause, since the others wait for it or for what it would have done.
  void report(const char* text, const WaitNote* note) {
    std::lock_guard<std::mutex> hold(mutex_);
    if (failure_->text[0] == 0) std::snprintf(failure_->text, sizeof failure_->text, "%s", text);
    WaitNote& kept = failure_->note;
    const bool earlier = note && (note->step < kept.step || (note->step == kept.step && note->veu < kept.veu));
    if (note && (!kept.set || earlier)) kept = *note;
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
                  "%d blocks of %d threads are more than ThreadSanitizer can follow; plan for fewer vEUs", l.grid,
                  l.threads);
    return false;
  }
#endif
  return Launcher(l, entry, param).run(f);
}

}  // namespace rt::emu
