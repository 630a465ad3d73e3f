package graphopt

import (
	"testing"

	"github.com/rammerc/rammerc/ir"
)

// TestNormBiasHasItsShape: a sum behind a LayerNormalization becomes its bias if the summand has the shape of the
// normalised axes. One that is broadcast stays a sum.
func TestNormBiasHasItsShape(t *testing.T) {
	for shape, sums := range map[string]int{"4": 0, "1": 1, "3,1": 1, "1,4": 1} {
		g, err := ir.ParseText("norm.rir", []byte(`graph "g" (%x: float32[2,3,4], %b: float32[`+shape+`]) {
  %s = const float32[4] {1, 2, 3, 4}
  %n: float32[2,3,4] = LayerNormalization(%x, %s) {axis = 2}
  %y: float32[2,3,4] = Add(%n, %b)
  return %y
}
`), ir.ParseOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := Run(g, Options{Check: true}); err != nil {
			t.Errorf("[%s]: %v", shape, err)
			continue
		}
		adds := 0
		ir.EachGraph(g, func(g *ir.Graph) {
			for _, n := range g.Nodes {
				if n.Is("Add") {
					adds++
				}
			}
		})
		if adds != sums {
			t.Errorf("[%s]: %d sums are left, want %d", shape, adds, sums)
		}
	}
}
