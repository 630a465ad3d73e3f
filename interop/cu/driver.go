package rammercu

/*
#include <cuda.h>

// Puts a launch on a stream. The parameter is that of the kernel; the driver copies it before this returns.
static CUresult rammer_launch(CUfunction f, unsigned blocks, unsigned threads, unsigned shared, int cooperative,
                              unsigned cluster, int overlap, CUstream stream, void *parameter) {
  CUlaunchAttribute attributes[3] = {0};
  CUlaunchConfig config = {0};
  config.gridDimX = blocks, config.gridDimY = 1, config.gridDimZ = 1;
  config.blockDimX = threads, config.blockDimY = 1, config.blockDimZ = 1;
  config.sharedMemBytes = shared, config.hStream = stream, config.attrs = attributes;
  if (cooperative) {
    attributes[config.numAttrs].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    attributes[config.numAttrs++].value.cooperative = 1;
  }
  if (cluster > 1) {
    attributes[config.numAttrs].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attributes[config.numAttrs].value.clusterDim.x = cluster;
    attributes[config.numAttrs].value.clusterDim.y = 1;
    attributes[config.numAttrs++].value.clusterDim.z = 1;
  }
  if (overlap) {
    attributes[config.numAttrs].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    attributes[config.numAttrs++].value.programmaticStreamSerializationAllowed = 1;
  }
  void *parameters[] = {parameter};
  return cuLaunchKernelEx(&config, f, parameters, 0);
}

// How many clusters of blocks of a kernel the device holds at once; 0 if it cannot be told.
static int rammer_clusters(CUfunction f, unsigned threads, unsigned shared, unsigned cluster) {
  CUlaunchAttribute attribute = {0};
  CUlaunchConfig config = {0};
  int n = 0;
  attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  attribute.value.clusterDim.x = cluster, attribute.value.clusterDim.y = 1, attribute.value.clusterDim.z = 1;
  config.gridDimX = cluster, config.gridDimY = 1, config.gridDimZ = 1;
  config.blockDimX = threads, config.blockDimY = 1, config.blockDimZ = 1;
  config.sharedMemBytes = shared, config.attrs = &attribute, config.numAttrs = 1;
  return cuOccupancyMaxActiveClusters(&n, f, &config) == CUDA_SUCCESS ? n : 0;
}

// Numbers of float32 are rounded to tf32 on their way.
static CUtensorMapDataType rammer_element_type(unsigned element_bytes) {
  switch (element_bytes) {
    case 4:
      return CU_TENSOR_MAP_DATA_TYPE_TFLOAT32;
    case 2:
      return CU_TENSOR_MAP_DATA_TYPE_UINT16;
  }
  return CU_TENSOR_MAP_DATA_TYPE_UINT8;
}

static CUresult rammer_tensor_map(CUtensorMap *map, unsigned long long first, unsigned long long columns,
                                  unsigned long long rows, unsigned long long row_bytes, unsigned box_rows,
                                  unsigned element_bytes, int plain) {
  const cuuint64_t extents[2] = {columns, rows}, pitch[1] = {row_bytes};
  const cuuint32_t box[2] = {128 / element_bytes, box_rows}, steps[2] = {1, 1};
  return cuTensorMapEncodeTiled(
      map, rammer_element_type(element_bytes), 2, (void *)first, extents, pitch, box, steps,
      CU_TENSOR_MAP_INTERLEAVE_NONE, plain ? CU_TENSOR_MAP_SWIZZLE_NONE : CU_TENSOR_MAP_SWIZZLE_128B,
      CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

static CUresult rammer_image_map(CUtensorMap *map, unsigned long long first, const unsigned long long *extents,
                                 const unsigned long long *pitch, const int *lower, const int *upper,
                                 const unsigned *stride, unsigned box_rows, unsigned element_bytes) {
  const cuuint64_t dims[4] = {extents[0], extents[1], extents[2], extents[3]};
  const cuuint64_t bytes[3] = {pitch[0], pitch[1], pitch[2]};
  const cuuint32_t steps[4] = {1, stride[0], stride[1], 1};
  return cuTensorMapEncodeIm2col(
      map, rammer_element_type(element_bytes), 4, (void *)first, dims, bytes, lower, upper, 128 / element_bytes,
      box_rows, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
      CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}
*/
import "C"

