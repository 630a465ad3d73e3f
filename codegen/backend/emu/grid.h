// What the blocks of one emulated launch share: how a block sleeps until another one stores a flag, and how it is found
// out for certain that no block can go on.
#pragma once

#include "backend/emu/fiber.h"

namespace rt::emu {

// The grid counts publications: stores to flags, words and gates that other blocks may wait for. A block all of whose
// threads wait parks, and says how many publications it has seen. Each publication wakes all parked blocks. When every
// block is parked or has ended, no flag can change any more, and the launch is stuck. Nothing here orders memory in
// ThreadSanitizer's eyes: that is the task of the flags themselves.
//
//   state_:   blocks parked since the latest publication (32 bits) | publications (32 bits, may wrap)
class Grid {
 public:
  Grid(int blocks, int cluster)
      : blocks_(blocks),
        cluster_(cluster > 0 ? cluster : 1),
        shared_(new char*[static_cast<size_t>(blocks)]()),
        arrived_(new uint32_t[static_cast<size_t>(blocks)]()) {}
  ~Grid() {
    delete[] shared_;
    delete[] arrived_;
  }
  Grid(const Grid&) = delete;
  Grid& operator=(const Grid&) = delete;

  // Clusters: where the shared memory of each block is, and how often the blocks of a cluster have come to its barrier.
  RT_EMU_QUIET int cluster() const { return cluster_; }
  RT_EMU_QUIET void enter(int block, char* shared) { __atomic_store_n(&shared_[block], shared, __ATOMIC_RELAXED); }
  RT_EMU_QUIET char* shared(int block) const { return __atomic_load_n(&shared_[block], __ATOMIC_RELAXED); }
  RT_EMU_QUIET void arrive(int block) {
    __atomic_add_fetch(&arrived_[block / cluster_], 1, __ATOMIC_SEQ_CST);
    publish();
  }
  RT_EMU_QUIET void* order(int block) const { return &shared_[block / cluster_ * cluster_]; }  // for ThreadSanitizer
  RT_EMU_QUIET uint32_t arrived(int block) const {
    return __atomic_load_n(&arrived_[block / cluster_], __ATOMIC_SEQ_CST);
  }

  RT_EMU_QUIET uint32_t version() const { return static_cast<uint32_t>(__atomic_load_n(&state_, kLoadOrder)); }

  RT_EMU_QUIET bool failed() const { return __atomic_load_n(&failed_, __ATOMIC_RELAXED); }

  RT_EMU_QUIET void fail() {
    __atomic_store_n(&failed_, true, __ATOMIC_RELAXED);
    publish();
  }

  // Called after a flag was stored.
  RT_EMU_QUIET void publish() {
    uint64_t s = __atomic_load_n(&state_, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&state_, &s, (s + 1) & 0xffffffffu, true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
    }
    if (s >> 32) wake_all();
  }

  // Sleeps until something has been published after version v. False: nobody can publish any more, or the launch has
  // failed.
  RT_EMU_QUIET bool park(uint32_t v) {
    uint64_t s = __atomic_load_n(&state_, __ATOMIC_RELAXED);
    do {
      if (static_cast<uint32_t>(s) != v) return !failed();
    } while (
        !__atomic_compare_exchange_n(&state_, &s, s + (uint64_t{1} << 32), true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
    fail_when_stuck();
    while (version() == v && !failed()) sleep(v);
    return !failed();
  }

  // A block has run to its end.
  RT_EMU_QUIET void finish() {
    __atomic_add_fetch(&finished_, 1, __ATOMIC_SEQ_CST);
    fail_when_stuck();
  }

 private:
  // Under ThreadSanitizer the load is relaxed, so that it hides no missing order of the program's own.
#if defined(RT_EMU_TSAN)
  static constexpr int kLoadOrder = __ATOMIC_RELAXED;
#else
  static constexpr int kLoadOrder = __ATOMIC_SEQ_CST;
#endif

  RT_EMU_QUIET void fail_when_stuck() {
    const uint64_t parked = __atomic_load_n(&state_, __ATOMIC_SEQ_CST) >> 32;
    const int finished = __atomic_load_n(&finished_, __ATOMIC_SEQ_CST);
    if (parked > 0 && static_cast<int>(parked) + finished == blocks_) fail();
  }

  RT_EMU_QUIET void sleep(uint32_t v) {
    timespec t{0, 20'000'000};
#if defined(__linux__)
    // The version is the low half of state_, and so at its address on a little-endian machine.
    syscall(SYS_futex, reinterpret_cast<uint32_t*>(&state_), FUTEX_WAIT_PRIVATE, v, &t, nullptr, 0);
#else
    t.tv_nsec = 50'000;
    nanosleep(&t, nullptr);
#endif
  }

  RT_EMU_QUIET void wake_all() {
#if defined(__linux__)
    syscall(SYS_futex, reinterpret_cast<uint32_t*>(&state_), FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
#endif
  }

  uint64_t state_ = 0;
  int finished_ = 0;
  int blocks_;
  int cluster_;
  char** shared_;
  uint32_t* arrived_;
  bool failed_ = false;
};

}  // namespace rt::emu
