package commands

import (
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"
	"text/tabwriter"

	"github.com/rammerc/rammerc/graphopt"
	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/driver"
	"github.com/rammerc/rammerc/internal/progress"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/onnx"
)

// Inspection is what `rammerc inspect` shows.
type Inspection struct {
	Schema     string            `json:"schema"`
	Model      string            `json:"model"`
	IRVersion  int64             `json:"ir_version"`
	Opsets     map[string]int64  `json:"opsets"`
	Producer   string            `json:"producer"`
	Inputs     []PortInfo        `json:"inputs"`
	Outputs    []PortInfo        `json:"outputs"`
	Dims       []string          `json:"dims"`
	Functions  []string          `json:"functions,omitempty"`
	Operators  []OpCount         `json:"operators"`
	Nodes      int               `json:"nodes"`
	Parameters int64             `json:"parameters"`
	ConstBytes int64             `json:"constant_bytes"`
	Flops      int64             `json:"flops,omitempty"` // multiply and add count as two; 0 when dims are open
	ValueBytes int64             `json:"value_bytes,omitempty"`
	Passes     []PassCount       `json:"passes,omitempty"`
	Metadata   map[string]string `json:"metadata,omitempty"`
	After      []OpCount         `json:"operators_after,omitempty"`

	Strings  []string           `json:"strings,omitempty"` // those that the model knows; inputs and outputs hold their places
	Warnings []*diag.Diagnostic `json:"warnings,omitempty"`
}

// PortInfo describes an input or output.
type PortInfo struct {
	Name  string `json:"name"`
	DType string `json:"dtype"`
	Shape string `json:"shape"`
	// Text says that the elements are places in the list of strings, or other numbers for strings that it lacks.
	Text bool `json:"text,omitempty"`
}

// OpCount counts an operator.
type OpCount struct {
	Op    string `json:"op"`
	Count int    `json:"count"`
}

// PassCount is the size of the graph after a pass that changed it.
type PassCount struct {
	Pass  string `json:"pass"`
	Nodes int    `json:"nodes"`
}

// Inspect reads a model and says what is in it. When all dims are bound it also runs the passes.
func Inspect(job *driver.Job, o driver.ModelOptions) (r *Inspection, err error) {
	defer job.Guard(&err)
	m, err := driver.Load(job, o, false)
	if err != nil {
		return nil, err
	}
	g := m.Graph
	r = &Inspection{
		Schema: "rammerc/inspect/v1", Model: g.Name, IRVersion: m.IRVersion, Opsets: m.Opsets,
		Producer: strings.TrimSpace(m.Producer + " " + m.ProducerVersion), Dims: ir.Symbols(g),
		Inputs: portInfos(m, g.Inputs), Outputs: portInfos(m, g.Outputs), Operators: countOps(g),
		Nodes: len(g.Nodes), ConstBytes: driver.ConstBytes(g), Metadata: m.Metadata, Functions: functionNames(m),
		Warnings: m.Warnings, Strings: m.Strings,
	}
	for _, v := range g.Consts {
		if v.DType.IsFloat() {
			r.Parameters += v.Const.Len()
		}
	}
	if len(r.Dims) > 0 {
		return r, nil
	}
	r.Flops, r.ValueBytes = graphWork(g)
	err = graphopt.Run(g, graphopt.Options{After: func(s graphopt.Step) error {
		if s.Changed {
			r.Passes = append(r.Passes, PassCount{s.Pass.Name, len(s.Graph.Nodes)})
		}
		return nil
	}})
	r.After = countOps(g)
	return r, err
}

func portInfos(m *onnx.Model, vs []*ir.Value) []PortInfo {
	out := make([]PortInfo, len(vs))
	for i, v := range vs {
		out[i] = PortInfo{v.Name, v.DType.String(), v.Shape.String(), slices.Contains(m.Texts, v.Name)}
	}
	return out
}

func functionNames(m *onnx.Model) []string {
	var out []string
	for _, f := range m.Functions {
		out = append(out, f.Domain+"."+f.Name)
	}
	return out
}

