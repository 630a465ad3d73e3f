// gorgonia.org/cu v0.9.6 is written against CUDA 12's cuda.h. Since CUDA 13 some of its functions have other parameters
// there; the driver still has the older ones under their own names. This header stands before CUDA's on the include
// path, and gives these names back:
//
//   CGO_CFLAGS="-I CLONE/interop/cu/cuda12 -I CUDA/include"
#include_next <cuda.h>

#if CUDA_VERSION >= 13000 && !defined(RAMMER_CUDA12)
#define RAMMER_CUDA12

#undef cuCtxCreate
#undef cuMemPrefetchAsync
#undef cuMemAdvise
#undef cuGraphAddDependencies
#undef cuGraphGetEdges
#define cuCtxCreate cuCtxCreate_v2

#if defined(__cplusplus)
extern "C" {
#endif
CUresult CUDAAPI cuCtxCreate_v2(CUcontext* context, unsigned int flags, CUdevice device);
CUresult CUDAAPI cuMemPrefetchAsync(CUdeviceptr at, size_t bytes, CUdevice device, CUstream stream);
CUresult CUDAAPI cuMemAdvise(CUdeviceptr at, size_t bytes, CUmem_advise advice, CUdevice device);
CUresult CUDAAPI cuGraphAddDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, size_t count);
CUresult CUDAAPI cuGraphGetEdges(CUgraph graph, CUgraphNode* from, CUgraphNode* to, size_t* count);
#if defined(__cplusplus)
}
#endif

#endif
