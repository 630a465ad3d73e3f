package rkernels

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rammerc/rammerc/ir"
)

func builtIn(t *testing.T) *Catalogue {
	t.Helper()
	c, err := BuiltIn()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// What manifests say fuses with an operator is what their kernels have template parameters for.
func TestFusingHasParameters(t *testing.T) {
	for _, k := range builtIn(t).kernels {
		has := func(name string) bool {
			return slices.ContainsFunc(k.Params, func(p Param) bool { return p.Name == name && p.Kind == ParamFunctor })
		}
		for op, f := range k.Fuses {
			if len(f.Epilogue) > 0 && !has("Epi") || len(f.Prologue) > 0 && !has("Pro") {
				t.Errorf("%s: %s takes %v before it and %v after it, but there is no functor for that", k.Name, op,
					f.Prologue, f.Epilogue)
			}
		}
	}
}

// The heads that attention is bound to are those that the passes may make.
func TestAttentionLimits(t *testing.T) {
	c := builtIn(t)
	k, err := c.Find("attention")
	if err != nil {
		t.Fatal(err)
	}
	f := c.Fusing(ir.InternalDomain, "Attention")
	for _, p := range k.Params {
		if widest := slices.Max(append([]int64{0}, p.Values...)); p.Name == "DM" &&
			(f.Limits["depth"] != widest || f.Limits["columns"] != widest) {
			t.Errorf("limits %v, heads of up to %d", f.Limits, widest)
		}
	}
	if !f.Within("depth", 256) || f.Within("depth", 257) || !f.Within("another", 1<<40) || !f.Computes(ir.Float16) ||
		f.Computes(ir.Float64) {
		t.Errorf("attention: %+v", f)
	}
	if c.Fusing("", "Softmax").TakesAfter("Relu") {
		t.Error("an operator that no manifest mentions takes an epilogue")
	}
}

func TestFusingIsChecked(t *testing.T) {
	manifest := func(name, fuses string) string {
		return "name: " + name + "\nfamily: f\ntype: T\ndoc: d\nserves: [x]\nthreads: \"1\"\nshared: \"0\"\nregisters: \"1\"\nfuses: {Conv: {" + fuses + "}}\n"
	}
	for _, c := range []struct{ first, second, want string }{
		{"types: [float32], epilogue: [elementwise]", "types: [float32], epilogue: [elementwise]", ""},
		{"types: [float32], epilogue: [elementwise]", "types: [float32], epilogue: [Relu]",
			"the manifests of a and b differ in what fuses with Conv"},
		{"types: [float33]", "types: [float33]", "there is no element type float33"},
		{"types: [float32], epilogue: [MatMul]", "types: [float32], epilogue: [MatMul]",
			"MatMul is no elementwise operator"},
		{"types: [float32], prologue: [elementwise]", "types: [float32], prologue: [elementwise]",
			"a prologue lists its operators"},
	} {
		_, err := NewCatalogue(fstest.MapFS{
			"a.yaml": {Data: []byte(manifest("a", c.first))}, "a.cuh": {},
			"b.yaml": {Data: []byte(manifest("b", c.second))}, "b.cuh": {},
		})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s and %s: %v, want %q", c.first, c.second, err, c.want)
		}
	}
}
