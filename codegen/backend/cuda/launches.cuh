// Programmatic dependent launch, which came with compute capability 9.0. Where a launch does not ask for it, or on
// older devices, these do nothing: the launch begins when those before it have ended.
#pragma once

namespace rt::detail {

RT_DEVICE void allow_next_launch() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
RT_DEVICE void wait_for_launches_before() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// That p passes through the wait keeps the compiler from computing it behind.
RT_DEVICE const char* inputs(const char* p) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" : "+l"(p)::"memory");
#endif
  return global(const_cast<char*>(p));
}

}  // namespace rt::detail
