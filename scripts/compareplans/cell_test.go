package main

import (
	"math/rand/v2"
	"testing"

	"github.com/rammerc/rammerc/ir"
)

// Random cells are in the search space: every vertex is on a way from the input to the output, and the network of the
// cell keeps the shape of its input.
func TestRandomCells(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	irregular := 0
	for i := range 60 {
		c := randomCell(r)
		n, edges := len(c.Ops), len(c.Edges)
		if n < 1 || n > mostVertices-2 || edges > mostEdges {
			t.Fatalf("cell %d has %d operations and %d edges", i, n, edges)
		}
		if c.prune(); len(c.Ops) != n || len(c.Edges) != edges {
			t.Errorf("cell %d has vertices on no way to the output: %+v", i, c)
		}
		if c.irregular() {
			irregular++
		}
		g := c.graph()
		if err := ir.Verify(g); err != nil {
			t.Fatalf("cell %d: %v", i, err)
		}
		if in, out := g.Inputs[0].Shape, g.Outputs[0].Shape; len(out) != 4 || out[1].String() != in[1].String() ||
			out[2].String() != in[2].String() {
			t.Errorf("cell %d makes %v of %v", i, out, in)
		}
	}
	if irregular == 0 || irregular == 60 {
		t.Errorf("%d of 60 cells are irregular", irregular)
	}
}

func TestChannels(t *testing.T) {
	// Vertices 1, 2 and 3 lead to the output and share its 128 channels.
	c := cell{Ops: []string{"conv3x3", "conv3x3", "maxpool3x3"}, Edges: [][2]int{{0, 1}, {0, 2}, {0, 3}, {1, 4}, {2, 4},
		{3, 4}}}
	for v, want := range []int64{128, 43, 43, 42, 128} {
		if got := c.channels(128)[v]; got != want {
			t.Errorf("vertex %d has %d channels, want %d", v, got, want)
		}
	}
	// The first vertex leads to the second one only, and has as many channels.
	chain := cell{Ops: []string{"conv1x1", "conv3x3"}, Edges: [][2]int{{0, 1}, {1, 2}, {2, 3}}}
	if got := chain.channels(256)[1]; got != 256 {
		t.Errorf("the first of two has %d channels, want 256", got)
	}
	if !(&cell{Ops: []string{"conv1x1", "conv3x3"}, Edges: [][2]int{{0, 1}, {0, 2}, {1, 3}, {2, 3}}}).irregular() ||
		chain.irregular() {
		t.Error("a cell is irregular if operations of two kinds may run side by side")
	}
}
