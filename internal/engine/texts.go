package engine

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// WithTexts notes which ports are strings, by the names of texts, and the list of these.
func WithTexts(ports []Port, texts []string, list *ir.Strings) {
	for i := range ports {
		if slices.Contains(texts, ports[i].Name) {
			ports[i].Strings = list
		}
	}
}

// numbered is a tensor of strings as their numbers; other tensors are as they are.
func (p *Port) numbered(t *ir.Tensor) *ir.Tensor {
	if t.DType != ir.String || p.Strings == nil {
		return t
	}
	return p.Strings.Tensor(ir.Slice[string](t), t.Dims...)
}

// Texts are the strings of a port's numbers; "" stands for those that the model does not know.
func (p *Port) Texts(t *ir.Tensor) *ir.Tensor {
	out := ir.NewTensor(ir.String, t.Dims...)
	for i, n := range ir.Slice[int64](t) {
		ir.Slice[string](out)[i], _ = p.Strings.Text(n)
	}
	return out
}
