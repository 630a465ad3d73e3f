// Processes that fork has made. They have their parent's memory, but none of its threads, and CUDA does not work in
// them once the parent has used it. What belongs to the parent must not be touched there.
#pragma once

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#endif

#include <atomic>

namespace rt {

// How often fork was called between the process that loaded this program and the present one.
inline std::atomic<int>& fork_count() {
  static std::atomic<int> count{0};
  return count;
}

// The present count. The first call asks the system to keep it.
inline int forks() {
#if defined(__unix__) || defined(__APPLE__)
  static const int watching =
      pthread_atfork(nullptr, nullptr, [] { fork_count().fetch_add(1, std::memory_order_relaxed); });
  (void)watching;
#endif
  return fork_count().load(std::memory_order_relaxed);
}

}  // namespace rt
