// Package model estimates what rTasks cost from the work their candidates state and the figures of a
// device file. It needs no device and gives the same numbers everywhere.
package model

import (
	"sync"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/roperator"
)

// Costs models rTasks on one device. It implements profiler.Costs.
type Costs struct {
	spec     *device.Spec
	graph    *roperator.Graph
	streamed bool     // the weights do not stay in L2 from one inference to the next
	threads  sync.Map // *rkernels.Instance → int
}

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
		total += m.constants(op.Candidates[0], seen)
	}
	m.streamed = float64(total) > l2Share*float64(spec.L2Bytes)
	return m
}

// Streamed reports whether the graph's weights come from DRAM in each inference, because they do not stay in L2.
func (m *Costs) Streamed() bool { return m.streamed }

// bytesInFlight is how many bytes one thread has under way from memory at a time.
const bytesInFlight = 128

// ringOverL2 is how much faster an rTask reads streamed weights, which are in shared memory already, than weights in
// L2. It is not more because between units of weights there are sums over lanes.
const ringOverL2 = 2

// TaskTime adds the latency of the first load and the last store to the longest of three times that overlap:
// arithmetic, operands from shared memory, and traffic with memory.
func (m *Costs) TaskTime(c *roperator.Candidate) float64 {
	threads := m.instThreads(c.Inst)
	if len(c.Exports) > 0 {
		// The weights are on chip, and the operands in shared memory, when the rTask starts.
		return max(m.arithmetic(c, threads), m.shared(c)) + m.spec.Cost.Latency/4
	}
	operands := c.Work.SharedBytes / (m.spec.SharedRate() / m.perSM(c))
	return m.spec.Cost.Latency + max(m.arithmetic(c, threads), operands, m.traffic(c, threads))
}

func (m *Costs) arithmetic(c *roperator.Candidate, threads int) float64 {
	t := c.Work.Flops / m.spec.FlopsRate(threads)
	if c.Work.TensorFlops > 0 {
		t += c.Work.TensorFlops / m.spec.TensorRate("tf32")
	}
	return t * m.perSM(c)
}

// shared is the time to read an rTask's operands from shared memory. It was measured to be a third of the time that
// the same bytes take from L2.
func (m *Costs) shared(c *roperator.Candidate) float64 {
	return c.Work.ReadBytes * float64(m.instThreads(c.Inst)) / 32 / (3 * m.spec.Cost.L2PerSM)
}

// traffic is the time to move what the rTask reads and writes. Three things bound its bandwidth: its share of that of
// its SM, its share of that of the device, and how much its threads have under way.
func (m *Costs) traffic(c *roperator.Candidate, threads int) float64 {
	cost := &m.spec.Cost
	active := float64(m.active(c))
	l2 := min(cost.L2PerSM/m.perSM(c), cost.L2Total/active)
	if cost.Latency > 0 {
		l2 = min(l2, float64(threads*bytesInFlight)/cost.Latency)
	}
	constants := l2
	if m.streamed {
		constants = min(l2, cost.DRAM/active*m.reuse(c))
	}
	if c.Stream != nil {
		constants = ringOverL2 * cost.L2PerSM / m.perSM(c)
	}
	return c.Work.ConstBytes/constants + (c.Work.ReadBytes+c.Work.WriteBytes)/l2
}

// active is how many of c's rTasks run at once.
func (m *Costs) active(c *roperator.Candidate) int { return max(1, min(c.Tasks, m.spec.VEUs())) }

// perSM is how many of c's rTasks share a multiprocessor.
func (m *Costs) perSM(c *roperator.Candidate) float64 {
	return max(1, float64(m.active(c))/float64(m.spec.SMs))
}

// reuse is how many rTasks that run at once read the same constants, so that these come from DRAM once for all of
// them.
func (m *Costs) reuse(c *roperator.Candidate) float64 {
	held := m.constants(c, map[int]bool{})
	if held == 0 {
		return 1
	}
	return max(1, c.Work.ConstBytes*float64(m.active(c))/float64(held))
}

// constants is the size of the constant buffers that c's arguments refer to and that are not in seen, and adds them
// to seen.
func (m *Costs) constants(c *roperator.Candidate, seen map[int]bool) int64 {
	sum := int64(0)
	for _, f := range c.Args {
		sum += m.constantsOf(f.Value, seen)
	}
	return sum
}

func (m *Costs) constantsOf(v rkernels.ArgValue, seen map[int]bool) int64 {
	sum := int64(0)
	switch v := v.(type) {
	case rkernels.Ref:
		if v.Buffer < 0 || v.Buffer >= len(m.graph.Buffers) || seen[v.Buffer] {
			return 0
		}
		if b := m.graph.Buffers[v.Buffer]; b.Kind == roperator.Const {
			seen[v.Buffer] = true
			return b.Bytes()
		}
	case rkernels.List:
		for _, x := range v {
			sum += m.constantsOf(x, seen)
		}
	case rkernels.Struct:
		for _, x := range v {
			sum += m.constantsOf(x.Value, seen)
		}
	}
	return sum
}

// instThreads remembers the result of the formula for threads, which is asked for often.
func (m *Costs) instThreads(in *rkernels.Instance) int {
	if n, ok := m.threads.Load(in); ok {
		return n.(int)
	}
	n := in.Threads()
	m.threads.Store(in, n)
	return n
}
