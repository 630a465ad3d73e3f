// CUDA's definitions of the primitives of the host's side (backend/host_primitives.h has their contracts).
#pragma once

#include <cstdio>
#include <string>

#include <cuda.h>
#include <cuda_runtime.h>

#include "backend/cuda/tensor_map.cuh"
#include "rt/exec/executor.cuh"
#include "rt/host/model.h"

namespace rt {

template <class Kernel>
__global__ void __launch_bounds__(SharedLayout<Kernel>::kMostThreads, Kernel::kBlocksPerSM)
    vdevice_run(const __grid_constant__ ArgsOf<Kernel> l) {
  run_thread<Kernel>(l);
}

namespace dev {

using Stream = cudaStream_t;

// The status of the C interface for an error of the CUDA run time.
inline int status_of(cudaError_t e) {
  switch (e) {
    case cudaErrorMemoryAllocation: return kOutOfMemory;
    case cudaErrorCooperativeLaunchTooLarge: return kNotResident;
    case cudaErrorNoDevice:
    case cudaErrorInvalidDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorSystemNotReady:
    case cudaErrorDevicesUnavailable:
    case cudaErrorInitializationError:
    case cudaErrorDeviceNotLicensed: return kNoDevice;
    // After these the CUDA context is of no more use.
    case cudaErrorIllegalAddress:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorIllegalInstruction:
    case cudaErrorHardwareStackError:
    case cudaErrorAssert:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorContextIsDestroyed: return kDeviceLost;
    default: return kRunFailed;
  }
}

// What CUDA says of an error, and what a user needs to know beside it.
inline std::string text_of(cudaError_t e) {
  std::string text = cudaGetErrorString(e);
  if (e == cudaErrorInsufficientDriver) {
    int driver = 0, runtime = 0;
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    auto release = [](int v) { return std::to_string(v / 1000) + "." + std::to_string(v % 1000 / 10); };
    text += driver == 0 ? "; there is no driver" : "; the driver is for CUDA " + release(driver);
    text += ", and the library was built with CUDA " + release(runtime);
  }
  size_t free = 0, total = 0;
  if (e == cudaErrorMemoryAllocation && cudaMemGetInfo(&free, &total) == cudaSuccess) {
    text += "; " + std::to_string(free >> 20) + " of " + std::to_string(total >> 20) + " MiB are free";
  }
  if (e == cudaErrorInitializationError) text += "; CUDA does not work in a child of fork whose parent has used it";
  return text;
}

inline void check(cudaError_t e, const char* what) {
  if (e == cudaSuccess) return;
  cudaGetLastError();  // an error that is not sticky must not reach the caller's next call
  throw Error{status_of(e), std::string(what) + ": " + text_of(e)};
}

inline int current_device() {
  int count = 0, device = 0;
  const cudaError_t e = cudaGetDeviceCount(&count);
  if (e != cudaSuccess || count == 0) {
    cudaGetLastError();
    throw Error{kNoDevice,
                std::string("no CUDA device can be used: ") + (e == cudaSuccess ? "there is none" : text_of(e))};
  }
  check(cudaGetDevice(&device), "cudaGetDevice");
  return device;
}

// The caller's device becomes current again when this one's life ends.
class DeviceScope {
 public:
  explicit DeviceScope(int device) {
    check(cudaGetDevice(&outer_), "cudaGetDevice");
    if (outer_ == device) return;
    const cudaError_t e = cudaSetDevice(device);
    changed_ = e == cudaSuccess;
    if (changed_) return;
    cudaGetLastError();
    throw Error{kNoDevice, "CUDA device " + std::to_string(device) + ": " + text_of(e)};
  }
  // Where the device was current already, nothing is set: the caller's CUDA context need not be the device's primary
  // one, and cudaSetDevice would make it that.
  ~DeviceScope() {
    if (changed_) cudaSetDevice(outer_);
  }
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  int outer_ = 0;
  bool changed_ = false;
};

inline void* allocate(size_t bytes) {
  void* p = nullptr;
  check(cudaMalloc(&p, bytes), "cudaMalloc");
  return p;
}
inline void release(void* p) { cudaFree(p); }
// Waits until the bytes are there: cudaMemcpy may return before, and a stream that the caller made without blocking is
// not ordered behind it, so that the first launch there could read tables that have not come.
inline void upload(void* to, const void* from, size_t n) {
  if (n == 0) return;
  check(cudaMemcpy(to, from, n, cudaMemcpyHostToDevice), "copy to the device");
  check(cudaStreamSynchronize(cudaStreamLegacy), "copy to the device");
}
inline void download(void* to, const void* from, size_t n) {
  if (n > 0) check(cudaMemcpy(to, from, n, cudaMemcpyDeviceToHost), "copy from the device");
}
inline void upload_async(void* to, const void* from, size_t n, Stream s) {
  if (n > 0) check(cudaMemcpyAsync(to, from, n, cudaMemcpyHostToDevice, s), "copy to the device");
}
inline void download_async(void* to, const void* from, size_t n, Stream s) {
  if (n > 0) check(cudaMemcpyAsync(to, from, n, cudaMemcpyDeviceToHost, s), "copy from the device");
}
inline void copy_rows_async(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t bytes, size_t rows,
                            Stream s) {
  if (bytes == 0 || rows == 0) return;
  check(cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, bytes, rows, cudaMemcpyDefault, s), "copy of rows");
}
inline void make_tensor_map(const TiledMatrix& m, void* first, void* map) {
  if (!encode_tensor_map(m, first, map)) throw Error{kDeviceUnfit, "the driver makes no tensor map of a matrix"};
}
inline void clear(void* p, size_t n) {
  check(cudaMemset(p, 0, n), "cudaMemset");
  check(cudaStreamSynchronize(cudaStreamLegacy), "cudaMemset");
}

inline Stream make_stream() {
  Stream s = nullptr;
  check(cudaStreamCreate(&s), "cudaStreamCreate");
  return s;
}
// CUDA refuses to make a stream while the caller captures another one in a strict mode, so the mode is relaxed
// meanwhile.
inline Stream make_side_stream() {
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  check(cudaThreadExchangeStreamCaptureMode(&mode), "cudaThreadExchangeStreamCaptureMode");
  Stream s = nullptr;
  const cudaError_t e = cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
  check(cudaThreadExchangeStreamCaptureMode(&mode), "cudaThreadExchangeStreamCaptureMode");
  check(e, "cudaStreamCreate");
  return s;
}
inline void drop_stream(Stream s) { cudaStreamDestroy(s); }
inline void wait_for(Stream s) { check(cudaStreamSynchronize(s), "the program"); }
inline bool capturing(Stream s) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check(cudaStreamIsCapturing(s, &status), "cudaStreamIsCapturing");
  return status != cudaStreamCaptureStatusNone;
}

