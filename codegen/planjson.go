package codegen

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/precision"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/vdevice"
)

type planOp struct {
	ID        int     `json:"id"`
	Name      string  `json:"name"`
	Kind      string  `json:"kind"`
	Instance  string  `json:"instance"`
	Kernel    string  `json:"rkernel"`
	Tasks     int     `json:"rtasks"`
	Threads   int     `json:"threads"`
	Shared    int     `json:"shared_bytes"`
	Predicted float64 `json:"predicted_ns,omitempty"` // of one rTask
	Source    string  `json:"source,omitempty"`       // of that time: "measured" or "modelled"
	// Precision is the one that the rOperator's node was given, Arithmetic what the instance multiplies, as
	// rkernels.Instance.Arithmetic says, and Stored the element type of what it writes.
	Precision  string `json:"precision"`
	Arithmetic string `json:"arithmetic"`
	Stored     string `json:"stored"`

	Work  planWork `json:"work"` // of one rTask
	Nodes []string `json:"nodes"`
	// Reads and Writes are the tensors that its rTasks read and write, as indices in buffers.
	Reads  []int `json:"reads"`
	Writes []int `json:"writes"`
}

// planWork is what an rTask has to do (roperator.Work), with what else the cost model goes by: the bytes of all constants
// that the candidate refers to, and whether they come through the ring.
type planWork struct {
	Flops     float64 `json:"flops,omitempty"`
	Tensor    float64 `json:"tensor_flops,omitempty"`
	Const     float64 `json:"const_bytes,omitempty"`
	Read      float64 `json:"read_bytes,omitempty"`
	Write     float64 `json:"write_bytes,omitempty"`
	Shared    float64 `json:"shared_operand_bytes,omitempty"`
	Constants int64   `json:"constants_bytes,omitempty"`
	Ring      bool    `json:"ring,omitempty"`
}

func (l *layout) work(c *roperator.Candidate) planWork {
	w := &c.Work
	return planWork{w.Flops, w.TensorFlops, w.ConstBytes, w.ReadBytes, w.WriteBytes, w.SharedBytes,
		l.plan.Graph.ConstantBytes(c, map[int]bool{}), c.Stream != nil}
}

// PlanSchema names the form of NAME.plan.json, which the compiler writes. In older libraries it is a number.
const PlanSchema = "rammerc/plan/v2"

// PlanFile is NAME.plan.json: which rTask of which rOperator, so of which ONNX nodes, runs where and when.
type PlanFile struct {
	planHead
	Ops      []planOp      `json:"ops"`
	Buffers  []planBuffer  `json:"buffers"`
	Segments []planSegment `json:"segments"`
}

// planHead is what the plan says of the program as a whole.
type planHead struct {
	Schema  string `json:"schema"`
	Name    string `json:"name"`
	Model   string `json:"model"`
	Version string `json:"rammerc"`
	Device  string `json:"device"`
	Arch    string `json:"arch"`
	Prec    string `json:"precision"`
	// PrecisionOf are the nodes with another precision, as rules of the command line.
	PrecisionOf []string `json:"precision_of,omitempty"`
	Dims        []string `json:"dims,omitempty"`   // those whose extents only a run knows, as --dim spells them
	States      []string `json:"states,omitempty"` // that the library keeps (roperator.Port.StateText)
	// Generate says how the library produces answers; then the states are those of its steps.
	Generate *Generation `json:"generate,omitempty"`
	// Specials are the special programs of a general one, the smallest first.
	Specials []SpecialPlan `json:"specials,omitempty"`
	// Prompt is the program that takes the prompt of a library that generates.
	Prompt  *SpecialPlan `json:"prompt,omitempty"`
	Quant   string       `json:"weights,omitempty"`
	Budget  *ErrorBudget `json:"error_budget,omitempty"`
	Weights int64        `json:"weights_bytes"`
	Arena   int64        `json:"arena_bytes"`
	ROps    int          `json:"roperators"`
	RTasks  int          `json:"rtasks"`
	// Predicted is what an inference takes by the costs that the plan was made with; 0 if there were none.
	Predicted float64  `json:"predicted_us,omitempty"`
	Tried     []Try    `json:"tried,omitempty"`
	Kernels   []Kernel `json:"kernels"`
}

