// Runs kernels as CUDA describes it, one thread of a block after another, so that a converted kernel can be compared
// with the original where there is no GPU. It shares with the emulator the switch between stacks and what stands for
// itself, such as types and functions of numbers; threads, barriers and exchanges are its own.
#pragma once

#include <functional>

#include "backend/emu/cuda_half.h"
#include "backend/emu/fiber.h"

#define __shared__ thread_local
#define __launch_bounds__(...)
#define __align__(n) alignas(n)
#define __noinline__

namespace original {

static uint3 threadIdx, blockIdx;
static dim3 blockDim, gridDim;

enum class Waits { kNothing, kBlock, kWarp, kEnded };

// A thread of the block that runs.
struct Thread {
  rt::emu::Context context;
  uint3 index;
  Waits waits;
  unsigned mask;         // of the lanes that it waits for
  unsigned met;          // those of them that came: the others have ended
  uint64_t shown[2];     // its value in an exchange
  uint64_t seen[32][2];  // those of its warp
  int predicate, count;  // of a barrier
};

struct Runner {
  std::vector<Thread> threads;
  std::vector<char*> stacks;
  rt::emu::Context main;
  Thread* now = nullptr;
  std::function<void()> body;
};
static Runner runner;

inline void wait(Waits what) {
  Thread* t = runner.now;
  t->waits = what;
  rt::emu::switch_context(t->context, runner.main);
}

inline void enter() {
  runner.body();
  wait(Waits::kEnded);
}

// Those who have ended are not waited for.
inline bool release_block() {
  int count = 0, waiting = 0;
  for (Thread& t : runner.threads) {
    if (t.waits == Waits::kEnded) continue;
    if (t.waits != Waits::kBlock) return false;
    ++waiting, count += t.predicate != 0;
  }
  for (Thread& t : runner.threads) {
    if (t.waits == Waits::kBlock) t.waits = Waits::kNothing, t.count = count;
  }
  return waiting > 0;
}

inline bool release_warp(size_t first) {
  const size_t end = std::min(first + 32, runner.threads.size());
  for (size_t i = first; i < end; ++i) {
    Thread& t = runner.threads[i];
    if (t.waits != Waits::kWarp) continue;
    bool all = true;
    for (size_t j = first; j < end; ++j) {
      const Thread& o = runner.threads[j];
      if (t.mask >> (j - first) & 1)
        all = all && (o.waits == Waits::kEnded || (o.waits == Waits::kWarp && o.mask == t.mask));
    }
    if (!all) continue;
    const unsigned mask = t.mask;
    unsigned met = 0;
    for (size_t j = first; j < end; ++j) {
      const Thread& o = runner.threads[j];
      if (o.waits == Waits::kWarp && o.mask == mask) met |= 1u << (j - first);
    }
    for (size_t j = first; j < end; ++j) {
      Thread& o = runner.threads[j];
      if (o.waits != Waits::kWarp || o.mask != mask) continue;
      o.met = met;
      for (size_t k = first; k < end; ++k) std::memcpy(o.seen[k - first], runner.threads[k].shown, 16);
    }
    for (size_t j = first; j < end; ++j) {
      Thread& o = runner.threads[j];
      if (o.waits == Waits::kWarp && o.mask == mask) o.waits = Waits::kNothing;
    }
    return true;
  }
  return false;
}

inline bool run_block() {
  for (;;) {
    size_t ended = 0;
    bool moved = false;
    for (Thread& t : runner.threads) {
      if (t.waits == Waits::kNothing) {
        runner.now = &t, threadIdx = t.index, moved = true;
        rt::emu::switch_context(runner.main, t.context);
      }
      ended += t.waits == Waits::kEnded;
    }
    if (ended == runner.threads.size()) return true;
    for (size_t w = 0; w < runner.threads.size(); w += 32) {
      while (release_warp(w)) moved = true;
    }
    if (release_block()) moved = true;
    if (!moved) return false;
  }
}

// Calls body for each thread of a grid. False: its threads wait for each other for ever.
inline bool launch(dim3 grid, dim3 block, std::function<void()> body) {
  const unsigned n = block.x * block.y * block.z;
  blockDim = block, gridDim = grid, runner.body = body;
  runner.threads.resize(n);
  while (runner.stacks.size() < n) runner.stacks.push_back(rt::emu::reserve_stacks(1));
  for (unsigned b = 0; b < grid.x * grid.y * grid.z; ++b) {
    blockIdx = {b % grid.x, b / grid.x % grid.y, b / grid.x / grid.y};
    for (unsigned i = 0; i < n; ++i) {
      Thread& t = runner.threads[i];
      t = Thread();
      t.index = {i % block.x, i / block.x % block.y, i / block.x / block.y};
      t.waits = Waits::kNothing;
      rt::emu::prepare_context(t.context, runner.stacks[i], rt::emu::kStackBytes, enter);
    }
    if (!run_block()) return false;
  }
  return true;
}

inline int barrier(int predicate) {
  Thread* t = runner.now;
  t->predicate = predicate;
  wait(Waits::kBlock);
  threadIdx = t->index;
  return t->count;
}
inline void __syncthreads() { barrier(0); }
inline int __syncthreads_count(int predicate) { return barrier(predicate); }
inline int __syncthreads_or(int predicate) { return barrier(predicate) != 0; }
inline int __syncthreads_and(int predicate) { return barrier(!predicate) == 0; }

inline int lane() { return static_cast<int>(runner.now - runner.threads.data()) % 32; }

// Shows a value to the lanes of the mask.
template <class T>
inline void show(unsigned mask, T v) {
  Thread* t = runner.now;
  std::memcpy(t->shown, &v, sizeof v);
  t->mask = mask;
  wait(Waits::kWarp);
  threadIdx = t->index;
}
template <class T>
inline T seen(int of) {
  T v;
  std::memcpy(&v, runner.now->seen[of], sizeof v);
  return v;
}
template <class T>
inline T take(unsigned mask, T v, int from) {
  show(mask, v);
  return seen<T>(from);
}
inline int segment_end(int width) { return (lane() / width + 1) * width; }

template <class T>
inline T __shfl_sync(unsigned mask, T v, int from, int width = 32) {
  return take(mask, v, lane() / width * width + (from & (width - 1)));
}
template <class T>
inline T __shfl_up_sync(unsigned mask, T v, unsigned delta, int width = 32) {
  const int from = lane() - static_cast<int>(delta);
  return take(mask, v, from < segment_end(width) - width ? lane() : from);
}
template <class T>
inline T __shfl_down_sync(unsigned mask, T v, unsigned delta, int width = 32) {
  const int from = lane() + static_cast<int>(delta);
  return take(mask, v, from >= segment_end(width) ? lane() : from);
}
template <class T>
inline T __shfl_xor_sync(unsigned mask, T v, int with, int width = 32) {
  const int from = lane() ^ with;
  return take(mask, v, from >= segment_end(width) ? lane() : from);
}
// Lanes that have ended have no say.
template <class T, class Visit>
inline void each_lane(unsigned mask, T v, Visit visit) {
  show(mask, v);
  for (int i = 0; i < 32; ++i) {
    if (runner.now->met >> i & 1) visit(i, seen<T>(i));
  }
}
inline unsigned __ballot_sync(unsigned mask, int predicate) {
  unsigned all = 0;
  each_lane(mask, predicate, [&](int i, int p) { all |= p != 0 ? 1u << i : 0u; });
  return all;
}
inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
inline int __all_sync(unsigned mask, int predicate) { return __ballot_sync(mask, !predicate) == 0; }
template <class T>
inline unsigned __match_any_sync(unsigned mask, T v) {
  unsigned same = 0;
  each_lane(mask, v, [&](int i, T o) { same |= o == v ? 1u << i : 0u; });
  return same;
}
template <class T>
inline T __reduce_add_sync(unsigned mask, T v) {
  T sum = 0;
  each_lane(mask, v, [&](int, T o) { sum += o; });
  return sum;
}
template <class T>
inline T __reduce_max_sync(unsigned mask, T v) {
  T most = v;
  each_lane(mask, v, [&](int, T o) { most = o > most ? o : most; });
  return most;
}
template <class T>
inline T __reduce_min_sync(unsigned mask, T v) {
  T least = v;
  each_lane(mask, v, [&](int, T o) { least = o < least ? o : least; });
  return least;
}
inline void __syncwarp(unsigned mask = 0xffffffffu) { show(mask, 0); }

}  // namespace original
