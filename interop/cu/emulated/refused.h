// The functions that gorgonia.org/cu v0.9.6 is linked with and the emulated driver does not have. They are defined in a
// file without CUDA's header, whose declarations have parameters.
#pragma once

#define RAMMER_REFUSED(X)                                                                                              \
  X(cuArray3DCreate_v2)                                                                                                \
  X(cuArray3DGetDescriptor_v2)                                                                                         \
  X(cuArrayCreate_v2)                                                                                                  \
  X(cuArrayDestroy)                                                                                                    \
  X(cuArrayGetDescriptor_v2) X(cuCtxDisablePeerAccess) X(cuCtxEnablePeerAccess) X(cuCtxGetApiVersion) X(               \
      cuCtxGetCacheConfig) X(cuCtxGetFlags) X(cuCtxGetLimit) X(cuCtxGetSharedMemConfig) X(cuCtxGetStreamPriorityRange) \
      X(cuCtxResetPersistingL2Cache) X(cuCtxSetCacheConfig) X(cuCtxSetLimit) X(cuCtxSetSharedMemConfig) X(             \
          cuDeviceCanAccessPeer) X(cuDeviceGetP2PAttribute) X(cuDeviceGetUuid_v2) X(cuDevicePrimaryCtxGetState)        \
          X(cuDevicePrimaryCtxReset_v2) X(cuDevicePrimaryCtxSetFlags_v2) X(cuEventElapsedTime_v2) X(                   \
              cuFuncGetAttribute) X(cuFuncSetCacheConfig) X(cuFuncSetSharedMemConfig) X(cuGraphAddChildGraphNode)      \
              X(cuGraphAddDependencies) X(cuGraphAddEmptyNode) X(cuGraphAddHostNode) X(cuGraphAddKernelNode_v2) X(     \
                  cuGraphAddMemcpyNode) X(cuGraphAddMemsetNode) X(cuGraphClone) X(cuGraphCreate) X(cuGraphDestroyNode) \
                  X(cuGraphGetEdges) X(cuLaunchKernel) X(cuLinkAddData_v2) X(cuLinkAddFile_v2) X(cuLinkComplete) X(    \
                      cuLinkCreate_v2) X(cuLinkDestroy) X(cuMemAdvise) X(cuMemAllocManaged) X(cuMemAllocPitch_v2)      \
                      X(cuMemFreeHost) X(cuMemPrefetchAsync) X(cuMemcpy) X(cuMemcpy2DAsync_v2) X(                      \
                          cuMemcpy2DUnaligned_v2) X(cuMemcpy2D_v2) X(cuMemcpy3DAsync_v2) X(cuMemcpy3DPeer)             \
                          X(cuMemcpy3DPeerAsync) X(cuMemcpy3D_v2) X(cuMemcpyAsync) X(cuMemcpyAtoA_v2) X(               \
                              cuMemcpyAtoD_v2) X(cuMemcpyAtoHAsync_v2) X(cuMemcpyAtoH_v2) X(cuMemcpyDtoA_v2)           \
                              X(cuMemcpyHtoAAsync_v2) X(cuMemcpyHtoA_v2) X(cuMemcpyPeer) X(cuMemcpyPeerAsync) X(       \
                                  cuMemsetD16Async) X(cuMemsetD16_v2) X(cuMemsetD2D16Async) X(cuMemsetD2D16_v2)        \
                                  X(cuMemsetD2D32Async) X(cuMemsetD2D32_v2) X(cuMemsetD2D8Async) X(cuMemsetD2D8_v2) X( \
                                      cuMemsetD32Async) X(cuMemsetD32_v2) X(cuModuleGetGlobal_v2)                      \
                                      X(cuModuleGetSurfRef) X(cuModuleGetTexRef) X(cuModuleLoadData) X(                \
                                          cuModuleLoadDataEx) X(cuModuleLoadFatBinary)                                 \
                                          X(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags) X(                   \
                                              cuPointerSetAttribute) X(cuStreamAttachMemAsync)                         \
                                              X(cuStreamCreateWithPriority) X(cuStreamGetFlags) X(cuStreamGetPriority) \
                                                  X(cuStreamWaitValue32_v2) X(cuStreamWriteValue32_v2)                 \
                                                      X(cuSurfRefGetArray) X(cuSurfRefSetArray) X(                     \
                                                          cuTexRefGetAddressMode) X(cuTexRefGetAddress_v2)             \
                                                          X(cuTexRefGetArray) X(cuTexRefGetBorderColor) X(             \
                                                              cuTexRefGetFilterMode) X(cuTexRefGetFlags)               \
                                                              X(cuTexRefGetFormat) X(cuTexRefGetMaxAnisotropy) X(      \
                                                                  cuTexRefSetAddress2D_v3) X(cuTexRefSetAddressMode)   \
                                                                  X(cuTexRefSetAddress_v2) X(cuTexRefSetArray) X(      \
                                                                      cuTexRefSetBorderColor) X(cuTexRefSetFilterMode) \
                                                                      X(cuTexRefSetFlags) X(cuTexRefSetFormat)         \
                                                                          X(cuTexRefSetMaxAnisotropy)                  \
                                                                              X(cuTexRefSetMipmapFilterMode)           \
                                                                                  X(cuTexRefSetMipmapLevelBias)        \
                                                                                      X(cuTexRefSetMipmapLevelClamp)