// countOps counts the nodes of g by operator, the most frequent first. Fused groups count by their anchor.
func countOps(g *ir.Graph) []OpCount {
	count := map[string]int{}
	for _, n := range g.Nodes {
		name := n.Op
		if n.IsInternal("Fused") {
			name = "Fused " + n.Str("anchor", "")
		}
		count[name]++
	}
	out := make([]OpCount, 0, len(count))
	for op, n := range count {
		out = append(out, OpCount{op, n})
	}
	sort.Slice(out, func(i, j int) bool {
		if out[i].Count != out[j].Count {
			return out[i].Count > out[j].Count
		}
		return out[i].Op < out[j].Op
	})
	return out
}

// graphWork adds up the arithmetic of g's nodes and the bytes of the values they define.
func graphWork(g *ir.Graph) (flops, bytes int64) {
	for _, n := range g.Nodes {
		flops += ir.Flops(n)
		for _, v := range n.Outputs {
			if v == nil {
				continue
			}
			if dims, ok := v.Shape.Consts(); ok {
				bytes += ir.Count(dims) * int64(v.DType.Size())
			}
		}
	}
	return flops, bytes
}

// Text prints the inspection for people.
func (r *Inspection) Text(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "model\t%s\n", diag.Printable(r.Model))
	if r.IRVersion > 0 {
		fmt.Fprintf(t, "written by\t%s, IR version %d, %s\n", diag.Printable(r.Producer), r.IRVersion, opsetText(r.Opsets))
	} else {
		fmt.Fprintf(t, "text form\tof %s\n", opsetText(r.Opsets))
	}
	for _, p := range r.Inputs {
		fmt.Fprintf(t, "input\t%s\n", p.text())
	}
	for _, p := range r.Outputs {
		fmt.Fprintf(t, "output\t%s\n", p.text())
	}
	if len(r.Strings) > 0 {
		fmt.Fprintf(t, "strings\t%s\n", diag.Printable(strings.Join(r.Strings, ", ")))
	}
	if len(r.Dims) > 0 {
		fmt.Fprintf(t, "open dims\t%s  (bind with --dim NAME=N)\n", diag.Printable(strings.Join(r.Dims, ", ")))
	}
	fmt.Fprintf(t, "parameters\t%d (%s of constants)\n", r.Parameters, progress.Bytes(r.ConstBytes))
	if r.Flops > 0 {
		fmt.Fprintf(t, "arithmetic\t%s, %s of intermediate values\n", flopCount(r.Flops), progress.Bytes(r.ValueBytes))
	}
	fmt.Fprintf(t, "operators\t%d: %s\n", r.Nodes, opText(r.Operators))
	for _, p := range r.Passes {
		fmt.Fprintf(t, "after %s\t%d nodes\n", p.Pass, p.Nodes)
	}
	if len(r.After) > 0 {
		fmt.Fprintf(t, "left\t%s\n", opText(r.After))
	}
	t.Flush()
}

func (p PortInfo) text() string {
	s := fmt.Sprintf("%s  %s%s", diag.Printable(p.Name), p.DType, diag.Printable(p.Shape))
	if p.Text {
		s += "  numbers of strings"
	}
	return s
}

// flopCount prints n with a unit: "0.3 MFLOP", "11.4 GFLOP".
func flopCount(n int64) string {
	if n < 1e9 {
		return fmt.Sprintf("%.1f MFLOP", float64(n)/1e6)
	}
	return fmt.Sprintf("%.1f GFLOP", float64(n)/1e9)
}

func opsetText(opsets map[string]int64) string {
	var parts []string
	for d, v := range opsets {
		if d == "" {
			d = "ai.onnx"
		}
		parts = append(parts, fmt.Sprintf("%s %d", diag.Printable(d), v))
	}
	sort.Strings(parts)
	return strings.Join(parts, ", ")
}

func opText(ops []OpCount) string {
	parts := make([]string, len(ops))
	for i, o := range ops {
		parts[i] = fmt.Sprintf("%d %s", o.Count, diag.Printable(o.Op))
	}
	return strings.Join(parts, ", ")
}
