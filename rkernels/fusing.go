package rkernels

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// Fusing is the part of a manifest that passes read: what may be joined with an operator, the anchor, so that its
// rKernels do it on the way. All rKernels that may carry out the operator on these element types say the same, since
// lowering and scheduling choose among them later.
type Fusing struct {
	// Types are the element types of the anchor's result for which the rest holds.
	Types []string `yaml:"types"`
	// Prologue lists unary operators that may be applied to the elements of input 0 when they are loaded. Every
	// rTask that loads an element applies them again.
	Prologue []string `yaml:"prologue,omitempty"`
	// Epilogue lists operators that may be applied to results before they are stored; Elementwise stands for all
	// elementwise ones.
	Epilogue []string `yaml:"epilogue,omitempty"`
	// Limits are the most that certain quantities of the anchor may be, such as the depth of the heads of attention.
	// The pass that makes the anchor knows the quantities by name.
	Limits map[string]int64 `yaml:"limits,omitempty"`
}

// Elementwise stands for all elementwise operators in Fusing.
const Elementwise = "elementwise"

// Computes reports whether f holds for results of element type d. For a nil f, of an operator with which nothing is
// joined, it is false.
func (f *Fusing) Computes(d ir.DType) bool { return f != nil && slices.Contains(f.Types, d.String()) }

// TakesBefore reports whether op may be applied to elements of input 0.
func (f *Fusing) TakesBefore(op string) bool { return f != nil && slices.Contains(f.Prologue, op) }

// TakesAfter reports whether op, an elementwise operator, may be applied to results.
func (f *Fusing) TakesAfter(op string) bool {
	return f != nil && (slices.Contains(f.Epilogue, Elementwise) || slices.Contains(f.Epilogue, op))
}

// Within reports whether x is within the limit of a quantity. A quantity without a limit may be anything.
func (f *Fusing) Within(quantity string, x int64) bool {
	if f == nil {
		return true
	}
	limit, ok := f.Limits[quantity]
	return !ok || x <= limit
}

// OperatorName is the name of an operator in the fuses section of manifests: the ONNX name, or that of an internal
// operator with its domain.
func OperatorName(domain, op string) string {
	if domain == "" {
		return op
	}
	return domain + "." + op
}

// Fusing is what fuses with an operator, nil where nothing does.
func (c *Catalogue) Fusing(domain, op string) *Fusing { return c.fusing[OperatorName(domain, op)] }

// joinFusing collects what the manifests say about each operator, and checks that they agree.
func joinFusing(kernels []*Kernel) (map[string]*Fusing, error) {
	out, by := map[string]*Fusing{}, map[string]string{}
	for _, k := range kernels {
		for op, f := range k.Fuses {
			if other, ok := out[op]; ok && !reflect.DeepEqual(other, f) {
				return nil, fmt.Errorf("the manifests of %s and %s differ in what fuses with %s", by[op], k.Name, op)
			}
			out[op], by[op] = f, k.Name
			if err := f.check(); err != nil {
				return nil, fmt.Errorf("the manifest of %s, fuses with %s: %v", k.Name, op, err)
			}
		}
	}
	return out, nil
}

// check finds names of element types and operators that do not exist.
func (f *Fusing) check() error {
	for _, name := range f.Types {
		if _, ok := ir.ParseDType(name); !ok {
			return fmt.Errorf("there is no element type %s", name)
		}
	}
	for _, op := range slices.Concat(f.Prologue, f.Epilogue) {
		if x := ir.LookupOp("", op); op != Elementwise && (x == nil || x.Kind != ir.KindElementwise) {
			return fmt.Errorf("%s is no elementwise operator", op)
		}
	}
	if slices.Contains(f.Prologue, Elementwise) {
		return fmt.Errorf("a prologue lists its operators")
	}
	return nil
}
