// What the emulator includes of the system. An emitted program includes this header first of all, because the rest of
// the emulator stands inside the program's unnamed namespace.
#pragma once

#include <atomic>
#include <climits>
#include <cmath>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <system_error>
#include <thread>
#include <type_traits>
#include <vector>

#include <sys/mman.h>

#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

#if defined(__SANITIZE_THREAD__)
#define RT_EMU_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define RT_EMU_TSAN 1
#endif
#endif

#if defined(__SANITIZE_ADDRESS__)
#define RT_EMU_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RT_EMU_ASAN 1
#endif
#endif

#if defined(RT_EMU_TSAN)
#include <sanitizer/tsan_interface.h>
#endif
#if defined(RT_EMU_ASAN)
#include <sanitizer/common_interface_defs.h>
#endif
