package onnx

import (
	"fmt"
	"strings"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/ir"
)

// finish infers the types of the whole graph, reports the errors of inference at the nodes of the model, and compares
// the graph's outputs with their declarations, which it notes where inference knows less.
func (im *importer) finish() {
	g := im.model.Graph
	found := ir.InferShapes(g)
	for _, d := range found.Items {
		im.add(im.locate(d))
	}
	if im.diags.Errors() == 0 {
		for _, d := range im.later {
			im.add(d)
		}
	}
	if im.diags.Errors() > 0 {
		return
	}
	if im.declareOutputs() {
		ir.InferShapes(g)
	}
	for _, v := range g.Outputs {
		if v.DType == ir.Invalid {
			im.portf("unknown-type", fmt.Sprintf("output %q", v.Name), "", "its element type cannot be inferred")
		}
		im.checkDeclared(v)
	}
	im.cleanPorts(g.Inputs, "input")
	im.cleanPorts(g.Outputs, "output")
}

// cleanPorts takes out of the names of inputs or outputs what a C string cannot hold or Python cannot decode, so that a
// library calls them as the graph does. Names that are the same then are refused.
func (im *importer) cleanPorts(vs []*ir.Value, what string) {
	names := map[string]bool{}
	for _, v := range vs {
		names[v.Name] = true
	}
	for _, v := range vs {
		clean := strings.ReplaceAll(strings.ToValidUTF8(v.Name, "\ufffd"), "\x00", "\ufffd")
		if clean == v.Name {
			continue
		}
		if names[clean] {
			im.portf("bad-name", fmt.Sprintf("%s %q", what, v.Name), "",
				"becomes %q without bytes that are no text, and another %s is called so", clean, what)
		}
		names[clean], v.Name = true, clean
	}
}

// locate turns a diagnostic about a node of the graph into one about the ONNX node of which it was made.
func (im *importer) locate(d *diag.Diagnostic) *diag.Diagnostic {
	p := im.places[d.Node]
	if p == nil {
		return d
	}
	c := *d
	if p.op != d.Op {
		c.Message += fmt.Sprintf(" (rewritten as %s)", d.Op)
	}
	c.Op, c.Domain, c.Opset = p.op, p.domain, int(p.opset)
	if c.ID == "bad-type" && c.DType != "" && c.Help == "" {
		c.Help = "put a Cast in front of it"
	}
	return &c
}

// checkDeclared warns about an output whose declared type contradicts the inferred one.
func (im *importer) checkDeclared(v *ir.Value) {
	want, ok := im.declared[v]
	if !ok {
		return
	}
	port := fmt.Sprintf("output %q", v.Name)
	warn := func(format string, args ...any) {
		im.add(&diag.Diagnostic{
			Severity: diag.Warning, ID: "declared-type", Port: port, Message: fmt.Sprintf(format, args...),
			Help: "the declaration is ignored",
		})
	}
	if want.dtype != ir.Invalid && v.DType != ir.Invalid && want.dtype != v.DType {
		warn("the model declares %v, but the node computes %v", want.dtype, v.DType)
	}
	if want.shape == nil || v.Shape == nil {
		return
	}
	clash := len(want.shape) != len(v.Shape)
	for i := 0; !clash && i < len(v.Shape); i++ {
		a, aok := want.shape[i].Const()
		b, bok := v.Shape[i].Const()
		clash = aok && bok && a != b
	}
	if clash {
		warn("the model declares the shape %v, but the node computes %v", want.shape, v.Shape)
	}
}
