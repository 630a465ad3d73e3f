package schedule

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/rammerc/rammerc/vdevice/vdevicetest"
)

func TestMatchedStreams(t *testing.T) {
	for _, c := range []struct {
		name  string
		preds [][]int32
		want  string
	}{
		{"a chain is one stream", [][]int32{nil, {0}, {1}}, "[0 0 0]"},
		{"one branch goes on", [][]int32{nil, {0}, {0}, {1, 2}}, "[0 0 1 0]"},
		{"what follows from others does not count", [][]int32{nil, {0}, {0, 1}}, "[0 0 0]"},
		// The greedy choice 0–2 would leave 1 and 3 without partners.
		{"matchings are largest", [][]int32{nil, nil, {0, 1}, {0}}, "[0 1 1 0]"},
	} {
		if got := fmt.Sprint(matchedStreams(c.preds)); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// A maximum matching is as large as the one that trying all subsets finds.
func TestMaximumMatching(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 7))
		n := r.IntN(7) + 1
		edges := make([][]int32, n)
		for s := range edges {
			for u := range int32(n) {
				if r.IntN(3) == 0 {
					edges[s] = append(edges[s], u)
				}
			}
		}
		size, taken := 0, map[int32]bool{}
		for u, s := range maximumMatching(edges) {
			if s < 0 {
				continue
			}
			if size++; taken[s] {
				t.Fatalf("seed %d: source %d has two targets", seed, s)
			}
			taken[s] = true
			legal := false
			for _, x := range edges[s] {
				legal = legal || int(x) == u
			}
			if !legal {
				t.Fatalf("seed %d: there is no edge from %d to %d", seed, s, u)
			}
		}
		if want := largest(edges, 0, map[int32]bool{}); size != want {
			t.Errorf("seed %d: %d pairs of %v, want %d", seed, size, edges, want)
		}
	}
}

func largest(edges [][]int32, s int, taken map[int32]bool) int {
	if s == len(edges) {
		return 0
	}
	best := largest(edges, s+1, taken)
	for _, u := range edges[s] {
		if !taken[u] {
			taken[u] = true
			best = max(best, 1+largest(edges, s+1, taken))
			delete(taken, u)
		}
	}
	return best
}

// Streams order nothing that the graph does not order.
func TestMatchedStreamsOrderNothing(t *testing.T) {
	for seed := range uint64(40) {
		ops := newOpGraph(vdevicetest.Random(seed, 30))
		streams, before := matchedStreams(ops.preds), newReach(ops.preds)
		last := map[int32]int32{}
		for v, s := range streams {
			if x, ok := last[s]; ok && !before.has(int32(v), x) {
				t.Fatalf("seed %d: rOperators %d and %d are on stream %d, but nothing else orders them", seed, x, v, s)
			}
			last[s] = int32(v)
		}
	}
}