// An event. It orders inferences of one context, and launches of one inference on several streams.
class Fence {
 public:
  Fence() { check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreate"); }
  ~Fence() { cudaEventDestroy(event_); }
  Fence(const Fence&) = delete;
  Fence& operator=(const Fence&) = delete;
  void set(Stream s) { check(cudaEventRecord(event_, s), "cudaEventRecord"); }
  void join(Stream s) { check(cudaStreamWaitEvent(s, event_, 0), "cudaStreamWaitEvent"); }
  void wait() { check(cudaEventSynchronize(event_), "the program"); }

 private:
  cudaEvent_t event_ = nullptr;
};

// A CUDA graph of what enqueue puts on a stream: the launches of an inference with certain pointers.
class Graph {
 public:
  template <class Enqueue>
  Graph(Stream s, Enqueue enqueue) {
    check(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    cudaGraph_t graph = nullptr;
    try {
      enqueue();
    } catch (...) {
      cudaStreamEndCapture(s, &graph);
      if (graph) cudaGraphDestroy(graph);
      cudaGetLastError();
      throw;
    }
    check(cudaStreamEndCapture(s, &graph), "cudaStreamEndCapture");
    const cudaError_t e = cudaGraphInstantiate(&graph_, graph, 0);
    cudaGraphDestroy(graph);
    check(e, "cudaGraphInstantiate");
  }
  ~Graph() { cudaGraphExecDestroy(graph_); }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  void launch(Stream s) { check(cudaGraphLaunch(graph_, s), "launch"); }

 private:
  cudaGraphExec_t graph_ = nullptr;
};
constexpr bool kHasGraphs = true;

// Pinned memory of the host: it can be read after the device's own memory is lost with the CUDA context.
inline Report* make_reports(int count) {
  void* p = nullptr;
  check(cudaHostAlloc(&p, sizeof(Report) * static_cast<size_t>(count), cudaHostAllocMapped), "cudaHostAlloc");
  Report* const reports = static_cast<Report*>(p);
  for (int i = 0; i < count; ++i) reports[i] = Report{};
  return reports;
}
inline void drop_reports(Report* r) { cudaFreeHost(r); }

#define RT_TEXT_OF(...) #__VA_ARGS__
#define RT_TEXT(...) RT_TEXT_OF(__VA_ARGS__)
#define RT_ENGINE "cuda " RT_TEXT(__CUDA_ARCH_LIST__)

inline std::string describe(int device) {
  cudaDeviceProp p;
  check(cudaGetDeviceProperties(&p, device), "cudaGetDeviceProperties");
  return std::string(p.name) + ", compute capability " + std::to_string(p.major) + "." + std::to_string(p.minor);
}

// A function of the driver's interface, null where the driver is too old for it. Libraries are not linked with the
// driver, so that they can be loaded where there is none.
template <class F>
F driver_function(const char* name) {
  void* f = nullptr;
#if CUDART_VERSION >= 12050
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  const cudaError_t e = cudaGetDriverEntryPointByVersion(name, &f, 11040, cudaEnableDefault, &found);
  if (e != cudaSuccess || found != cudaDriverEntryPointSuccess) f = nullptr;
#elif CUDART_VERSION >= 12000
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  if (cudaGetDriverEntryPoint(name, &f, cudaEnableDefault, &found) != cudaSuccess) f = nullptr;
#endif
  cudaGetLastError();
  return reinterpret_cast<F>(f);
}

// Under MPS, kernels of other processes run beside this process's. Devices under MPS support execution affinity.
inline bool has_tenants(int device) {
  const auto support =
      driver_function<CUresult (*)(int*, CUexecAffinityType, CUdevice)>("cuDeviceGetExecAffinitySupport");
  int yes = 0;
  return support && support(&yes, CU_EXEC_AFFINITY_TYPE_SM_COUNT, device) == CUDA_SUCCESS && yes != 0;
}

// How many multiprocessors are this process's. Under MPS it may have a part of them: one that
// CUDA_MPS_ACTIVE_THREAD_PERCENTAGE sets is in the device's attribute, one that was given to the CUDA context alone is
// in the context's affinity.
inline int granted_multiprocessors(int device) {
  int sms = 0;
  check(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device), "cudaDeviceGetAttribute");
  const auto affinity = driver_function<CUresult (*)(CUexecAffinityParam*, CUexecAffinityType)>("cuCtxGetExecAffinity");
  CUexecAffinityParam p = {};
  if (affinity && affinity(&p, CU_EXEC_AFFINITY_TYPE_SM_COUNT) == CUDA_SUCCESS) {
    const int granted = static_cast<int>(p.param.smCount.val);
    if (granted > 0 && granted < sms) sms = granted;
  }
  return sms;
}

// Makes a kernel ready for launches on the device. All kernels and launches ask for the same split of a
// multiprocessor's memory between L1 cache and shared memory, however little shared memory they use: launches that ask
// for different splits do not run side by side.
template <class Program, class Kernel>
void prepare_kernel(int device) {
  const auto describe_device = [&] { return "device " + std::to_string(device) + ", " + describe(device); };
  cudaFuncAttributes attributes;
  cudaError_t e = cudaFuncGetAttributes(&attributes, vdevice_run<Kernel>);
  if (e != cudaSuccess) {
    cudaGetLastError();
    throw Error{kDeviceUnfit,
                "the library holds code for compute capability × 100 = " RT_TEXT(__CUDA_ARCH_LIST__) "; device " +
                    std::to_string(device) + " is " + describe(device) + " (" + cudaGetErrorString(e) + ")"};
  }
  constexpr size_t kernel = SharedLayout<Kernel>::alone(SharedLayout<Kernel>::kMostBytes);
  e = cudaFuncSetAttribute(vdevice_run<Kernel>, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(kernel));
  if (e != cudaSuccess) {
    cudaGetLastError();
    throw Error{kDeviceUnfit, "a vEU needs " + std::to_string(kernel) + " bytes of shared memory; " +
                                  describe_device() + ", has less"};
  }
  using Layout = SharedLayout<Program>;
  constexpr size_t shared = Layout::kMostBytes * Program::kVEUsPerSM, alone = Layout::alone(Layout::kMostBytes);
  int most = 1;
  check(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device), "cudaDeviceGetAttribute");
  const size_t percent =
      (100 * (shared > alone ? shared : alone) + static_cast<size_t>(most) - 1) / static_cast<size_t>(most);
  check(cudaFuncSetAttribute(vdevice_run<Kernel>, cudaFuncAttributePreferredSharedMemoryCarveout,
                             percent < 100 ? static_cast<int>(percent) : 100),
        "cudaFuncSetAttribute");
}