import (
	"fmt"
	"unsafe"

	"gorgonia.org/cu"

	"github.com/rammerc/rammerc/codegen/abi"
)

// The calls of the driver that cu does not have. All of them are made in the context's thread (cu.Context.Do).

// Error is a code of the driver.
type Error struct {
	Call string // what was asked for
	Code int    // CUresult
}

func (e *Error) Error() string {
	var text *C.char
	C.cuGetErrorString(C.CUresult(e.Code), &text)
	return fmt.Sprintf("%s: %s (CUDA error %d)", e.Call, C.GoString(text), e.Code)
}

func check(r C.CUresult, call string) error {
	if r == C.CUDA_SUCCESS {
		return nil
	}
	return &Error{call, int(r)}
}

// tooLarge says that the device does not hold all blocks of a cooperative launch.
func tooLarge(err error) bool {
	e, ok := err.(*Error)
	return ok && e.Code == C.CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE
}

// kernel is a function of a module, made ready for launches.
type kernel struct{ f C.CUfunction }

// prepareKernel lets the blocks of a kernel have the shared memory that they may need.
func prepareKernel(fn cu.Function, k abi.LaunchKernel) (kernel, error) {
	// cu does not give the handle away; a Function is nothing else.
	f := *(*C.CUfunction)(unsafe.Pointer(&fn))
	const most = C.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
	if err := check(C.cuFuncSetAttribute(f, most, C.int(k.Shared)), "shared memory of "+k.Function); err != nil {
		return kernel{}, err
	}
	whole := max(1, deviceAttribute(C.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR))
	percent := min(100, (100*k.SharedPerSM+whole-1)/whole)
	const split = C.CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT
	return kernel{f}, check(C.cuFuncSetAttribute(f, split, C.int(percent)), "split of "+k.Function)
}

// deviceAttribute is an attribute of the current device; 0 if the driver does not know it.
func deviceAttribute(which C.CUdevice_attribute) int {
	var device C.CUdevice
	var value C.int
	if C.cuCtxGetDevice(&device) != C.CUDA_SUCCESS || C.cuDeviceGetAttribute(&value, which, device) != C.CUDA_SUCCESS {
		return 0
	}
	return int(value)
}

// launchesOverlap says whether the device has programmatic dependent launch.
func launchesOverlap() bool {
	return deviceAttribute(C.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) >= 9
}

// cooperates says whether the device starts all blocks of a launch at once where that is asked for, and no kernels of other
// processes run beside those of this one, as under MPS.
func cooperates() bool {
	var device C.CUdevice
	var shares C.int
	if C.cuCtxGetDevice(&device) != C.CUDA_SUCCESS {
		return false
	}
	const affinity = C.CU_EXEC_AFFINITY_TYPE_SM_COUNT
	if C.cuDeviceGetExecAffinitySupport(&shares, affinity, device) == C.CUDA_SUCCESS && shares != 0 {
		return false
	}
	return deviceAttribute(C.CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH) != 0
}

// room is how many blocks of a launch the device holds at once.
func (k kernel) room(l *abi.Launch, cluster int) int {
	if cluster > 1 {
		n := C.rammer_clusters(k.f, C.uint(l.Threads), C.uint(l.Shared), C.uint(cluster))
		return int(n) * cluster
	}
	var blocks C.int
	if C.cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, k.f, C.int(l.Threads), C.size_t(l.Shared)) != C.CUDA_SUCCESS {
		return 0
	}
	return int(blocks) * deviceAttribute(C.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
}

