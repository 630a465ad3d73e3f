package trace

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Plan is the part of NAME.plan.json that a trace is joined with.
type Plan struct {
	Schema PlanVersion `json:"schema"`
	Name   string      `json:"name"`
	Model  string      `json:"model"`
	Device string      `json:"device"`
	Arch   string      `json:"arch"`
	// Precision is how products of float32 were asked to be made; empty in libraries of older versions.
	Precision string `json:"precision"`
	// PrecisionOf are nodes with another precision, as PATTERN=PRECISION.
	PrecisionOf []string `json:"precision_of"`
	// Specials are the special programs of a general one: the extents that they take, and the files of their plans.
	Specials []struct {
		Dims string `json:"dims"`
		Plan string `json:"plan"`
	} `json:"specials"`

	PredictedUS  float64 `json:"predicted_us"`
	WeightsBytes int64   `json:"weights_bytes"`
	ArenaBytes   int64   `json:"arena_bytes"`

	Ops      []Op      `json:"ops"`
	Segments []Segment `json:"segments"`
	Buffers  []Buffer  `json:"buffers"` // none in libraries of older versions
	Kernels  []Kernel  `json:"kernels"`
}

// PlanVersion is the number of the form that a plan file has: 2 of rammerc/plan/v2. In older files it is a number.
type PlanVersion int

// UnmarshalJSON reads a number or the name of a form.
func (v *PlanVersion) UnmarshalJSON(text []byte) error {
	number := strings.TrimSuffix(strings.TrimPrefix(string(text), `"rammerc/plan/v`), `"`)
	n, err := strconv.Atoi(number)
	if err != nil {
		return fmt.Errorf("the schema is %s, which is no form of plans", text)
	}
	*v = PlanVersion(n)
	return nil
}

// Buffer is a tensor that rTasks read or write.
type Buffer struct {
	Name   string `json:"name"`
	Kind   string `json:"kind"` // "arena", "input" or "output"
	DType  string `json:"dtype"`
	Bytes  int64  `json:"bytes"`
	Offset int64  `json:"offset"` // in the arena, or -1
}

// Kernel is a CUDA kernel of the program, in which instances of rKernels share registers and shared memory.
type Kernel struct {
	Name      string   `json:"name"`
	Threads   int      `json:"threads"`
	Registers int      `json:"registers"`
	PerSM     int      `json:"blocks_per_sm"`
	Instances []string `json:"instances"`
}

// Op is an rOperator.
type Op struct {
	Name     string `json:"name"`
	Kind     string `json:"kind"`
	Instance string `json:"instance"`
	RTasks   int    `json:"rtasks"`
	// Predicted is the time of one rTask that the plan was made with, 0 if there was none, and Source where it was from:
	// "measured" or "modelled".
	Predicted float64  `json:"predicted_ns"`
	Source    string   `json:"source"`
	Nodes     []string `json:"nodes"`
	// Precision is the one that the rOperator was given, Arithmetic what its rKernel multiplies on tensor cores, or
	// "scalar", and Stored the element type of its result. They are empty in libraries of older versions.
	Precision  string `json:"precision"`
	Arithmetic string `json:"arithmetic"`
	Stored     string `json:"stored"`

	Kernel  string `json:"rkernel"`
	Threads int    `json:"threads"`
	Shared  int    `json:"shared_bytes"`
	Reads   []int  `json:"reads"` // indices in Plan.Buffers
	Writes  []int  `json:"writes"`
}

// Segment is a part of the program: an rProgram, waves, or a graph of launches.
type Segment struct {
	Kind  string   `json:"kind"`
	Waves int      `json:"waves"`
	Nodes []Node   `json:"nodes"` // the launches of a parallel graph; empty for other kinds
	Steps [][]Step `json:"-"`     // [vEU][order]

	Rows     [][][]int `json:"steps"`
	Follows  [][]int   `json:"follows"`
	Counters int       `json:"counters"`
}

// Node is a launch of a parallel graph.
type Node struct {
	Stream int   `json:"stream"`
	After  []int `json:"after"` // earlier nodes of other streams that it waits for
}

