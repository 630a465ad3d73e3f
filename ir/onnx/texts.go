package onnx

import (
	"fmt"
	"slices"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/ir"
)

// Strings have no arithmetic: models compare them with constants, move them, and give them as labels. So a string is its
// number in a list, Model.Strings, and a tensor of strings one of int64. Inputs that are strings take such numbers, any
// other number for a string that is not in the list, and outputs give them. Operators that make new strings run only on
// the evaluator, which adds these to the list (ir.TextOp). Operators that read numbers out of strings are refused.

// texts knows which tensors and values of a graph are numbers of strings.
type texts struct {
	*ir.Strings
	tensors map[*ir.Tensor]bool
	values  map[*ir.Value]bool
}

func newTexts() *texts {
	return &texts{Strings: ir.NewStrings(nil), tensors: map[*ir.Tensor]bool{}, values: map[*ir.Value]bool{}}
}

// numbered is a tensor of strings as one of their numbers.
func (x *texts) numbered(list []string, dims ...int64) *ir.Tensor {
	t := x.Tensor(list, dims...)
	x.tensors[t] = true
	return t
}

// isText reports whether v holds numbers of strings.
func (x *texts) isText(v *ir.Value) bool {
	return v != nil && (x.values[v] || v.Const != nil && x.tensors[v.Const])
}

// textPorts are the inputs of operators whose elements the outputs have; of the standard operators that take strings,
// the others compare them or ask for their shape.
var textPorts = map[string][]int{
	"Gather": {0}, "Reshape": {0}, "Squeeze": {0}, "Unsqueeze": {0}, "Identity": {0}, "Transpose": {0}, "Slice": {0},
	"Expand": {0}, "Tile": {0}, "Flatten": {0}, "Split": {0}, "Where": {1, 2}, "Concat": nil, "Equal": {}, "Shape": {},
	"Size": {}, "TfIdfVectorizer": {}, "StringNormalizer": {0}, "StringConcat": nil, "StringSplit": {0},
	"RegexFullMatch": {},
}

// textRules are the operators of ai.onnx.ml whose rules know strings.
var textRules = []string{"ArrayFeatureExtractor", "LabelEncoder", "OneHotEncoder", "ZipMap"}

// follow marks the outputs of a node that moves strings.
func (x *texts) follow(n *ir.Node) {
	ports, moves := textPorts[n.Op]
	if !moves || n.Domain != "" {
		return
	}
	for i, v := range n.Inputs {
		if x.isText(v) && (ports == nil || slices.Contains(ports, i)) {
			for _, out := range n.Outputs {
				x.values[out] = true
			}
			if n.Op == "StringSplit" && len(n.Outputs) > 1 {
				delete(x.values, n.Outputs[1]) // numbers of parts
			}
			return
		}
	}
}

// takesStrings reports an error if a node has an input of strings and its operator cannot take them as numbers.
func (s *scope) takesStrings(p *place, n *ir.Node) bool {
	if p.domain == "" && ir.TextOp(n.Op) {
		return s.needsStrings(p, n)
	}
	_, moves := textPorts[n.Op]
	if moves && p.domain == "" || p.domain == mlDomain && slices.Contains(textRules, n.Op) {
		return true
	}
	for i, v := range n.Inputs {
		if s.im.texts.isText(v) {
			p.report("unsupported-dtype", fmt.Sprintf("input %d", i), "leave out what prepares strings, and give the result",
				errDType{"string"}.Error())
			return false
		}
	}
	return true
}

// needsStrings reports an error if a node that computes with strings has an input of something else.
func (s *scope) needsStrings(p *place, n *ir.Node) bool {
	for i, v := range n.Inputs {
		if !s.im.texts.isText(v) && !s.im.poisoned[v] {
			p.report("bad-type", fmt.Sprintf("input %d", i), "", "it is not known to be strings, which the operator needs")
			return false
		}
	}
	return true
}

// checkBody refuses a body of a control-flow operator that gives strings, since what the operator gives is not followed.
func (s *scope) checkBody(p *place, g *ir.Graph) bool {
	for _, v := range g.Outputs {
		if s.im.texts.isText(v) {
			s.im.add(&diag.Diagnostic{ID: "unsupported-dtype", Node: p.name, Op: p.op, Port: fmt.Sprintf("output %q", v.Name),
				Message: "strings as results of branches and loops are not supported"})
			return false
		}
	}
	return true
}

// namePorts tells which inputs and outputs of the model are numbers of strings.
func (im *importer) namePorts() {
	m := im.model
	m.Strings = im.texts.List()
	for _, v := range slices.Concat(m.Graph.Inputs, m.Graph.Outputs) {
		if im.texts.isText(v) && !slices.Contains(m.Texts, v.Name) {
			m.Texts = append(m.Texts, v.Name)
		}
	}
}
