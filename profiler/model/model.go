// Package model estimates what rTasks cost from the work their candidates state and the figures of a
// device file. It needs no device and gives the same numbers everywhere.
package model

import (
	"strings"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/profiler"
	"github.com/rammerc/rammerc/roperator"
)

// Costs models rTasks on one device. It implements profiler.Costs.
type Costs struct {
	spec     *device.Spec
	graph    *roperator.Graph
	streamed bool               // the weights do not stay in L2 from one inference to the next
	factors  map[string]float64 // by Name, of rTasks in whole programs; nil: 1
}

// InPrograms models rTasks as they are in whole programs, for the prediction of finished plans (device.Spec.InPrograms
// and Programs).
func (m *Costs) InPrograms() *Costs {
	spec := *m.spec
	if spec.InPrograms != nil {
		spec.Kernels = spec.InPrograms
	}
	p := New(&spec, m.graph)
	p.factors = spec.Programs.Modelled
	return p
}

// Prediction is InPrograms.
func (m *Costs) Prediction() profiler.Costs { return m.InPrograms() }

// NameOf is the Name of the candidate's rKernel.
func NameOf(c *roperator.Candidate) string { return Name(c.Inst.Kernel.Name, c.Inst.Arithmetic()) }

// l2Share is the part of L2 in which weights stay from one inference to the next, beside the data that the program
// makes.
const l2Share = 0.8

// New models the candidates of g on spec. Weights that fit in L2 are assumed to be there when an inference starts;
// larger weights come from DRAM.
func New(spec *device.Spec, g *roperator.Graph) *Costs {
	m := &Costs{spec: spec, graph: g}
	seen := map[int]bool{}
	total := int64(0)
	for _, op := range g.Ops {
		total += g.ConstantBytes(op.Candidates[0], seen)
	}
	m.streamed = Streamed(spec, total)
	return m
}

// Streamed reports whether so many bytes of weights come from DRAM in each inference, because they do not stay in L2.
func Streamed(spec *device.Spec, weights int64) bool {
	return float64(weights) > l2Share*float64(spec.L2Bytes)
}

// ByRates models rTasks by the device's rates alone, without what was fitted to measured ones.
func (m *Costs) ByRates() *Costs {
	spec := *m.spec
	spec.Kernels = nil
	return New(&spec, m.graph)
}

// Streamed reports whether the graph's weights come from DRAM in each inference, because they do not stay in L2.
func (m *Costs) Streamed() bool { return m.streamed }

// bytesInFlight is how many bytes one thread has under way from memory at a time.
const bytesInFlight = 128

// ringOverL2 is how much faster an rTask reads streamed weights, which are in shared memory already, than weights in
// L2. It is not more because between units of weights there are sums over lanes.
const ringOverL2 = 2

// RTask is what the model knows of an rTask: of which rKernel it is, its work, and how many there are.
type RTask struct {
	Kernel         string // Name of it
	Work           roperator.Work
	Tasks, Threads int
	Ring           bool    // its constants come through the ring
	Constants      float64 // bytes of all constants that the candidate refers to
}

// TaskTime is the latency of the first load and the last store, and the longest of three times that overlap: arithmetic,
// operands from shared memory, and traffic with memory. Of rKernels that were fitted to measured rTasks it is what the
// fit says of these times (device.KernelFit).
func (m *Costs) TaskTime(c *roperator.Candidate) float64 {
	t := m.describe(c)
	return factorOf(m.factors, t.Kernel) * m.byWork(c, &t)
}

func (m *Costs) byWork(c *roperator.Candidate, t *RTask) float64 {
	if len(c.Exports) > 0 {
		// The weights are on chip, and the operands in shared memory, when the rTask starts.
		kept := t.Work.SharedBytes / m.spec.SharedRate() // weights that did not fit in registers
		return max(arithmetic(m.spec, t), shared(m.spec, t)+kept) + m.spec.Cost.Latency/4
	}
	return Time(m.spec, t, m.streamed)
}

// Time is what an rTask takes in nanoseconds; streamed says that constants come from DRAM.
func Time(spec *device.Spec, t *RTask, streamed bool) float64 {
	b := BoundsOf(spec, t, streamed)
	if f, ok := fitOf(spec, t.Kernel); ok {
		return f.Latency + f.Arithmetic*b.Arithmetic + f.Shared*b.Shared + f.Traffic*b.Traffic
	}
	return spec.Cost.Latency + b.longest()
}