template <class Program>
Residency residency(int device, const Options&) {
  Program::Kernels::each([&]<class Kernel>(Kernel*) { prepare_kernel<Program, Kernel>(device); });
  int per_sm = 0, cooperative = 0;
  Program::Kernels::one(0, [&]<class Kernel>(Kernel*) {
    using Layout = SharedLayout<Kernel>;
    check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, vdevice_run<Kernel>, Layout::kMostThreads,
                                                        Layout::kMostBytes),
          "occupancy");
  });
  check(cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, device), "cudaDeviceGetAttribute");
  return Residency{per_sm * granted_multiprocessors(device), cooperative != 0, has_tenants(device)};
}

template <class Program>
int resident_clusters(int, int size, const Options&) {
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(size));
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {static_cast<unsigned>(size), 1, 1};
  config.attrs = &attribute;
  config.numAttrs = 1;
  int n = 0;
  cudaError_t e = cudaSuccess;
  Program::Kernels::one(0, [&]<class Kernel>(Kernel*) {
    config.blockDim = dim3(SharedLayout<Kernel>::kMostThreads);
    config.dynamicSmemBytes = SharedLayout<Kernel>::kMostBytes;
    e = cudaOccupancyMaxActiveClusters(&n, vdevice_run<Kernel>, &config);
  });
  if (e == cudaSuccess) return n;
  cudaGetLastError();
  return 0;
}

