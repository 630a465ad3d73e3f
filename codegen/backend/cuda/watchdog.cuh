// Clocks, the watchdog of debug builds, and the checks that only the emulator makes.
#pragma once

namespace rt::detail {

RT_DEVICE uint64_t clock_cycles() {
  uint64_t t;
  asm volatile("mov.u64 %0, %clock64;" : "=l"(t)::"memory");
  return t;
}
RT_DEVICE uint64_t clock_nanoseconds() {
  uint64_t t;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t)::"memory");
  return t;
}
RT_DEVICE void both_clocks(uint64_t* cycles, uint64_t* nanoseconds) {
  *cycles = clock_cycles(), *nanoseconds = clock_nanoseconds();
}

RT_DEVICE void nap(uint32_t ns) { __nanosleep(ns); }

// A wait that has taken half of its time leaves a note, one for each block. The first wait that takes all of its time
// ends the launch by a trap. By then every block that waits has left its note, so the host can tell what they all wait
// for.
class Patience {
 public:
#if defined(RT_DEBUG)
  RT_DEVICE explicit Patience(uint64_t ns) : half_(ns / 2), end_(clock_nanoseconds() + half_) {}
  RT_DEVICE ~Patience() {
    if (note_ != nullptr) *note_ = 0;
  }
  template <class Report>
  RT_DEVICE void spent(bool waits, Report* notes, const Report& r) {
    if (clock_nanoseconds() < end_) return;
    Report* const mine = notes + blockIdx.x;
    if (waits && r.set && note_ == nullptr && atomicExch(&mine->set, r.set) == 0) {
      *mine = r, note_ = &mine->set;
      __threadfence_system();
    }
    if (late_) __trap();
    late_ = true, end_ = clock_nanoseconds() + half_;
  }

 private:
  uint64_t half_, end_;
  uint32_t* note_ = nullptr;
  bool late_ = false;
#else
  RT_DEVICE explicit Patience(uint64_t) {}
  template <class Report>
  RT_DEVICE void spent(bool, Report*, const Report&) {}
#endif
};

// On a GPU the contents of shared memory are undefined anyway, and nobody counts.
RT_DEVICE void poison(char*, int, int) {}
RT_DEVICE void note_chunk() {}
RT_DEVICE void note_inputs() {}
RT_DEVICE void expect_streamed(uint32_t, bool) {}
RT_DEVICE void note_free(uint32_t*, int) {}

}  // namespace rt::detail