// fitOf finds the fit to an rKernel by its Name. A fit under the name without the arithmetic is for all types.
func fitOf(spec *device.Spec, name string) (device.KernelFit, bool) {
	f, ok := spec.Kernels[name]
	if !ok && len(spec.Kernels) > 0 {
		kernel, _, _ := strings.Cut(name, "/")
		f, ok = spec.Kernels[kernel]
	}
	return f, ok
}

// Name is what device files call an rKernel that multiplies what arithmetic says (rkernels.Instance.Arithmetic), such as
// "gemm_mma/fp16". Tensor cores take different times for different types, so that one rKernel is several here.
func Name(kernel, arithmetic string) string {
	if arithmetic == "" || arithmetic == "scalar" {
		return kernel
	}
	return kernel + "/" + arithmetic
}

// Bounds are what the parts of an rTask's work take at the rates of the device, in nanoseconds: arithmetic, operands from
// shared memory, and traffic with L2 and DRAM.
type Bounds struct{ Arithmetic, Shared, Traffic float64 }

// BoundsOf computes them; streamed says that constants come from DRAM.
func BoundsOf(spec *device.Spec, t *RTask, streamed bool) Bounds {
	return Bounds{
		Arithmetic: arithmetic(spec, t), Shared: t.Work.SharedBytes / (spec.SharedRate() / perSM(spec, t)),
		Traffic: traffic(spec, t, streamed),
	}
}

func (b Bounds) longest() float64 { return max(b.Arithmetic, b.Shared, b.Traffic) }

func (m *Costs) describe(c *roperator.Candidate) RTask {
	t := RTask{Kernel: NameOf(c), Work: c.Work, Tasks: c.Tasks, Threads: c.Inst.Threads(), Ring: c.Stream != nil}
	if m.streamed {
		t.Constants = float64(m.graph.ConstantBytes(c, map[int]bool{}))
	}
	return t
}

func arithmetic(spec *device.Spec, t *RTask) float64 {
	ns := t.Work.Flops / spec.FlopsRate(t.Threads)
	if t.Work.TensorFlops > 0 {
		ns += t.Work.TensorFlops / spec.TensorRate("tf32")
	}
	return ns * perSM(spec, t)
}

// shared is the time to read an rTask's operands from shared memory. It was measured to be a third of the time that
// the same bytes take from L2.
func shared(spec *device.Spec, t *RTask) float64 {
	return t.Work.ReadBytes * float64(t.Threads) / 32 / (3 * spec.Cost.L2PerSM)
}

// traffic is the time to move what the rTask reads and writes. Three things bound its bandwidth: its share of that of
// its SM, its share of that of the device, and how much its threads have under way.
func traffic(spec *device.Spec, t *RTask, streamed bool) float64 {
	cost := &spec.Cost
	running := float64(active(spec, t))
	l2 := min(cost.L2PerSM/perSM(spec, t), cost.L2Total/running)
	if cost.Latency > 0 {
		l2 = min(l2, float64(t.Threads*bytesInFlight)/cost.Latency)
	}
	constants := l2
	if streamed {
		constants = min(l2, cost.DRAM/running*reuse(spec, t))
	}
	if t.Ring {
		constants = ringOverL2 * cost.L2PerSM / perSM(spec, t)
	}
	return t.Work.ConstBytes/constants + (t.Work.ReadBytes+t.Work.WriteBytes)/l2
}

// active is how many of the rTasks run at once.
func active(spec *device.Spec, t *RTask) int { return max(1, min(t.Tasks, spec.VEUs())) }

// perSM is how many of the rTasks share a multiprocessor.
func perSM(spec *device.Spec, t *RTask) float64 {
	return max(1, float64(active(spec, t))/float64(spec.SMs))
}

// reuse is how many rTasks that run at once read the same constants, so that these come from DRAM once for all of
// them.
func reuse(spec *device.Spec, t *RTask) float64 {
	if t.Constants == 0 {
		return 1
	}
	return max(1, t.Work.ConstBytes*float64(active(spec, t))/t.Constants)
}
