package budget

import (
	"cmp"
	"math"
	"slices"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/precision"
)

const (
	// mostChecks is how often the whole is checked to come closer to the budget, once something fits.
	mostChecks = 5
	// closeTo is the part of the budget that is near enough.
	closeTo = 0.8
	// leastMixed is the part of its time that a mixture of precisions must promise to save against one precision
	// throughout. When all launches of a program shared one kernel, with the registers of its largest rKernel, mixtures
	// that promised 6 and 11 % made SqueezeNet and ResNet-18 4 and 11 % slower on an H200, and those that promised 24 and
	// 38 % made them 13 and 28 % faster (bench/results/h200-budget.json).
	leastMixed = 0.15
	// mostTakenBack is how many units are asked at most whether the model is faster without their choice: each question
	// lowers the whole model.
	mostTakenBack = 64
	// sameScale is how little the prediction may change for a choice to be the same.
	sameScale = 0.02
	// aim is the part of the budget that a repeated choice aims at, and retreat by how much it aims lower at least after
	// one that did not fit.
	aim, retreat = 0.95, 1.3
)

// choose makes choices and checks them, and keeps the fastest that is inside the budget. It ends when a choice comes near
// to the budget, or nothing faster is left. By how much the check differs from the prediction tells what to predict for
// the next choice.
func (s *Search) choose(p *prepared) (*Result, error) {
	best := &best{s: s, p: p, uniformUS: math.Inf(1)}
	if err := best.tryUniform(); err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	scale := 1.0 // checked error by predicted error
	for greedy := 1; ; greedy++ {
		p.greedy(s.Budget / scale)
		fastest := p.allFastest()
		if err := s.takeBack(p); err != nil {
			return nil, err
		}
		choice := p.choice()
		if seen[choice.String()] {
			return best.done()
		}
		seen[choice.String()] = true
		r, err := best.try(choice)
		if err != nil {
			return nil, err
		}
		fits := r.Checked <= s.Budget
		next := ratio(r.Checked, r.Predicted) / aim
		if !fits {
			next = max(next, retreat*scale)
		}
		switch {
		case p.allExact(), // nothing is left to give back
			fits && (fastest || r.Checked >= closeTo*s.Budget || greedy >= mostChecks),
			math.Abs(next-scale) < sameScale*scale:
			return best.done()
		}
		scale = next
	}
}

// takeBack makes units more accurate again where that makes the model faster: a unit whose neighbours are of other
// precisions pays for conversions, and stores float32. The units that promised to save least are asked first.
func (s *Search) takeBack(p *prepared) error {
	units := slices.DeleteFunc(slices.Clone(p.units), func(u *unit) bool { return u.level == 0 })
	slices.SortStableFunc(units, func(a, b *unit) int {
		return cmp.Compare(a.time[0]-a.time[a.level], b.time[0]-b.time[b.level])
	})
	if len(units) == 0 || len(units) == len(p.units) {
		return nil
	}
	least, err := s.total(p)
	for _, u := range units[:min(len(units), mostTakenBack)] {
		for l, now := 0, u.level; l < now && err == nil; l++ {
			if u.errors[l] == nil {
				continue
			}
			before, ns := u.level, 0.0
			u.level = l
			if ns, err = s.total(p); ns < least {
				least = ns
			} else {
				u.level = before
			}
		}
	}
	return err
}

// total is what all rOperators take in the precisions that the units have, in nanoseconds.
func (s *Search) total(p *prepared) (float64, error) {
	times, err := s.Times(p.choice())
	sum := 0.0
	for _, t := range times {
		sum += t.NS
	}
	return sum, err
}

// best is the fastest choice so far that is inside the budget.
type best struct {
	s      *Search
	p      *prepared
	checks int
	found  *Result   // nil if there is none
	inside []*Result // all choices that are inside the budget
	// uniformUS is the least time of one precision throughout, infinite until that is known.
	uniformUS float64
	last      *Result
}

// tryUniform tries float32, and each precision that some unit gains by for all of these.
func (b *best) tryUniform() error {
	for level := range levels {
		b.p.toLevel(level)
		if b.p.allExact() && level > 0 {
			continue
		}
		if _, err := b.try(b.p.choice()); err != nil {
			return err
		}
	}
	if b.found != nil {
		b.uniformUS = b.found.TimeUS
	}
	return nil
}

// try checks a choice, asks for its times, and keeps it if it is the best.
func (b *best) try(choice precision.Choice) (*Result, error) {
	errors, err := b.s.check(choice)
	if err != nil {
		return nil, err
	}
	ns, err := b.s.total(b.p)
	if err != nil {
		return nil, err
	}
	r := b.s.result(b.p, choice, errors)
	r.TimeUS = ns / 1000
	b.checks++
	b.last = r
	if r.Checked <= b.s.Budget {
		b.inside = append(b.inside, r)
	}
	if r.Checked <= b.s.Budget && (b.found == nil || r.TimeUS < min(b.found.TimeUS, (1-leastMixed)*b.uniformUS)) {
		b.found = r
	}
	return r, nil
}

