// A kernel whose code is larger than the instruction caches of a multiprocessor. After it has run, no other code is in
// them.

#if defined(__CUDACC__)
#include <cuda_runtime.h>

#define TIMES8(x) x x x x x x x x
#define ADD "fma.rn.f32 %0, %0, %1, %1;\n\t"

namespace measure {

// 8 to the 4th, times 4: 16,384 instructions of 16 bytes.
__global__ void straight(float* sink, float a) {
  float x = a;
  asm volatile(TIMES8(TIMES8(TIMES8(TIMES8(ADD ADD ADD ADD)))) : "+f"(x) : "f"(a));
  if (x == 1.25f) *sink = x;
}

void evict_code(cudaStream_t stream) {
  static float* sink = nullptr;
  static int sms = 0;
  if (sink == nullptr) {
    cudaMalloc(&sink, sizeof *sink);
    cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0);
  }
  straight<<<sms, 32, 0, stream>>>(sink, 0.5f);
}

}  // namespace measure
#endif
