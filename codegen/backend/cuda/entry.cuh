// How cubins name their kernels, and where the variables are that the compiler reads (rt/host/cubin.h).
#pragma once

#define RT_CUBIN_VARIABLE __device__

// Defines a kernel under a name that callers of the driver's interface can ask for.
#define RT_CUBIN_KERNEL(name, Kernel)                                                             \
  __global__ void __launch_bounds__(rt::SharedLayout<Kernel>::kMostThreads, Kernel::kBlocksPerSM) \
      name(const __grid_constant__ rt::ArgsOf<Kernel> l) {                                        \
    rt::run_thread<Kernel>(l);                                                                    \
  }