// Whether the device has programmatic dependent launch, which came with compute capability 9.0.
inline bool launches_overlap() {
  int device = 0, major = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "cudaDeviceGetAttribute");
  return major >= 9;
}

// Streams and events do everything.
struct Together {
  explicit Together(const Options&) {}
  void run(Stream) {}
};

template <class Program>
void launch(const LaunchRow& row, LaunchKind kind, const ArgsOf<Program>& args, Stream s, const Options&) {
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(row.grid));
  config.blockDim = dim3(static_cast<unsigned>(row.threads) + (args.stages > 0 ? 32 : 0));
  config.stream = s;
  cudaLaunchAttribute attributes[2] = {};
  config.attrs = attributes;
  if (kind == LaunchKind::kCooperative) {
    attributes[config.numAttrs].id = cudaLaunchAttributeCooperative;
    attributes[config.numAttrs++].val.cooperative = 1;
  } else if (kind == LaunchKind::kOverlapping && launches_overlap()) {
    attributes[config.numAttrs].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[config.numAttrs++].val.programmaticStreamSerializationAllowed = 1;
  }
  if (args.cluster > 1) {
    attributes[config.numAttrs].id = cudaLaunchAttributeClusterDimension;
    attributes[config.numAttrs++].val.clusterDim = {args.cluster, 1, 1};
  }
  Program::Kernels::one(row.kernel, [&]<class Kernel>(Kernel*) {
    using Layout = SharedLayout<Kernel>;
    config.dynamicSmemBytes = Layout::bytes(row.shared, static_cast<int>(args.stages));
    if (row.alone && kind == LaunchKind::kOverlapping) config.dynamicSmemBytes = Layout::alone(config.dynamicSmemBytes);
    check(cudaLaunchKernelEx(&config, vdevice_run<Kernel>, args), "launch");
  });
}

// Nothing to do: a launch that was refused has changed no flag, and after one that failed the device is lost.
inline void after_failure(void*, size_t) {}

inline void poison(void*, size_t) {}

}  // namespace dev
}  // namespace rt

#include "backend/cuda/branches.cuh"
#include "backend/cuda/loops.cuh"
