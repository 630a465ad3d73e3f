package vdevicetest

import (
	"math/rand/v2"

	"github.com/rammerc/rammerc/roperator"
)

// Random makes a graph with the given number of rOperators. It contains what makes dependencies between rTasks hard to
// get right: tiles of several sizes, halos, reads of whole values, several values in slices of one buffer, values that
// are overwritten, and rOperators with several candidates. The same seed gives the same graph.
func Random(seed uint64, ops int) *roperator.Graph {
	r := &randomizer{Rand: rand.New(rand.NewPCG(seed, 1)), Maker: New("random")}
	r.values = append(r.values, r.Buffer(roperator.Input, r.dims()...))
	for i := range ops {
		r.op(i == ops-1)
	}
	return r.G
}

type randomizer struct {
	*rand.Rand
	*Maker
	values []roperator.View
}

func (r *randomizer) dims() []int64 { return []int64{r.Int64N(12) + 1, r.Int64N(24) + 1} }

// op adds an rOperator that reads one to three values. It writes a new value, a slice of a new buffer, or overwrites a
// value that is there.
func (r *randomizer) op(last bool) {
	out := r.target(last)
	var reads []roperator.View
	for range r.IntN(3) + 1 {
		if v := r.values[r.IntN(len(r.values))]; v.Buf != out.Buf {
			reads = append(reads, v)
		}
	}
	var candidates []*roperator.Candidate
	kinds := make([]int, len(reads))
	for i := range kinds {
		kinds[i] = r.IntN(4)
	}
	for range r.IntN(2) + 1 {
		g := Grid{Shape: out.Shape, Tile: []int64{r.Int64N(out.Shape[0]) + 1, r.Int64N(out.Shape[1]) + 1}}
		var acc []roperator.Access
		for i, v := range reads {
			acc = append(acc, r.read(g, v, kinds[i]))
		}
		flops := float64(r.IntN(200_000) + 1)
		candidates = append(candidates, r.Candidate(g.Tasks(), flops, acc, []roperator.Access{g.Of(out)}))
	}
	r.Op(candidates...)
	r.values = append(r.values, out)
}

func (r *randomizer) target(last bool) roperator.View {
	switch k := r.IntN(10); {
	case last:
		return r.Buffer(roperator.Output, r.dims()...)
	case k == 0: // overwrite a value that is there
		if v := r.values[r.IntN(len(r.values))]; v.Buf.Kind == roperator.Arena {
			return v
		}
	case k <= 2: // one half of a buffer; another rOperator may write the other half
		d := r.dims()
		d[1] *= 2
		whole := r.Buffer(roperator.Arena, d...)
		r.Op(r.Candidate(1, 100, nil, []roperator.Access{Whole(whole.Slice(1, d[1]/2, d[1]/2))}))
		r.values = append(r.values, whole.Slice(1, d[1]/2, d[1]/2))
		return whole.Slice(1, 0, d[1]/2)
	}
	return r.Buffer(roperator.Arena, r.dims()...)
}

func (r *randomizer) read(g Grid, v roperator.View, kind int) roperator.Access {
	if kind == 0 || v.Shape[0] < g.Shape[0] || v.Shape[1] < g.Shape[1] {
		return Whole(v)
	}
	halo := [][]int64{{0, 0}, {1, 1}, {0, 1 << 20}}[kind-1]
	return g.Halo(v, halo...)
}

// Layers makes a chain of layers that stands for a convolutional network. Values have the shape [rows, cols] and are
// cut into tiles. An rTask of a dense layer reads whole rows around its tile, otherwise its tile with a halo of one
// element.
func Layers(layers int, rows, cols, tileRows, tileCols int64, dense bool) *roperator.Graph {
	m := New("layers")
	in := m.Buffer(roperator.Input, rows, cols)
	g := Grid{Shape: []int64{rows, cols}, Tile: []int64{tileRows, tileCols}}
	for i := range layers {
		kind := roperator.Arena
		if i == layers-1 {
			kind = roperator.Output
		}
		out := m.Buffer(kind, rows, cols)
		halo := []int64{1, 1}
		if dense {
			halo = []int64{1, cols}
		}
		m.Op(m.Candidate(g.Tasks(), 1e5, []roperator.Access{g.Halo(in, halo...)}, []roperator.Access{g.Of(out)}))
		in = out
	}
	return m.G
}

