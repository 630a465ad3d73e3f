package engine

import (
	"maps"
	"strconv"

	"github.com/rammerc/rammerc/internal/runner"
	"github.com/rammerc/rammerc/ir"
)

// States of libraries: inputs of the model that a library keeps from run to run. The evaluator keeps none, so Memory hands
// them over.

// Memory are the states of a model between the runs of an engine that keeps none.
type Memory struct {
	States []runner.State
	Inputs []Port // of the library, which has no states among them
	held   Tensors
}

// Reset forgets everything.
func (m *Memory) Reset() { m.held = nil }

// With are inputs with the states of the runs before, or empty ones, as g wants them.
func (m *Memory) With(in Tensors, g *ir.Graph) Tensors {
	if len(m.States) == 0 {
		return in
	}
	out := maps.Clone(in)
	for _, s := range m.States {
		if out[s.Input] = m.held[s.Input]; m.held[s.Input] == nil {
			out[s.Input] = m.empty(s, in, g)
		}
	}
	return out
}

// Learn keeps what a run leaves to the next one.
func (m *Memory) Learn(out Tensors) {
	m.held = Tensors{}
	for _, s := range m.States {
		m.held[s.Input] = out[s.Output]
	}
}

// empty is a state before the first run: without elements where it grows, and zeros elsewhere.
func (m *Memory) empty(s runner.State, in Tensors, g *ir.Graph) *ir.Tensor {
	extents := map[string]int64{s.Grows: 0}
	for i := range m.Inputs {
		p := &m.Inputs[i]
		for d := range p.Dims {
			if x := p.symbol(d); x != nil && x.Parts == nil && in[p.Name] != nil {
				extents[x.Name] = in[p.Name].Dims[d]
			}
		}
	}
	dims := make([]int64, len(s.Dims))
	for d, text := range s.Dims {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			n = extents[text]
		}
		dims[d] = n
	}
	for _, v := range g.Inputs {
		if v.Name == s.Input {
			return ir.NewTensor(v.DType, dims...)
		}
	}
	return nil
}

// RandomSequence draws samples as RandomSamples does, for a library that keeps states: each follows the one before it, and
// where there is no room for another one, or the first one is drawn, the states are empty.
func RandomSequence(inputs []Port, ranges *runner.Ranges, n int, seed uint64, limit int64) *Samples {
	if ranges == nil || len(ranges.States) == 0 {
		return RandomSamples(inputs, n, seed, limit)
	}
	return &Samples{N: n, At: func(i int) Sample {
		fixed, first := sequence(ranges, i, seed)
		return Sample{In: RandomInputsAt(inputs, seed+uint64(i), limit, fixed), Reset: first}
	}}
}

// sequence are the extents that sample i has of the states before it: how far those have grown, and the dims that must not
// change while they do. first says that the states are empty.
func sequence(ranges *runner.Ranges, i int, seed uint64) (fixed map[string]int64, first bool) {
	length, begin := map[string]int64{}, 0
	for k := 0; ; k++ {
		fixed = maps.Clone(length)
		for _, s := range ranges.States {
			for _, text := range s.Dims {
				if x := symbolNamed(ranges.Symbols, text); x != nil && !x.State {
					fixed[text] = drawnExtent(x, seed+uint64(begin))
				}
			}
		}
		if k == i {
			for _, s := range ranges.States {
				if s.Grows != "" {
					fixed[s.Grows] = length[s.Grows]
				}
			}
			return fixed, begin == k
		}
		longer := map[string]int64{}
		for _, s := range ranges.States {
			if s.Grows != "" {
				longer[s.Grows] = after(s, length, fixed, ranges.Symbols, seed+uint64(k))
			}
		}
		length = longer
		for name, n := range longer {
			if n > symbolNamed(ranges.Symbols, name).Max {
				length, begin = map[string]int64{}, k+1
			}
		}
	}
}

// after is how far a state has grown behind a sample with a seed.
func after(s runner.State, length, fixed map[string]int64, symbols []runner.Symbol, seed uint64) int64 {
	next, err := ir.ParseDim(s.Next)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	bind := maps.Clone(fixed)
	for i := range symbols {
		x := &symbols[i]
		if _, known := bind[x.Name]; !known {
			bind[x.Name] = drawnExtent(x, seed)
		}
		if x.State {
			bind[x.Name] = length[x.Name]
		}
	}
	n, _ := next.Bind(bind).Const()
	return n
}

func symbolNamed(symbols []runner.Symbol, name string) *runner.Symbol {
	for i := range symbols {
		if symbols[i].Name == name {
			return &symbols[i]
		}
	}
	return nil
}