// planSegment is a part of the program.
type planSegment struct {
	Kind     string `json:"kind"` // "rprogram", "waves", "graph" or "parallel"
	VEUs     int    `json:"veus"`
	Waves    int    `json:"waves"`
	Counters int    `json:"counters"`
	Cluster  int    `json:"cluster"` // the vEUs of a cluster; 0: there are no clusters
	Serial   bool   `json:"serial"`  // whether launches do not overlap
	// Loop is the loop that the segment is part of, counted from 1, and Turns how often that is run; 0: it is in none.
	Loop  int   `json:"loop,omitempty"`
	Turns int64 `json:"turns,omitempty"`
	// Nodes are the launches of a parallel graph.
	Nodes []planNode `json:"nodes,omitempty"`
	// Steps has for each vEU its steps, each of which is the index of an rOperator, an rTask, a wave, whether it signals,
	// the counter that it adds to or -1, and in pairs the vEU and order of each step that it waits for. Instead of these
	// a wait for counter c is -1-c and the number of its additions.
	Steps [][][]int `json:"steps"`
	// Follows are the steps that poll tagged data: vEU, order, and in pairs those of whom they poll.
	Follows [][]int `json:"follows"`
}

// planNode is a launch of a parallel graph.
type planNode struct {
	Op     int   `json:"op"`
	Stream int   `json:"stream"`
	After  []int `json:"after"` // earlier nodes of other streams that it waits for
}

// writePlan writes NAME.plan.json, a PlanFile, step by step: the steps of large programs are many. The waves of a parallel
// graph are its nodes, whose stream s has the vEUs from s·vEUs of the device on.
func (l *layout) writePlan(w io.Writer) error {
	b := bufio.NewWriterSize(w, 1<<18)
	head, err := json.Marshal(planHead{
		Schema: PlanSchema, Name: l.opt.Name, Model: l.opt.Model, Version: l.opt.Version, Device: l.plan.Spec.Name,
		Arch: l.plan.Spec.Arch, Prec: l.opt.Precision.Program.String(), PrecisionOf: ruleTexts(l.opt.Precision),
		Dims: l.rangeTexts(), States: l.plan.Graph.StateTexts(), Generate: l.opt.Generate,
		Specials: l.describeSpecials(), Prompt: l.describePrompt(), Quant: l.opt.Weights,
		Budget: l.opt.ErrorBudget, Weights: l.weightBytes, Arena: l.plan.ArenaLen, ROps: len(l.ops), RTasks: l.steps(),
		Predicted: l.predictedUS(), Tried: l.opt.Tried, Kernels: l.describeKernels(),
	})
	if err != nil {
		return err
	}
	buffers := &planBuffers{index: map[int]int{}}
	fmt.Fprintf(b, "%s,\n \"ops\": [", diag.PrintableJSON(head[:len(head)-1]))
	if err := l.writePlanOps(b, buffers); err != nil {
		return err
	}
	fmt.Fprint(b, "],\n")
	if err := buffers.write(b); err != nil {
		return err
	}
	fmt.Fprint(b, " \"segments\": [")
	for i, seg := range l.plan.Segments {
		fmt.Fprintf(b, "%s\n  {\"kind\": %q, \"veus\": %d, \"waves\": %d, \"counters\": %d, \"cluster\": %d, \"serial\": %t,", comma(i), seg.Kind,
			len(seg.Program.Steps), seg.Program.Waves, seg.Program.Counters, seg.Program.Cluster, seg.Serial)
		if seg.Loop > 0 {
			fmt.Fprintf(b, " \"loop\": %d, \"turns\": %d,", seg.Loop, l.plan.Runs(i))
		}
		l.writeNodes(b, seg)
		fmt.Fprint(b, " \"steps\": [")
		l.writeSteps(b, seg.Program)
		fmt.Fprint(b, "],\n   \"follows\": [")
		writeFollows(b, seg.Program)
		fmt.Fprint(b, "]}")
	}
	fmt.Fprint(b, "]}\n")
	return b.Flush()
}

// writePlanOps writes the rOperators, and numbers the tensors that they read and write.
func (l *layout) writePlanOps(b *bufio.Writer, buffers *planBuffers) error {
	for i, u := range l.ops {
		predicted, source := l.taskTime(u)
		line, err := json.Marshal(planOp{u.op.ID, u.op.Name, u.op.Kind, l.instances[u.instance].label,
			u.cand.Inst.Kernel.Name, u.cand.Tasks,
			u.cand.Inst.Threads(), u.cand.Inst.Shared(), predicted, source, u.op.Precision.String(),
			u.cand.Inst.Arithmetic(),
			u.cand.Writes[0].View.DType().String(), l.work(u.cand), originNames(u.op.Origins),
			buffers.of(l, u.cand.Reads), buffers.of(l, u.cand.Writes)})
		if err != nil {
			return err
		}
		fmt.Fprintf(b, "%s\n  %s", comma(i), diag.PrintableJSON(line))
	}
	return nil
}