// Recurrent makes layers × steps small cells, like an unrolled stack of LSTMs. Each cell has the given number of rTasks
// and reads the cell of the layer below in the same step and the cell of its own layer in the step before.
func Recurrent(layers, steps int, width int64, tasks int64) *roperator.Graph {
	m := New("recurrent")
	below := m.Buffer(roperator.Input, int64(steps), width)
	outs := make([]roperator.View, layers)
	for l := range outs {
		kind := roperator.Arena
		if l == layers-1 {
			kind = roperator.Output
		}
		outs[l] = m.Buffer(kind, int64(steps), width)
	}
	g := Grid{Shape: []int64{1, width}, Tile: []int64{1, width / tasks}}
	for s := range int64(steps) {
		in := below
		for _, out := range outs {
			reads := []roperator.Access{Whole(in.Slice(0, s, 1))}
			if s > 0 {
				reads = append(reads, Whole(out.Slice(0, s-1, 1)))
			}
			m.Op(m.Candidate(g.Tasks(), 3e4, reads, []roperator.Access{g.Of(out.Slice(0, s, 1))}))
			in = out
		}
	}
	return m.G
}

// Exchange makes chains of steps as recurrent layers have them: every rTask imports the whole state that the step
// before left, and exports its share of the new one. The states of a chain are the rows of one buffer, one row for each
// step.
func Exchange(chains, steps int, width, tasks int64) *roperator.Graph {
	m := New("exchange")
	in := m.Buffer(roperator.Input, width)
	state := make([]roperator.View, chains)
	for c := range state {
		state[c] = m.Buffer(roperator.Output, int64(steps), width)
	}
	g := Grid{Shape: []int64{1, width}, Tile: []int64{1, width / tasks}}
	for s := range int64(steps) {
		for _, v := range state {
			write := g.Of(v.Slice(0, s, 1))
			read := Whole(in)
			pitch := []int64{1}
			if s > 0 {
				read, pitch = Whole(v.Slice(0, s-1, 1)), []int64{width, 1}
			}
			c := m.Candidate(g.Tasks(), 1e4, []roperator.Access{read}, []roperator.Access{write})
			c.Imports = []roperator.Staged{{Access: read, Pitch: pitch}}
			c.Exports = []roperator.Staged{{Access: write, Pitch: []int64{width / tasks, 1}}}
			m.Op(c)
		}
	}
	return m.G
}

// Pointwise makes a random graph whose values have one shape. An rOperator reads up to three of them, each pointwise or
// as a whole.
func Pointwise(seed uint64, ops int) *roperator.Graph {
	r := &randomizer{Rand: rand.New(rand.NewPCG(seed, 3)), Maker: New("pointwise")}
	dims := r.dims()
	r.values = append(r.values, r.Buffer(roperator.Input, dims...))
	for i := range ops {
		kind := roperator.Arena
		if i == ops-1 {
			kind = roperator.Output
		}
		out := r.Buffer(kind, dims...)
		g := Grid{Shape: dims, Tile: []int64{r.Int64N(dims[0]) + 1, r.Int64N(dims[1]) + 1}}
		var reads []roperator.Access
		for range r.IntN(3) + 1 {
			v := r.values[max(0, len(r.values)-1-r.IntN(4))]
			if r.IntN(3) == 0 {
				reads = append(reads, Whole(v))
			} else {
				reads = append(reads, roperator.Pointwise([]roperator.Access{g.Of(v)})...)
			}
		}
		r.Op(r.Candidate(g.Tasks(), 1000, reads, []roperator.Access{g.Of(out)}))
		r.values = append(r.values, out)
	}
	return r.G
}
