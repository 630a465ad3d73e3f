package driver

import (
	"strings"
	"testing"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/ir"
)

// Models that the device's memory cannot hold are refused before anything counts their elements.
func TestFitsMemory(t *testing.T) {
	spec, err := device.Find("emu4")
	if err != nil {
		t.Fatal(err)
	}
	half := spec.Memory / 2
	port := func(name string, d ir.DType, dims ...int64) *ir.Value {
		return &ir.Value{Name: name, DType: d, Shape: ir.Dims(dims...)}
	}
	inner := func(v *ir.Value) *ir.Graph {
		x, y := port("x", ir.Uint8, 1), port("y", ir.Uint8, 1)
		n := &ir.Node{Op: "Expand", Inputs: []*ir.Value{x}, Outputs: []*ir.Value{v}}
		m := &ir.Node{Op: "ReduceMax", Inputs: []*ir.Value{v}, Outputs: []*ir.Value{y}}
		v.Def, y.Def = n, m
		return &ir.Graph{Inputs: []*ir.Value{x}, Outputs: []*ir.Value{y}, Nodes: []*ir.Node{n, m}}
	}
	for _, c := range []struct {
		what string
		g    *ir.Graph
		want string
	}{
		{"what just fits", &ir.Graph{Inputs: []*ir.Value{port("x", ir.Uint8, half)},
			Outputs: []*ir.Value{port("y", ir.Uint8, half)}}, ""},
		{"one byte more", &ir.Graph{Inputs: []*ir.Value{port("x", ir.Uint8, half+1)},
			Outputs: []*ir.Value{port("y", ir.Uint8, half)}}, "inputs, outputs and constants take"},
		{"a product that overflows", &ir.Graph{Inputs: []*ir.Value{port("x", ir.Float32, 1<<40, 1<<40)}}, "more than 8 EiB"},
		{"an empty axis beside a large one", &ir.Graph{Inputs: []*ir.Value{port("x", ir.Float32, 0, 1<<50)}}, "take"},
		{"a value inside that fits", inner(port("v", ir.Uint8, spec.Memory)), ""},
		{"a value inside", inner(port("v", ir.Uint8, spec.Memory+1)), "output 0"},
		{"strings", &ir.Graph{Inputs: []*ir.Value{port("x", ir.String, 1)}}, "strings have no compiled form"},
	} {
		err := fitsMemory(c.g, spec)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: got %v, want %q", c.what, err, c.want)
		}
	}
}
