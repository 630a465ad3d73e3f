package commands

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/rammerc/rammerc/internal/driver"
	"github.com/rammerc/rammerc/internal/engine"
	"github.com/rammerc/rammerc/ir"
)

// suspect is a node whose result differs, in the graph that has it, with the values of that graph that are right.
type suspect struct {
	graph *ir.Graph
	node  *ir.Node
	right engine.Tensors // by name; where the part begins
}

// partName is the file of the part of a model that verify --bisect --extract writes.
const partName = "part.rir"

// partKernels is the folder beside it with the user's kernels, if the model was read with some.
const partKernels = "part.kernels"

// extract writes the part of the graph that makes the suspect's result of values that are right, as a model of its own
// with these values as its inputs, and a script that compares the engine with the evaluator on it.
func (x *suspect) extract(dir string, o *VerifyOptions) error {
	part, in := x.part()
	if o.Kernels != "" {
		findReferences(part, o.Kernels)
		if err := driver.CopyKernels(o.Kernels, filepath.Join(dir, partKernels)); err != nil {
			return err
		}
	}
	if err := driver.WriteGraph(dir, partName, part); err != nil {
		return err
	}
	files, err := engine.WriteTensors(dir, in)
	if err != nil {
		return err
	}
	words := []driver.Word{{Text: "verify"}, {Text: partName}, {Text: "--bisect"}}
	add := func(flag, value string) {
		if value != "" {
			words = append(words, driver.Word{Text: "--" + flag + "=" + value})
		}
	}
	// WriteTensors goes by the order of names.
	for i, name := range slices.Sorted(maps.Keys(in)) {
		add("input", name+"="+filepath.Base(files[i]))
	}
	if o.Kernels != "" {
		add("kernels", partKernels)
	}
	add("engine", o.Engine)
	add("target", o.Target)
	add("plan", kindOfPlan(o.Plan))
	add("policy", o.Policy)
	add("precision", o.Precision)
	if o.Limit > 0 {
		add("limit", fmt.Sprintf("%g", o.Limit))
	}
	return driver.WriteScript(dir, words)
}

// findReferences makes the functions in Python that say what the user's operators compute those of the copied folder.
func findReferences(g *ir.Graph, folder string) {
	for _, n := range g.Nodes {
		if file, ok := n.Attrs["file"]; ok && n.Domain == ir.InternalDomain && n.Op == "Reference" {
			if name, err := filepath.Rel(folder, file.S); err == nil && filepath.IsLocal(name) {
				n.Attrs["file"] = ir.StringAttr(filepath.Join(partKernels, name))
			}
		}
		for _, body := range n.Subgraphs() {
			findReferences(body, folder)
		}
	}
}

// kindOfPlan is the plan, if it is one of a kind: a plan in text form is that of the whole model.
func kindOfPlan(plan string) string {
	if driver.IsPlanText(plan) {
		return ""
	}
	return plan
}

// part is the part of the graph that makes the node's results from values that are right, and these.
func (x *suspect) part() (*ir.Graph, engine.Tensors) {
	all, copies := ir.CloneMap(x.graph)
	g := &ir.Graph{Name: x.graph.Name + " " + x.node.Name}
	in := engine.Tensors{}
	needed := map[*ir.Value]bool{}
	for _, v := range x.node.Outputs {
		if v != nil {
			g.Outputs = append(g.Outputs, copies[v])
			needed[copies[v]] = true
		}
	}
	// Nodes are in topological order, so whoever walks them backwards meets all uses of a value before its node.
	for i := len(all.Nodes) - 1; i >= 0; i-- {
		n := all.Nodes[i]
		if !slices.ContainsFunc(n.Outputs, func(v *ir.Value) bool { return v != nil && needed[v] }) {
			continue
		}
		g.Nodes = append(g.Nodes, n)
		for _, v := range operands(n) {
			right := x.right[v.Name]
			switch {
			case v.Const != nil:
				if !slices.Contains(g.Consts, v) {
					g.Consts = append(g.Consts, v)
				}
			case right != nil || v.Def == nil:
				if in[v.Name] == nil {
					v.Def, in[v.Name] = nil, right
					g.Inputs = append(g.Inputs, v)
				}
			default:
				needed[v] = true
			}
		}
	}
	slices.Reverse(g.Nodes)
	return g, in
}

// operands are the values that a node reads, those that its subgraphs capture included.
func operands(n *ir.Node) []*ir.Value {
	var out []*ir.Value
	for _, v := range n.Inputs {
		if v != nil {
			out = append(out, v)
		}
	}
	for _, a := range n.Attrs {
		if a.G != nil {
			out = append(out, ir.Captured(a.G)...)
		}
	}
	return out
}