// writeNodes writes what the launches of a parallel graph are and wait for.
func (l *layout) writeNodes(b *bufio.Writer, seg vdevice.Segment) {
	if seg.Kind != vdevice.Parallel {
		return
	}
	ops := make([]int, len(seg.Program.Nodes))
	for _, steps := range seg.Program.Steps {
		for _, s := range steps {
			ops[s.Wave] = l.opIndex[s.Task.Op]
		}
	}
	fmt.Fprint(b, " \"nodes\": [")
	for w, n := range seg.Program.Nodes {
		fmt.Fprintf(b, "%s\n   {\"op\": %d, \"stream\": %d, \"after\": [", comma(w), ops[w], n.Stream)
		for i, x := range n.After {
			fmt.Fprintf(b, "%s%d", comma(i), x)
		}
		fmt.Fprint(b, "]}")
	}
	fmt.Fprint(b, "],")
}

// predictedUS is the sum of what the segments take.
func (l *layout) predictedUS() float64 {
	sum := 0.0
	for i := range l.plan.Segments {
		sum += l.predicted(i)
	}
	return math.Round(sum) / 1000
}

// taskTime is the time of one of u's rTasks that the plan was made with, in nanoseconds, and where it is from; 0 when
// no costs were given.
func (l *layout) taskTime(u usedOp) (ns float64, source string) {
	if l.opt.Cost == nil {
		return 0, ""
	}
	ns, measured := l.opt.Cost(u.cand)
	return math.Round(10*ns) / 10, map[bool]string{true: "measured", false: "modelled"}[measured]
}

func (l *layout) writeSteps(b *bufio.Writer, p *vdevice.Program) {
	additions := map[vdevice.EdgeKind][][]vdevice.At{}
	for v, steps := range p.Steps {
		fmt.Fprintf(b, "%s\n   [", comma(v))
		for i := range steps {
			s := &steps[i]
			signal, adds := 0, -1
			for _, e := range s.Out {
				if first := p.FirstMeeting(e.Kind); first >= 0 {
					adds = first + int(e.Number())
				} else {
					signal = 1
				}
			}
			fmt.Fprintf(b, "%s[%d,%d,%d,%d,%d", comma(i), l.opIndex[s.Task.Op], s.Task.Index, s.Wave, signal, adds)
			for _, e := range s.In {
				first := p.FirstMeeting(e.Kind)
				switch {
				case !e.Kind.Polled():
				case first < 0:
					fmt.Fprintf(b, ",%d,%d", e.VEU, e.Order)
				default:
					if additions[e.Kind] == nil {
						additions[e.Kind] = p.Contributors(e.Kind)
					}
					fmt.Fprintf(b, ",%d,%d", -1-first-int(e.Number()), len(additions[e.Kind][e.Number()]))
				}
			}
			fmt.Fprint(b, "]")
		}
		fmt.Fprint(b, "]")
	}
}

// writeFollows lists the steps that poll data of others: vEU, order, vEU and order of each of those.
func writeFollows(b *bufio.Writer, p *vdevice.Program) {
	n := 0
	for v, steps := range p.Steps {
		for order := range steps {
			begun := false
			for _, e := range steps[order].In {
				if e.Kind.Polled() {
					continue
				}
				if !begun {
					fmt.Fprintf(b, "%s[%d,%d", comma(n), v, order)
					begun = true
					n++
				}
				fmt.Fprintf(b, ",%d,%d", e.VEU, e.Order)
			}
			if begun {
				fmt.Fprint(b, "]")
			}
		}
	}
}

func ruleTexts(c precision.Choice) []string {
	var out []string
	for _, r := range c.Rules {
		out = append(out, r.String())
	}
	return out
}

func comma(i int) string {
	if i == 0 {
		return ""
	}
	return ","
}

func originNames(origins []ir.Origin) []string {
	names := make([]string, len(origins))
	for i, o := range origins {
		names[i] = o.Name
	}
	return names
}
