// Package target says what lowering knows of the device that it lowers for. Lowering decides which candidates an
// rOperator has: their tiles, and over how many rTasks a sum is spread. The scheduler then chooses among them with
// all that is known of the device.
package target

import (
	"strconv"
	"strings"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/schema"
)

// Unit is what multiplies on a multiprocessor.
type Unit uint8

const (
	Scalar Unit = iota // a multiplication and an addition a thread
	Tensor             // matrix instructions of a warp or several
)

// Target is the device in the terms of lowering. The zero value is no device: Of makes targets.
type Target struct {
	Name string // of the device, for messages
	// Arch is the compute capability times ten, 90 for sm_90. The emulator, which runs every rKernel, has AnyArch.
	Arch int
	// SMs is the number of multiprocessors, VEUs how many rTasks run at once.
	SMs, VEUs int
	// Threads is how many threads a vEU may have.
	Threads int
	// SharedPerTask is the shared memory that an rTask may have beside the executor's own, in bytes; Registers are those
	// of a multiprocessor.
	SharedPerTask, Registers int
	// BulkCopies says that one instruction copies a block from global to shared memory beside the computation.
	BulkCopies bool
	// SharedRate and L2Rate are the bytes a nanosecond that one multiprocessor reads of shared memory and of L2.
	SharedRate, L2Rate float64
	// L2Bytes is how much L2 holds, 0 if that is not known.
	L2Bytes int64
	// Latency is what an rTask's first load and last store take, in nanoseconds.
	Latency float64

	rates map[rateKey]float64
}

type rateKey struct {
	unit Unit
	d    ir.DType
}

// AnyArch is the architecture of a target without limits on it.
const AnyArch = 1 << 20

// bulkCopyArch is the first architecture with bulk copies.
const bulkCopyArch = 90

// tileThreads is how many threads the rTasks have whose arithmetic Rate is about.
const tileThreads = 256

// Of is the target that spec describes. Rates of tensor cores are there when the device file has them.
func Of(spec *device.Spec) Target {
	t := Target{
		Name: spec.Name, Arch: archOf(spec.Arch), SMs: spec.SMs, VEUs: spec.VEUs(), Threads: spec.Threads,
		SharedPerTask: spec.SharedBound() - schema.LeastShared, Registers: spec.Registers,
		SharedRate: spec.SharedRate(), L2Rate: spec.Cost.L2PerSM, L2Bytes: spec.L2Bytes, Latency: spec.Cost.Latency,
		rates: map[rateKey]float64{{Scalar, ir.Float32}: spec.FlopsRate(tileThreads)},
	}
	for name, d := range tensorTypes {
		if rate := spec.TensorRate(name); rate > 0 {
			t.rates[rateKey{Tensor, d}] = rate
		}
	}
	t.BulkCopies = t.Arch >= bulkCopyArch
	return t
}

// tensorTypes are the types of tensors that tensor cores multiply, by their names in device files: float32 operands are
// rounded to tf32.
var tensorTypes = map[string]ir.DType{
	"float64": ir.Float64, "tf32": ir.Float32, "float16": ir.Float16, "bfloat16": ir.BFloat16, "int8": ir.Int8,
}

// archOf reads "sm_90" as 90.
func archOf(arch string) int {
	digits, ok := strings.CutPrefix(arch, "sm_")
	if n, err := strconv.Atoi(digits); ok && err == nil {
		return n
	}
	return AnyArch
}

// Busy is which part of the vEUs have rTasks if there are so many.
func (t *Target) Busy(tasks int64) float64 { return min(1, float64(tasks)/float64(t.VEUs)) }

// Rate is how many operations a nanosecond one multiprocessor does on elements of type d, a multiplication and an
// addition counting as two, in well-written kernels. It is 0 where there are no such instructions, or where the device
// file does not say.
func (t *Target) Rate(unit Unit, d ir.DType) float64 { return t.rates[rateKey{unit, d}] }

// Runs reports whether code for compute capability arch/10 and later runs on the target.
func (t *Target) Runs(arch int) bool { return arch <= t.Arch }

// Is reports whether the target has what GPUs of compute capability arch/10 have for themselves.
func (t *Target) Is(arch int) bool { return t.Arch == arch || t.Arch == AnyArch }

// warpGroupArch is the architecture whose warp groups multiply (wgmma).
const warpGroupArch = 90

// WarpGroups reports whether warp groups multiply on the target.
func (t *Target) WarpGroups() bool { return t.Is(warpGroupArch) }
