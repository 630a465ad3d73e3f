// Mbarriers, which count arrivals and bytes in shared memory.
#pragma once

namespace rt::detail {

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
RT_DEVICE void mbarrier_init(uint64_t* bar, int arrivals) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(bar)), "r"(arrivals) : "memory");
}
RT_DEVICE void mbarrier_init_done() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  asm volatile("fence.mbarrier_init.release.cluster;\n\tfence.proxy.async.shared::cta;" ::: "memory");
#endif
}
RT_DEVICE void mbarrier_arrive(uint64_t* bar) {
  asm volatile("{.reg .b64 state; mbarrier.arrive.shared.b64 state, [%0];}" ::"r"(shared_address(bar)) : "memory");
}
// As mbarrier_test, but the hardware may hold the thread up for a while before it says no.
RT_DEVICE bool mbarrier_done(uint64_t* bar, uint32_t phase) {
  uint32_t done;
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
               : "=r"(done)
               : "r"(shared_address(bar)), "r"(phase & 1)
               : "memory");
#else
  asm volatile("{.reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
               : "=r"(done)
               : "r"(shared_address(bar)), "r"(phase & 1)
               : "memory");
#endif
  return done != 0;
}
RT_DEVICE bool mbarrier_test(uint64_t* bar, uint32_t phase) {
  uint32_t done;
  asm volatile("{.reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
               : "=r"(done)
               : "r"(shared_address(bar)), "r"(phase & 1)
               : "memory");
  return done != 0;
}
#else
// Before compute capability 8.0 there are no mbarriers. A word counts arrivals since init in its low half, which may
// wrap, and holds how many make a phase in its high half.
RT_DEVICE void mbarrier_init(uint64_t* bar, int arrivals) { *bar = static_cast<uint64_t>(arrivals) << 32; }
RT_DEVICE void mbarrier_init_done() {}
RT_DEVICE void mbarrier_arrive(uint64_t* bar) {
  __threadfence_block();
  atomicAdd(reinterpret_cast<unsigned*>(bar), 1u);
}
RT_DEVICE bool mbarrier_done(uint64_t* bar, uint32_t phase) {
  const uint64_t v = *const_cast<volatile uint64_t*>(bar);
  const unsigned target = (phase + 1) * static_cast<unsigned>(v >> 32);
  const bool done = static_cast<int>(static_cast<unsigned>(v) - target) >= 0;
  if (done) __threadfence_block();
  return done;
}
RT_DEVICE bool mbarrier_test(uint64_t* bar, uint32_t phase) { return mbarrier_done(bar, phase); }
#endif

template <class Report>
RT_DEVICE void mbarrier_wait(uint64_t* bar, uint32_t phase, uint64_t patience_ns, Report* notes, const Report& r) {
  Patience patience(patience_ns);
  while (!mbarrier_done(bar, phase)) patience.spent(true, notes, r);
}

template <class Report, class Meanwhile>
RT_DEVICE void mbarrier_wait(uint64_t* bar, uint32_t phase, uint64_t patience_ns, Report* notes, const Report& r,
                             Meanwhile meanwhile) {
  Patience patience(patience_ns);
  while (!mbarrier_test(bar, phase)) {
    meanwhile();
    patience.spent(true, notes, r);
  }
}

}  // namespace rt::detail
