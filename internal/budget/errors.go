package budget

import (
	"math"
	"slices"

	"github.com/rammerc/rammerc/graphopt"
	"github.com/rammerc/rammerc/internal/tolerance"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/eval"
	"github.com/rammerc/rammerc/precision"
)

// measureErrors finds what each unit alone adds to the errors of the outputs, in each precision that would save time.
// It uses the first sample. Nodes that do not depend on the unit are not run again.
func (s *Search) measureErrors(p *prepared) error {
	for _, u := range p.units {
		s.plan += len(u.worthwhile())
	}
	s.plan += len(s.Samples)
	known, want, err := s.reference(p.g)
	if err != nil {
		return err
	}
	users := usersOf(p.g)
	for _, u := range p.units {
		u.errors[0] = make([]float64, len(p.g.Outputs))
		rest := without(known, u.nodes, users)
		tries := u.worthwhile()
		for i := 0; i < len(tries); i++ {
			l := tries[i]
			got, err := eval.Run(p.g, s.Samples[0], eval.Options{
				Known: rest, Rounding: u.rounding(levels[l], p.g.Outputs),
			})
			if err != nil {
				return err
			}
			u.errors[l] = distances(p.g.Outputs, got, want)
			s.evaluated()
			if levels[l] == precision.FP16 && math.IsInf(slices.Max(u.errors[l]), 1) && u.time[l+1] < u.time[0] {
				tries = append(tries, l+1)
			}
		}
	}
	return nil
}

// worthwhile lists the levels of tf32 and fp16 that save time against all that are more accurate. bf16 is as fast as fp16,
// and has eight times its error; so it is tried only where numbers are too large for float16.
func (u *unit) worthwhile() (out []int) {
	least := u.time[0]
	for l, p := range levels {
		if u.time[l] < least && (p == precision.FP16 || p == precision.TF32 && u.multiplies()) {
			least = u.time[l]
			out = append(out, l)
		}
	}
	return out
}

// reference evaluates the optimised graph on the first sample, and keeps all values.
func (s *Search) reference(g *ir.Graph) (known map[*ir.Value]*ir.Tensor, outputs map[string]*ir.Tensor, err error) {
	outer := map[*ir.Value]bool{}
	for _, n := range g.Nodes {
		for _, v := range n.Outputs {
			outer[v] = true
		}
	}
	known = map[*ir.Value]*ir.Tensor{}
	outputs, err = eval.Run(g, s.Samples[0], eval.Options{Observe: func(v *ir.Value, t *ir.Tensor) {
		if outer[v] {
			known[v] = t
		}
	}})
	return known, outputs, err
}

// usersOf lists the nodes that read each value, also those whose subgraphs do.
func usersOf(g *ir.Graph) map[*ir.Value][]*ir.Node {
	users := map[*ir.Value][]*ir.Node{}
	for _, n := range g.Nodes {
		read := slices.Clone(n.Inputs)
		for _, sub := range n.Subgraphs() {
			read = append(read, ir.Captured(sub)...)
		}
		for _, v := range read {
			users[v] = append(users[v], n)
		}
	}
	return users
}

// without is known less the values that the nodes, and all that depend on them, compute.
func without(known map[*ir.Value]*ir.Tensor, nodes []*ir.Node, users map[*ir.Value][]*ir.Node) map[*ir.Value]*ir.Tensor {
	changed := map[*ir.Node]bool{}
	queue := slices.Clone(nodes)
	for len(queue) > 0 {
		n := queue[0]
		queue = queue[1:]
		if changed[n] {
			continue
		}
		changed[n] = true
		for _, v := range n.Outputs {
			if v != nil {
				queue = append(queue, users[v]...)
			}
		}
	}
	rest := map[*ir.Value]*ir.Tensor{}
	for v, t := range known {
		if !changed[v.Def] {
			rest[v] = t
		}
	}
	return rest
}

// distances has the error of each output: its relative L2 distance if it is of floats. Other outputs, such as indices of
// the largest elements, must be equal. An error is infinite where they are not, or where one side is infinite or NaN.
func distances(outputs []*ir.Value, got, want map[string]*ir.Tensor) []float64 {
	out := make([]float64, len(outputs))
	for i, v := range outputs {
		d := tolerance.Compare(v.Name, got[v.Name], want[v.Name])
		out[i] = d.RelL2
		if d.Problem != "" || d.Special > 0 || !want[v.Name].DType.IsFloat() && d.MaxAbs > 0 {
			out[i] = math.Inf(1)
		}
	}
	return out
}

// check evaluates the whole model in the precisions of a choice: the graph that is compiled, in which 16 bits are stored
// as such, with the factors of products rounded. It returns the largest error of each output over all samples.
func (s *Search) check(choice precision.Choice) ([]float64, error) {
	g := ir.Clone(s.Graph)
	if err := graphopt.Run(g, s.Passes(choice)); err != nil {
		return nil, err
	}
	rounding := map[*ir.Node]eval.Rounding{}
	for _, n := range g.Nodes {
		if m := factorsOf(n); m != nil {
			rounding[m] = eval.Rounding{Factors: formats[choice.Of(n)].Factors}
		}
	}
	worst := make([]float64, len(g.Outputs))
	for i, in := range s.Samples {
		got, err := eval.Run(g, in, eval.Options{Rounding: rounding})
		if err != nil {
			return nil, err
		}
		for k, e := range distances(s.Graph.Outputs, got, s.want[i]) {
			worst[k] = max(worst[k], e)
		}
		s.evaluated()
	}
	return worst, nil
}

// finite is x, or the largest finite number: JSON has no infinities.
func finite(x float64) float64 { return min(x, math.MaxFloat64) }
