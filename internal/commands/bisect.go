package commands

import (
	"fmt"
	"maps"
	"path/filepath"

	"github.com/rammerc/rammerc/internal/driver"
	"github.com/rammerc/rammerc/internal/engine"
	"github.com/rammerc/rammerc/internal/tolerance"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/eval"
	"github.com/rammerc/rammerc/precision"
)

// NodeDiff is the first node whose result differs from the reference.
type NodeDiff struct {
	Value   string               `json:"value"`
	Op      string               `json:"op"`
	Origins []ir.Origin          `json:"origins"`
	Stage   string               `json:"stage"` // "optimise": a pass changed the result; else the engine
	Diff    tolerance.Difference `json:"difference"`
	// Extracted is the folder with the part of the model that makes the node's result, "" without --extract.
	Extracted string `json:"extracted,omitempty"`
}

func (d *NodeDiff) String() string {
	text := fmt.Sprintf("%s of %s, in %s: rel L2 %.3g, max abs %.3g",
		d.Value, producer(d.Op, d.Origins), d.Stage, d.Diff.RelL2, d.Diff.MaxAbs)
	if d.Extracted != "" {
		text += "; " + filepath.Join(d.Extracted, partName) + " is that part, and repro.sh beside it compares it"
	}
	return text
}

// bisect finds the first node whose result differs by more than the limit, which is the relative L2 error relL2 or,
// where that is 0, the one of package tolerance. It looks in two places. First it evaluates the graph before and after
// the passes and compares values that have kept their names, which finds a wrong pass. Then it compiles the optimised
// graph with every value as an output and compares the engine's values with the evaluator's, in the order of nodes.
// The result is nil if no node differs by itself, so that small differences must add up.
func bisect(job *driver.Job, o SubjectOptions, in engine.Tensors, relL2 float64) (*NodeDiff, *suspect, error) {
	imported, err := driver.Load(&driver.Job{}, o.ModelOptions, true)
	if err != nil {
		return nil, nil, err
	}
	want := observe(imported.Graph, in)
	m, err := driver.Load(&driver.Job{}, o.ModelOptions, true)
	if err != nil {
		return nil, nil, err
	}
	spec, err := o.Spec(&driver.Job{})
	if err != nil {
		return nil, nil, err
	}
	g := m.Graph
	if err := driver.Optimise(&driver.Job{}, g, nil, spec, driver.CompileOptions{}); err != nil {
		return nil, nil, err
	}
	after := observe(g, in)
	limit := func(d ir.DType) tolerance.Limit { return engine.LimitFor(d, precision.FP32, relL2) }
	for _, n := range g.Nodes {
		if d := firstDiff(n, after, want, limit, "optimise"); d != nil {
			return d, &suspect{imported.Graph, producerOf(imported.Graph, d.Value), both(want, after)}, nil
		}
	}
	exposeAll(g)
	s, err := openGraph(job, o, g)
	if err != nil {
		return nil, nil, err
	}
	defer s.close()
	limit = func(d ir.DType) tolerance.Limit { return engine.LimitFor(d, s.precision, relL2) }
	got, err := s.engine.Run(in)
	if err != nil {
		return nil, nil, err
	}
	for _, n := range g.Nodes {
		if d := firstDiff(n, got, after, limit, s.engine.Name()); d != nil {
			return d, &suspect{g, n, after}, nil
		}
	}
	return nil, nil, nil
}

// producerOf is the node of g that makes a value.
func producerOf(g *ir.Graph, value string) *ir.Node {
	for _, n := range g.Nodes {
		for _, v := range n.Outputs {
			if v != nil && v.Name == value {
				return n
			}
		}
	}
	panic("BUG: a value that was observed has no node")
}

// both are the values of a that b has, too.
func both(a, b engine.Tensors) engine.Tensors {
	out := engine.Tensors{}
	for name, t := range a {
		if b[name] != nil {
			out[name] = t
		}
	}
	return out
}

// observe evaluates g and keeps every value by name, those of inputs, too.
func observe(g *ir.Graph, in engine.Tensors) engine.Tensors {
	all := maps.Clone(in)
	// The comparison that led here has reported an error of the evaluator already. The values before it still help.
	_, _ = eval.Run(g, in, eval.Options{Observe: func(v *ir.Value, t *ir.Tensor) { all[v.Name] = t }})
	return all
}

func firstDiff(n *ir.Node, got, want engine.Tensors, limit func(ir.DType) tolerance.Limit, stage string) *NodeDiff {
	for _, v := range n.Outputs {
		if v == nil || got[v.Name] == nil || want[v.Name] == nil {
			continue
		}
		d := tolerance.Compare(v.Name, got[v.Name], want[v.Name])
		if !d.Within(limit(v.DType)) {
			return &NodeDiff{Value: v.Name, Op: n.Op, Origins: n.Origins, Stage: stage, Diff: d}
		}
	}
	return nil
}

// exposeAll makes every computed value an output.
func exposeAll(g *ir.Graph) {
	have := map[*ir.Value]bool{}
	for _, v := range g.Outputs {
		have[v] = true
	}
	for _, n := range g.Nodes {
		for _, v := range n.Outputs {
			if v != nil && !have[v] && v.DType != ir.String {
				g.Outputs = append(g.Outputs, v)
			}
		}
	}
}
