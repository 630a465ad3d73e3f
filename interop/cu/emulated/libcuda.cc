// A driver for machines without GPUs: the part of CUDA's driver interface that programs of rammerc need, on the
// emulator. Cubins are the shared libraries that `rammerc compile --target emu --emit cubin` makes. All other functions
// that gorgonia.org/cu is linked with say CUDA_ERROR_NOT_SUPPORTED (refused.cc).
//
// This file has devices, contexts, modules and launches; memory.cc and streams.cc have the rest.
#include <cstdio>
#include <cstring>

#include <dlfcn.h>

#include "driver.h"

using emulated::current;
using emulated::Device;
using emulated::hold;
using emulated::put;

namespace {

struct Module {
  void* library;
};

// A kernel of a module: codegen/backend/emu/entry.h.
struct Function {
  int (*run)(int, int, size_t, int, int, const void*, char*, size_t);
  size_t parameter_bytes;
  int shared = 48 << 10;  // the most dynamic shared memory of a block
};

constexpr int kMultiprocessors = 64;
constexpr int kSharedPerBlock = 227 << 10, kSharedPerMultiprocessor = 228 << 10;

int context;  // its address is the only context
thread_local std::vector<bool> pushed;

CUresult launch(Function* f, const CUlaunchConfig* c, void** parameters) {
  if (!f || !parameters || c->gridDimY != 1 || c->gridDimZ != 1 || c->blockDimY != 1 || c->blockDimZ != 1) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (static_cast<int>(c->sharedMemBytes) > f->shared) return CUDA_ERROR_INVALID_VALUE;
  int cooperative = 0, cluster = 0;
  for (unsigned i = 0; i < c->numAttrs; ++i) {
    if (c->attrs[i].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) cooperative = c->attrs[i].value.cooperative;
    if (c->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
      cluster = static_cast<int>(c->attrs[i].value.clusterDim.x);
    }
  }
  if (cooperative && c->gridDimX > kMultiprocessors) return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
  const char* p = static_cast<const char*>(parameters[0]);
  std::vector<char> parameter(p, p + f->parameter_bytes);
  const int grid = static_cast<int>(c->gridDimX), threads = static_cast<int>(c->blockDimX);
  const size_t shared = c->sharedMemBytes;
  return put(c->hStream, [=] {
    char error[256] = "";
    if (f->run(grid, threads, shared, cooperative, cluster, parameter.data(), error, sizeof error)) return CUDA_SUCCESS;
    std::fprintf(stderr, "emulated launch: %s\n", error);
    return CUDA_ERROR_LAUNCH_FAILED;
  });
}

CUresult attribute(int* value, CUdevice_attribute which) {
  switch (which) {
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = kMultiprocessors; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = 9; break;
    case CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH: {
      const char* text = std::getenv("RAMMER_EMU_COOPERATIVE");
      *value = text && text[0] == '0' ? 0 : 1;
      break;
    }
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR: *value = kSharedPerMultiprocessor; break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: *value = kSharedPerBlock; break;
    default: *value = 0;
  }
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

CUresult cuInit(unsigned) { return CUDA_SUCCESS; }
CUresult cuDriverGetVersion(int* version) {
  *version = CUDA_VERSION;
  return CUDA_SUCCESS;
}
CUresult cuGetErrorString(CUresult r, const char** text) {
  *text = r == CUDA_SUCCESS ? "no error" : "an error of the emulated driver";
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetCount(int* count) {
  *count = 1;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  *device = ordinal;
  return ordinal == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
CUresult cuDeviceGetName(char* name, int room, CUdevice) {
  std::snprintf(name, static_cast<size_t>(room), "CPU emulator");
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute which, CUdevice) { return attribute(value, which); }
CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice) {
  *bytes = size_t{1} << 32;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetExecAffinitySupport(int* yes, CUexecAffinityType, CUdevice) {
  *yes = 0;
  return CUDA_SUCCESS;
}

CUresult cuCtxCreate_v2(CUcontext* c, unsigned, CUdevice) {
  current = true;
  *c = reinterpret_cast<CUcontext>(&context);
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRetain(CUcontext* c, CUdevice) {
  *c = reinterpret_cast<CUcontext>(&context);
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice) { return CUDA_SUCCESS; }
CUresult cuCtxDestroy_v2(CUcontext) {
  const auto held = hold();
  return Device::one().finish_all();
}
CUresult cuCtxSetCurrent(CUcontext c) {
  current = c != nullptr;
  return CUDA_SUCCESS;
}
CUresult cuCtxGetCurrent(CUcontext* c) {
  *c = current ? reinterpret_cast<CUcontext>(&context) : nullptr;
  return CUDA_SUCCESS;
}
CUresult cuCtxPushCurrent_v2(CUcontext c) {
  pushed.push_back(current);
  return cuCtxSetCurrent(c);
}
CUresult cuCtxPopCurrent_v2(CUcontext* c) {
  cuCtxGetCurrent(c);
  if (pushed.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  current = pushed.back();
  pushed.pop_back();
  return CUDA_SUCCESS;
}
CUresult cuCtxGetDevice(CUdevice* device) {
  *device = 0;
  return current ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}
CUresult cuCtxSynchronize() {
  const auto held = hold();
  return Device::one().finish_all();
}

CUresult cuModuleLoad(CUmodule* m, const char* path) {
  if (!current) return CUDA_ERROR_INVALID_CONTEXT;
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    std::fprintf(stderr, "emulated driver: %s\n", dlerror());
    return std::strchr(path, '/') ? CUDA_ERROR_INVALID_IMAGE : CUDA_ERROR_FILE_NOT_FOUND;
  }
  *m = reinterpret_cast<CUmodule>(new Module{library});
  return CUDA_SUCCESS;
}
CUresult cuModuleUnload(CUmodule m) {
  const auto held = hold();
  const CUresult r = Device::one().finish_all();
  delete reinterpret_cast<Module*>(m);  // the library stays: threads of its launches may be kept
  return r;
}
CUresult cuModuleGetFunction(CUfunction* f, CUmodule m, const char* name) {
  void* library = reinterpret_cast<Module*>(m)->library;
  void* run = dlsym(library, name);
  const auto bytes = static_cast<const uint32_t*>(dlsym(library, (std::string(name) + "_bytes").c_str()));
  if (!run || !bytes) return CUDA_ERROR_NOT_FOUND;
  auto* found = new Function{};
  found->run = reinterpret_cast<decltype(found->run)>(run);
  found->parameter_bytes = *bytes;
  *f = reinterpret_cast<CUfunction>(found);
  return CUDA_SUCCESS;
}
CUresult cuFuncSetAttribute(CUfunction f, CUfunction_attribute which, int value) {
  if (which == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
    if (value > kSharedPerBlock) return CUDA_ERROR_INVALID_VALUE;
    reinterpret_cast<Function*>(f)->shared = value;
  }
  return CUDA_SUCCESS;
}
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction, int, size_t) {
  *blocks = 1;
  return CUDA_SUCCESS;
}
CUresult cuOccupancyMaxActiveClusters(int* clusters, CUfunction, const CUlaunchConfig* c) {
  *clusters = kMultiprocessors / static_cast<int>(c->attrs[0].value.clusterDim.x);
  return CUDA_SUCCESS;
}
// Emulated copies of boxes need no maps; what a driver would refuse is refused.
CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* first,
                                const cuuint64_t* extents, const cuuint64_t* pitch, const cuuint32_t* box,
                                const cuuint32_t* steps, CUtensorMapInterleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
  const auto held = hold();
  const size_t element = type == CU_TENSOR_MAP_DATA_TYPE_TFLOAT32 ? 4 : 2;
  const auto at = reinterpret_cast<CUdeviceptr>(first);
  const bool aligned = reinterpret_cast<uintptr_t>(map) % 64 == 0 && at % 16 == 0;
  if (!aligned || rank != 2 || pitch[0] % 16 != 0 || pitch[0] < extents[0] * element) return CUDA_ERROR_INVALID_VALUE;
  if (swizzle == CU_TENSOR_MAP_SWIZZLE_128B && box[0] * element > 128) return CUDA_ERROR_INVALID_VALUE;
  if (box[1] > 256 || steps[0] != 1 || steps[1] != 1) return CUDA_ERROR_INVALID_VALUE;
  const bool inside = Device::one().holds(at, (extents[1] - 1) * pitch[0] + extents[0] * element);
  return inside ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuTensorMapEncodeIm2col(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* first,
                                 const cuuint64_t* extents, const cuuint64_t* pitch, const int* lower, const int* upper,
                                 cuuint32_t channels, cuuint32_t pixels, const cuuint32_t* steps, CUtensorMapInterleave,
                                 CUtensorMapSwizzle swizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
  const auto held = hold();
  const size_t element = type == CU_TENSOR_MAP_DATA_TYPE_TFLOAT32 ? 4 : 2;
  const auto at = reinterpret_cast<CUdeviceptr>(first);
  const bool aligned = reinterpret_cast<uintptr_t>(map) % 64 == 0 && at % 16 == 0;
  if (!aligned || rank != 4 || pitch[0] < extents[0] * element) return CUDA_ERROR_INVALID_VALUE;
  if (swizzle == CU_TENSOR_MAP_SWIZZLE_128B && channels * element > 128) return CUDA_ERROR_INVALID_VALUE;
  if (pixels > 1024 || steps[0] != 1 || steps[3] != 1) return CUDA_ERROR_INVALID_VALUE;
  for (int i = 0; i < 3; ++i) {
    if (pitch[i] % 16 != 0) return CUDA_ERROR_INVALID_VALUE;
  }
  for (int i = 0; i < 2; ++i) {
    const bool corners = lower[i] >= -128 && lower[i] <= 127 && upper[i] >= -128 && upper[i] <= 127;
    if (!corners || steps[i + 1] < 1 || steps[i + 1] > 8) return CUDA_ERROR_INVALID_VALUE;
  }
  size_t last = extents[0] * element;
  for (int i = 0; i < 3; ++i) last += (extents[i + 1] - 1) * pitch[i];
  return Device::one().holds(at, last) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* c, CUfunction f, void** parameters, void**) {
  const auto held = hold();
  return launch(reinterpret_cast<Function*>(f), c, parameters);
}

}  // extern "C"
