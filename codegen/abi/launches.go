package abi

// LaunchListSchema names the form of NAME.launches.json.
const LaunchListSchema = "rammerc/launches/v1"

// LaunchList is NAME.launches.json, which stands beside a cubin: all that a caller of CUDA's driver interface must know
// to run the program. The caller makes the memories and the tensor maps once. An inference is the launches of all
// segments, one segment after the other; each launch has one parameter of some hundred bytes, in which the caller puts
// addresses.
type LaunchList struct {
	Schema  string `json:"schema"` // LaunchListSchema
	Name    string `json:"name"`
	Model   string `json:"model"`
	Version string `json:"rammerc"`
	Device  string `json:"device"` // the one that the plan is for
	Arch    string `json:"arch"`   // "sm_90"
	Cubin   string `json:"cubin"`  // file beside this one

	Inputs   []LaunchTensor `json:"inputs"`
	Outputs  []LaunchTensor `json:"outputs"`
	Memories []LaunchMemory `json:"memories"`
	// TensorMaps are to be encoded with cuTensorMapEncodeTiled, or cuTensorMapEncodeIm2col, and copied into the memory
	// "arena".
	TensorMaps []LaunchTensorMap `json:"tensor_maps"`
	Kernels    []LaunchKernel    `json:"kernels"`
	Segments   []LaunchSegment   `json:"segments"`
}

// LaunchTensor is an input or output: dense and row-major, in device memory at a multiple of 16 bytes.
type LaunchTensor struct {
	Name  string  `json:"name"`
	DType int     `json:"dtype"` // ONNX TensorProto.DataType
	Dims  []int64 `json:"dims"`
	Bytes int64   `json:"bytes"`
}

// LaunchMemory is device memory that a caller makes for each inference that is to run beside others, or, if it comes
// from a file, once.
type LaunchMemory struct {
	Name  string `json:"name"` // by which addresses refer to it
	Bytes int64  `json:"bytes"`
	File  string `json:"file,omitempty"` // whose bytes from At on it holds
	At    int64  `json:"at,omitempty"`
	Hash  string `json:"hash,omitempty"` // XXH64 of the file from At up to its last 8 bytes, which hold the same number
	Zero  bool   `json:"zero,omitempty"` // it is zeros when it is made, and afterwards the kernels' own
}

// LaunchTensorMap tells of a matrix of which the copy engine brings boxes: two-dimensional, elements of 2 bytes or of
// tf32, with a swizzle of 128 bytes unless it is plain, boxes of 128 bytes × BoxRows, and zeros outside.
type LaunchTensorMap struct {
	Memory       string `json:"memory"` // that has the matrix
	At           int64  `json:"at"`     // of the first element
	Map          int64  `json:"map"`    // of the 128 bytes of the map, in the arena
	RowBytes     int64  `json:"row_bytes"`
	Columns      int64  `json:"columns"`
	Rows         int64  `json:"rows"`
	BoxRows      int64  `json:"box_rows"`
	ElementBytes int64  `json:"element_bytes"`
	Plain        bool   `json:"plain,omitempty"`
	// Images says that rows are pixels of images, of which boxes hold what a filter meets (cuTensorMapEncodeIm2col).
	Images *LaunchImages `json:"images,omitempty"`
}

// LaunchImages are Rows images of Columns channels: four-dimensional, channels first. The corners are those of the box
// of pixels at which a filter's first tap may be, from the first and from the last pixel, x before y.
type LaunchImages struct {
	Width      int64    `json:"width"`
	Height     int64    `json:"height"`
	LineBytes  int64    `json:"line_bytes"`
	ImageBytes int64    `json:"image_bytes"`
	Lower      [2]int64 `json:"lower_corner"`
	Upper      [2]int64 `json:"upper_corner"`
	Stride     [2]int64 `json:"stride"`
}

// LaunchKernel is a kernel of the cubin. Before the first launch the caller allows its blocks Shared bytes of dynamic
// shared memory (CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES), and asks for SharedPerSM bytes of each multiprocessor
// (CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, in percent).
type LaunchKernel struct {
	Function       string `json:"function"`
	Threads        int    `json:"threads"` // of a block, at most
	Shared         int    `json:"shared_bytes"`
	SharedPerSM    int    `json:"shared_bytes_per_sm"`
	ParameterBytes int    `json:"parameter_bytes"`
}

// LaunchSegment is a part of the program that is launched in one way.
type LaunchSegment struct {
	Kind string `json:"kind"` // "rprogram", "waves", "graph" or "parallel"
	// Whole is an rProgram's one launch. It is cooperative: all of its blocks must be on the device at once, those of a
	// cluster (CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, unless Cluster is 0) on neighbouring multiprocessors. On a device
	// that does not hold them all, Launches do the same.
	Whole    *Launch  `json:"whole,omitempty"`
	Cluster  int      `json:"cluster,omitempty"`
	Streams  int      `json:"streams"`
	Launches []Launch `json:"launches"`
}

// Launch is a launch of a kernel. Those of a stream run in order, and each waits for the launches of its segment whose
// numbers are in After, which are on other streams. Stream 0 is the caller's; the others begin when what was on stream 0
// before the segment has ended, and the next segment begins when all have ended.
type Launch struct {
	Kernel  int `json:"kernel"`
	Blocks  int `json:"blocks"`
	Threads int `json:"threads"`
	Shared  int `json:"shared_bytes"`
	// Overlap allows its blocks to start while the launch before it on its stream ends
	// (CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, from compute capability 9.0 on).
	Overlap bool  `json:"overlap,omitempty"`
	Stream  int   `json:"stream,omitempty"`
	After   []int `json:"after,omitempty"`

	Parameter []byte          `json:"parameter"` // in base64
	Addresses []LaunchAddress `json:"addresses"`
}

// LaunchAddress is an address of 8 bytes that belongs into a parameter at offset At: that of a memory, or of an "input" or
// "output" with the number Port, and so many bytes behind it.
type LaunchAddress struct {
	At   int    `json:"at"`
	Of   string `json:"of"`
	Port int    `json:"port,omitempty"`
	Plus int64  `json:"plus,omitempty"`
}