// done is the best result. If nothing was inside the budget, it is the last one, in which all units are exact.
func (b *best) done() (*Result, error) {
	r := b.found
	if r == nil {
		r = b.last
	}
	for _, x := range append(slices.Clone(b.inside), r) {
		x.Checks, x.Evaluations = b.checks, b.s.done
		if x.Choice.String() != r.Choice.String() {
			r.Alternatives = append(r.Alternatives, x)
		}
	}
	return r, nil
}

// ratio is a/b, 1 if there is nothing to compare.
func ratio(a, b float64) float64 {
	if a == 0 || b == 0 || math.IsInf(b, 0) {
		return 1
	}
	return min(a/b, 1e6)
}

// greedy gives each unit a level so that the predicted error of every output is at most limit. All begin in float32. Of
// the steps that fit, the one is taken that saves most time for the squared error that it adds, until none fits.
func (p *prepared) greedy(limit float64) {
	for _, u := range p.units {
		u.level = 0
	}
	spent := make([]float64, len(p.g.Outputs))
	for {
		var unit *unit
		level, most := 0, 0.0
		for _, u := range p.units {
			for l := u.level + 1; l < len(levels); l++ {
				saved := u.time[u.level] - u.time[l]
				if u.errors[l] == nil || saved <= 0 || !u.fits(spent, l, limit) {
					continue
				}
				if worth := saved / max(u.added(l), math.SmallestNonzeroFloat32); worth > most {
					unit, level, most = u, l, worth
				}
			}
		}
		if unit == nil {
			return
		}
		for k := range spent {
			spent[k] += square(unit.errors[level][k]) - square(unit.errors[unit.level][k])
		}
		unit.level = level
	}
}

// toLevel gives all units a level, and float32 to those that gain nothing by it.
func (p *prepared) toLevel(l int) {
	for _, u := range p.units {
		u.level = 0
		if u.errors[l] != nil && !slices.ContainsFunc(u.errors[l], func(e float64) bool { return math.IsInf(e, 1) }) {
			u.level = l
		}
	}
}

// fits reports whether every output stays inside the limit if u goes to level l; spent are the sums of squares so far.
func (u *unit) fits(spent []float64, l int, limit float64) bool {
	for k := range spent {
		if !(spent[k]+square(u.errors[l][k])-square(u.errors[u.level][k]) <= square(limit)) {
			return false
		}
	}
	return true
}

// added is the squared error that going to level l adds to the output where that is most.
func (u *unit) added(l int) float64 {
	most := 0.0
	for k := range u.errors[l] {
		most = max(most, square(u.errors[l][k])-square(u.errors[u.level][k]))
	}
	return most
}

func square(x float64) float64 { return x * x }

func (p *prepared) allExact() bool {
	return !slices.ContainsFunc(p.units, func(u *unit) bool { return u.level > 0 })
}

// allFastest reports whether no unit has a faster level left.
func (p *prepared) allFastest() bool {
	return !slices.ContainsFunc(p.units, func(u *unit) bool {
		for l := range levels {
			if u.errors[l] != nil && u.time[l] < u.time[u.level] {
				return true
			}
		}
		return false
	})
}

// choice gives the program the precision that most units have, and names the others.
func (p *prepared) choice() precision.Choice {
	count := make([]int, len(levels))
	for _, u := range p.units {
		count[u.level]++
	}
	most := 0
	for l := range count {
		if count[l] > count[most] {
			most = l
		}
	}
	c := precision.All(levels[most])
	for _, u := range p.units {
		if u.level == most {
			continue
		}
		for _, o := range u.origins {
			c.Rules = append(c.Rules, precision.Rule{Pattern: o.Name, Precision: levels[u.level], Exact: true})
		}
	}
	return c
}

// result describes what was chosen, and what came of it.
func (s *Search) result(p *prepared, choice precision.Choice, errors []float64) *Result {
	r := &Result{
		Budget: s.Budget, Choice: choice, Program: choice.Program.String(), Samples: len(s.Samples),
		ExactUS: p.exact / 1000, Units: []UnitChoice{},
	}
	predicted := make([]float64, len(errors))
	for _, u := range p.units {
		time, exact := u.time[u.level]/1000, u.time[0]/1000
		x := UnitChoice{Op: u.origins[0].OpType, Precision: levels[u.level].String(), TimeUS: time, SavedUS: exact - time,
			Nodes: originNames(u.origins)}
		for k, e := range u.errors[u.level] {
			predicted[k] += square(e)
			x.Error = max(x.Error, finite(e))
		}
		r.Units = append(r.Units, x)
	}
	slices.SortStableFunc(r.Units, func(a, b UnitChoice) int {
		return cmp.Compare(b.TimeUS+b.SavedUS, a.TimeUS+a.SavedUS)
	})
	for k, v := range s.Graph.Outputs {
		o := Output{v.Name, finite(math.Sqrt(predicted[k])), finite(errors[k])}
		r.Predicted, r.Checked = max(r.Predicted, o.Predicted), max(r.Checked, o.Checked)
		r.Outputs = append(r.Outputs, o)
	}
	return r
}

func originNames(origins []ir.Origin) []string {
	out := make([]string, len(origins))
	for i, o := range origins {
		out[i] = o.Name
	}
	return out
}