// Step is an rTask and the steps whose results it needs before it starts, whether they are announced by flags, by
// counters or by the tags of the data.
type Step struct {
	Op, RTask, Wave int
	Needs           []At
}

// At is the place of a step in a segment's program.
type At struct{ VEU, Order int }

// ReadPlan reads NAME.plan.json.
func ReadPlan(data []byte) (*Plan, error) {
	var p Plan
	if err := json.Unmarshal(data, &p); err != nil {
		return nil, err
	}
	for i := range p.Segments {
		r := segmentReader{plan: &p, seg: &p.Segments[i], fixed: 4}
		if p.Schema >= 2 {
			r.fixed = 5
		}
		if err := r.read(); err != nil {
			return nil, fmt.Errorf("segment %d: %w", i, err)
		}
	}
	return &p, nil
}

// segmentReader turns the rows of numbers that describe a segment into steps. A row is a step: some numbers that every
// step has, then what it waits for in pairs.
type segmentReader struct {
	plan  *Plan
	seg   *Segment
	fixed int // how many numbers come before the waits: rOperator, rTask, wave, signal, and from schema 2 on the
	// counter that the step adds to
	adds [][]At
}

func (r *segmentReader) read() error {
	if r.seg.Counters < 0 || r.seg.Counters > 1<<24 {
		return fmt.Errorf("it has %d counters", r.seg.Counters)
	}
	for i, n := range r.seg.Nodes {
		for _, a := range n.After {
			if a < 0 || a >= i {
				return fmt.Errorf("node %d comes after node %d", i, a)
			}
		}
	}
	r.adds = make([][]At, r.seg.Counters)
	for v, rows := range r.seg.Rows {
		r.seg.Steps = append(r.seg.Steps, make([]Step, len(rows)))
		for order, n := range rows {
			if len(n) < r.fixed || (len(n)-r.fixed)%2 != 0 {
				return fmt.Errorf("step %d of vEU %d has %d numbers", order, v, len(n))
			}
			if n[0] < 0 || n[0] >= len(r.plan.Ops) {
				return fmt.Errorf("there is no rOperator %d", n[0])
			}
			r.seg.Steps[v][order] = Step{Op: n[0], RTask: n[1], Wave: n[2]}
			if r.fixed > 4 && n[4] >= 0 {
				if n[4] >= len(r.adds) {
					return fmt.Errorf("there is no counter %d", n[4])
				}
				r.adds[n[4]] = append(r.adds[n[4]], At{v, order})
			}
		}
	}
	for v, rows := range r.seg.Rows {
		for order, n := range rows {
			if err := r.needs(v, order, n[r.fixed:]); err != nil {
				return err
			}
		}
	}
	for _, n := range r.seg.Follows {
		if len(n) < 2 || len(n)%2 != 0 || !r.exists(At{n[0], n[1]}) {
			return fmt.Errorf("a follower is %v", n)
		}
		if err := r.needs(n[0], n[1], n[2:]); err != nil {
			return err
		}
	}
	r.seg.Rows, r.seg.Follows = nil, nil
	return nil
}

// needs reads the pairs of what a step waits for. A pair is (vEU, order) for a flag, or (-1-counter, number of
// additions) for a counter, which stands for all steps that add to it.
func (r *segmentReader) needs(v, order int, pairs []int) error {
	s := &r.seg.Steps[v][order]
	for ; len(pairs) > 0; pairs = pairs[2:] {
		at := At{pairs[0], pairs[1]}
		switch {
		case at.VEU < 0 && -1-at.VEU < len(r.adds):
			s.Needs = append(s.Needs, r.adds[-1-at.VEU]...)
		case r.exists(at):
			s.Needs = append(s.Needs, at)
		default:
			return fmt.Errorf("step %d of vEU %d waits for step %d of vEU %d, which does not exist", order, v,
				at.Order, at.VEU)
		}
	}
	return nil
}

func (r *segmentReader) exists(at At) bool {
	return at.VEU >= 0 && at.VEU < len(r.seg.Steps) && at.Order >= 0 && at.Order < len(r.seg.Steps[at.VEU])
}