// order says how a launch is ordered with those before it.
type order struct {
	cooperative, overlap bool
	cluster              int
}

// launch puts a launch on a stream.
func (k kernel) launch(l *abi.Launch, o order, stream cu.Stream, parameter []byte) error {
	flag := func(b bool) C.int {
		if b {
			return 1
		}
		return 0
	}
	return check(C.rammer_launch(k.f, C.uint(l.Blocks), C.uint(l.Threads), C.uint(l.Shared), flag(o.cooperative),
		C.uint(o.cluster), flag(o.overlap), handle(stream), unsafe.Pointer(unsafe.SliceData(parameter))), "launch")
}

func handle(s cu.Stream) C.CUstream { return C.CUstream(unsafe.Pointer(s.C())) }

// tensorMap encodes what the copy engine must know of a matrix, or of images, in a memory.
func tensorMap(m abi.LaunchTensorMap, memory cu.DevicePtr) ([]byte, error) {
	var made C.CUtensorMap
	first := C.ulonglong(uint64(memory) + uint64(m.At))
	if i := m.Images; i != nil {
		extents := [4]C.ulonglong{C.ulonglong(m.Columns), C.ulonglong(i.Width), C.ulonglong(i.Height), C.ulonglong(m.Rows)}
		pitch := [3]C.ulonglong{C.ulonglong(m.RowBytes), C.ulonglong(i.LineBytes), C.ulonglong(i.ImageBytes)}
		lower, upper := [2]C.int{C.int(i.Lower[0]), C.int(i.Lower[1])}, [2]C.int{C.int(i.Upper[0]), C.int(i.Upper[1])}
		stride := [2]C.uint{C.uint(i.Stride[0]), C.uint(i.Stride[1])}
		err := check(C.rammer_image_map(&made, first, &extents[0], &pitch[0], &lower[0], &upper[0], &stride[0],
			C.uint(m.BoxRows), C.uint(m.ElementBytes)), "tensor map of images")
		return C.GoBytes(unsafe.Pointer(&made), C.int(unsafe.Sizeof(made))), err
	}
	plain := C.int(0)
	if m.Plain {
		plain = 1
	}
	err := check(C.rammer_tensor_map(&made, first, C.ulonglong(m.Columns), C.ulonglong(m.Rows), C.ulonglong(m.RowBytes),
		C.uint(m.BoxRows), C.uint(m.ElementBytes), plain), "tensor map")
	return C.GoBytes(unsafe.Pointer(&made), C.int(unsafe.Sizeof(made))), err
}

// capturing says whether what is put on the stream becomes part of a graph.
func capturing(s cu.Stream) (bool, error) {
	var status C.CUstreamCaptureStatus
	err := check(C.cuStreamIsCapturing(handle(s), &status), "state of the stream")
	return status != C.CU_STREAM_CAPTURE_STATUS_NONE, err
}

// graph is an inference with certain pointers, recorded.
type graph struct{ made C.CUgraphExec }

// recordGraph makes a graph of what enqueue puts on the stream.
func recordGraph(s cu.Stream, enqueue func() error) (graph, error) {
	if err := check(C.cuStreamBeginCapture(handle(s), C.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), "begin of a graph"); err != nil {
		return graph{}, err
	}
	failed := enqueue()
	var recorded C.CUgraph
	err := check(C.cuStreamEndCapture(handle(s), &recorded), "end of a graph")
	if recorded != nil {
		defer C.cuGraphDestroy(recorded)
	}
	if failed != nil {
		return graph{}, failed
	}
	if err != nil {
		return graph{}, err
	}
	var g graph
	return g, check(C.cuGraphInstantiateWithFlags(&g.made, recorded, 0), "graph")
}

func (g graph) launch(s cu.Stream) error {
	return check(C.cuGraphLaunch(g.made, handle(s)), "launch of a graph")
}

func (g graph) destroy() { C.cuGraphExecDestroy(g.made) }
