package graphopt

import (
	"slices"
	"testing"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/eval"
)

// A Scan that is written out takes each input in its own direction.
func TestScanDirections(t *testing.T) {
	for direction, want := range map[string][]float32{
		"0": {11, 22, 33}, "1": {31, 22, 13},
	} {
		g, err := ir.ParseText("scan.rir", []byte(`graph "g" (%x: float32[3], %z: float32[3]) {
  %y: float32[3] = Scan(%x, %z) {body = graph "b" (%a: float32[], %b: float32[]) {
    %s: float32[] = Add(%a, %b)
    return %s
  }, num_scan_inputs = 2, scan_input_directions = [`+direction+`, 0]}
  return %y
}
`), ir.ParseOptions{})
		if err != nil {
			t.Fatal(err)
		}
		in := map[string]*ir.Tensor{
			"x": ir.FromSlice(ir.Float32, []float32{10, 20, 30}, 3), "z": ir.FromSlice(ir.Float32, []float32{1, 2, 3}, 3),
		}
		if err := Run(g, Options{}); err != nil {
			t.Fatal(err)
		}
		for _, n := range g.Nodes {
			if n.Is("Scan") {
				t.Fatal("the Scan is still there")
			}
		}
		out, err := eval.Run(g, in, eval.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := ir.Slice[float32](out["y"]); !slices.Equal(got, want) {
			t.Errorf("direction %s: %v, want %v", direction, got, want)
		}
	}
}
