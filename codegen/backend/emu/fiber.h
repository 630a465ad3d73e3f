// Fibres, which stand for CUDA threads. A fibre is a stack and a saved stack pointer. The switch between fibres is
// written by hand, because swapcontext makes a system call for each one.
#pragma once

#include "backend/emu/system.h"

// The scheduler's own data are shared by fibres between which ThreadSanitizer sees no order. So functions of the
// scheduler are not instrumented; they carry this attribute, and must not call functions that are. Most of a run's time
// goes to them. So they are optimised also where nothing else is, in tests that take longer to compile than to run.
#if defined(__clang__)
#define RT_EMU_QUIET __attribute__((no_sanitize("thread"), disable_sanitizer_instrumentation))
#elif defined(RT_EMU_TSAN)
#define RT_EMU_QUIET __attribute__((no_sanitize("thread")))
#elif defined(__GNUC__) && !defined(__OPTIMIZE__)
#define RT_EMU_QUIET __attribute__((optimize("O2")))
#else
#define RT_EMU_QUIET
#endif

namespace rt::emu {

// How ThreadSanitizer is told of order: switches between fibres imply none, barriers do.
#if defined(RT_EMU_TSAN)
RT_EMU_QUIET inline void order_release(void* at) { __tsan_release(at); }
RT_EMU_QUIET inline void order_acquire(void* at) { __tsan_acquire(at); }
#else
inline void order_release(void*) {}
inline void order_acquire(void*) {}
#endif

#if defined(RT_EMU_TSAN) || defined(RT_EMU_ASAN)
constexpr size_t kStackBytes = size_t{256} << 10;
#else
constexpr size_t kStackBytes = size_t{128} << 10;
#endif

// Where to go on: in a fibre, or in the OS thread that schedules the fibres.
struct Context {
#if defined(__x86_64__)
  void* sp = nullptr;
#else
  ucontext_t uc;
#endif
#if defined(RT_EMU_TSAN)
  void* tsan = nullptr;
#endif
#if defined(RT_EMU_ASAN)
  void* fake_stack = nullptr;
  const void* bottom = nullptr;
  size_t size = 0;
#endif
};

#if defined(__x86_64__)
// Saves the registers that a callee must preserve (System V ABI) on the current stack, stores the stack's pointer in
// *from, and continues where `to` was saved.
__attribute__((naked, noinline)) RT_EMU_QUIET static void swap_stacks([[maybe_unused]] void** from,
                                                                      [[maybe_unused]] void* to) {
  asm volatile(
      "pushq %rbp\n\tpushq %rbx\n\tpushq %r12\n\tpushq %r13\n\tpushq %r14\n\tpushq %r15\n\t"
      "movq %rsp, (%rdi)\n\t"
      "movq %rsi, %rsp\n\t"
      "popq %r15\n\tpopq %r14\n\tpopq %r13\n\tpopq %r12\n\tpopq %rbx\n\tpopq %rbp\n\t"
      "retq");
}
#endif

RT_EMU_QUIET inline void switch_context(Context& from, Context& to) {
#if defined(RT_EMU_TSAN)
  __tsan_switch_to_fiber(to.tsan, __tsan_switch_to_fiber_no_sync);
#endif
#if defined(RT_EMU_ASAN)
  __sanitizer_start_switch_fiber(&from.fake_stack, to.bottom, to.size);
#endif
#if defined(__x86_64__)
  swap_stacks(&from.sp, to.sp);
#else
  swapcontext(&from.uc, &to.uc);
#endif
#if defined(RT_EMU_ASAN)
  __sanitizer_finish_switch_fiber(from.fake_stack, nullptr, nullptr);
#endif
}

// Prepares c so that a switch to it calls entry on the given stack. entry must not return.
RT_EMU_QUIET inline void prepare_context(Context& c, char* stack, size_t bytes, void (*entry)()) {
#if defined(__x86_64__)
  void** top = reinterpret_cast<void**>(stack + bytes);
  *--top = nullptr;                              // where entry would return to
  *--top = reinterpret_cast<void*>(entry);       // what the first switch returns to
  for (int i = 0; i < 6; ++i) *--top = nullptr;  // callee-saved registers
  c.sp = top;
#else
  getcontext(&c.uc);
  c.uc.uc_stack.ss_sp = stack;
  c.uc.uc_stack.ss_size = bytes;
  c.uc.uc_link = nullptr;
  makecontext(&c.uc, entry, 0);
#endif
#if defined(RT_EMU_ASAN)
  c.bottom = stack;
  c.size = bytes;
#endif
}

// Reserves address space for all stacks of a block. Pages get memory when they are touched.
RT_EMU_QUIET inline char* reserve_stacks(int count) {
  void* p = mmap(nullptr, kStackBytes * static_cast<size_t>(count), PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return p == MAP_FAILED ? nullptr : static_cast<char*>(p);
}

inline void release_stacks(char* p, int count) { munmap(p, kStackBytes * static_cast<size_t>(count)); }

}  // namespace rt::emu
