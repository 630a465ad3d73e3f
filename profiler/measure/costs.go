package measure

import (
	"sort"

	"github.com/rammerc/rammerc/profiler"
	"github.com/rammerc/rammerc/profiler/db"
	"github.com/rammerc/rammerc/roperator"
)

// Costs answers with measurements where there are any. It implements profiler.Costs.
//
// Where a graph has measured candidates and others, the model's figures for the others are brought to the same scale.
// They are multiplied by measured over modelled times of the same instance on other shapes, the nearer ones above all;
// where there are none, by the median of the same rKernel, or of all rKernels. Otherwise an rKernel that the model
// underrates would look better than one that was measured.
type Costs struct {
	model    profiler.Costs
	measured map[*roperator.Candidate]db.Entry
	sources  map[*roperator.Candidate]string // of candidates that were not measured: db.Key.Source
	streamed bool                            // constants come from DRAM
	scale    map[string]float64              // by rKernel; "" for all others
	near     neighbours
	slower   Slower // how many times as long it takes in a program; nil: 1
	predicts *Costs // of plans; nil: the same
}

// Slower says how many times as long an rTask takes in a program as by itself, which is how it is measured.
type Slower func(c *roperator.Candidate) float64

// InPrograms returns the costs of rTasks in programs: those that candidates are compared with, and those that the plans of
// what was chosen are predicted with. The factors do not count for rTasks whose operands are on chip: these are measured
// with the work of others left out.
func (c *Costs) InPrograms(choices, predictions Slower) *Costs {
	d, p := *c, *c
	d.slower, p.slower, d.predicts = choices, predictions, &p
	return &d
}

// Prediction are the costs for finished plans.
func (c *Costs) Prediction() profiler.Costs {
	if c.predicts == nil {
		return c
	}
	return c.predicts
}

// NewCosts looks up the candidates of g. streamed says that its constants do not stay in L2 from one inference to the
// next. remodel is what the model says of entries; with nil, shapes that were measured say nothing about others.
// Candidates with a problem count as not measured; Strike removes them.
func NewCosts(g *roperator.Graph, model profiler.Costs, base *db.DB, keys *Keys, streamed bool, remodel Remodel,
) (*Costs, error) {
	c := &Costs{
		model: model, measured: map[*roperator.Candidate]db.Entry{}, sources: map[*roperator.Candidate]string{},
		streamed: streamed, near: newNeighbours(base.Entries(), keys.Machine(), streamed, remodel),
	}
	for _, op := range g.Ops {
		for _, cand := range op.Candidates {
			if cand.Like != nil {
				continue // it costs what that one costs
			}
			key, err := keys.Of(g, cand)
			if err != nil {
				return nil, err
			}
			if e, ok := base.Find(key); ok && e.Problem == "" {
				c.measured[cand] = e
			} else {
				c.sources[cand] = key.Source
			}
		}
	}
	c.fitScale()
	return c, nil
}

// enough is the part of a graph's candidates that must have been measured.
const enough = 0.5

// Enough reports whether so many candidates have been measured that they can be compared with the others. The times of a
// few say too little about the scale of the rest.
func (c *Costs) Enough() bool {
	n := len(c.measured)
	return n > 0 && float64(n) >= enough*float64(n+len(c.sources))
}

// Standalone reports whether rTasks of the candidate need nothing of the steps around them: the executor does not bring
// their operands, and keeps nothing on chip for them. What is measured of others is the time from when all that is there.
func Standalone(c *roperator.Candidate) bool {
	return c.Resident == nil && len(c.Imports) == 0 && len(c.Exports) == 0 && !c.Inst.Kernel.Resident && c.Like == nil
}

// TaskTime is the measured time of an rTask of c, or what the model says on the scale of the measurements, as it is in
// programs.
func (c *Costs) TaskTime(cand *roperator.Candidate) float64 {
	if cand.Like != nil {
		cand = cand.Like
	}
	if c.slower == nil || !Standalone(cand) {
		return c.byItself(cand)
	}
	return c.byItself(cand) * c.slower(cand)
}

func (c *Costs) byItself(cand *roperator.Candidate) float64 {
	if e, ok := c.measured[cand]; ok {
		return c.timeOf(cand, &e)
	}
	t := c.model.TaskTime(cand)
	if s, ok := c.near.scale(c.sources[cand], t); ok {
		return t * s
	}
	if s, ok := c.scale[cand.Inst.Kernel.Name]; ok {
		return t * s
	}
	if s, ok := c.scale[""]; ok {
		return t * s
	}
	return t
}

// timeOf chooses among the times of an entry. In a program other code runs before, so the code is cold; but steps that
// keep operands on chip run many times. Streamed weights pass beside the computation, so they count as near.
func (c *Costs) timeOf(cand *roperator.Candidate, e *db.Entry) float64 {
	if !Standalone(cand) && e.Times.Wave > 0 {
		return e.Times.Wave
	}
	if c.streamed && cand.Stream == nil && e.Times.DRAM > 0 {
		return e.Times.DRAM
	}
	return e.Times.Cold
}

// Measured reports whether the candidate's time is measured.
func (c *Costs) Measured(cand *roperator.Candidate) bool {
	_, ok := c.measured[cand]
	return ok
}

// fitScale finds by how much measured times differ from modelled ones, by rKernel.
func (c *Costs) fitScale() {
	ratios := map[string][]float64{}
	for cand, e := range c.measured {
		if m := c.model.TaskTime(cand); m > 0 {
			r := c.timeOf(cand, &e) / m
			name := cand.Inst.Kernel.Name
			ratios[name], ratios[""] = append(ratios[name], r), append(ratios[""], r)
		}
	}
	c.scale = map[string]float64{}
	for name, list := range ratios {
		sort.Float64s(list)
		c.scale[name] = list[len(list)/2]
	}
}

// Problem is why a candidate must not be used, and the candidate.
type Problem struct {
	Op        *roperator.ROperator
	Candidate *roperator.Candidate
	Text      string
}

// Strike removes from g the candidates that the database knows to hang, to fault or to compute something wrong, but
// never the last one of an rOperator. It returns what it removed.
func Strike(g *roperator.Graph, base *db.DB, keys *Keys) ([]Problem, error) {
	var struck []Problem
	for _, op := range g.Ops {
		var keep []*roperator.Candidate
		var bad []Problem
		for _, c := range op.Candidates {
			same := c
			if c.Like != nil {
				same = c.Like
			}
			key, err := keys.Of(g, same)
			if err != nil {
				return nil, err
			}
			if e, ok := base.Find(key); ok && e.Problem != "" {
				bad = append(bad, Problem{op, c, e.Problem})
				continue
			}
			keep = append(keep, c)
		}
		if len(bad) > 0 && usable(keep) {
			op.Candidates = keep
			struck = append(struck, bad...)
		}
	}
	return struck, nil
}

// usable reports whether a scheduler can do with these candidates: at least one that needs nothing of the steps around.
func usable(list []*roperator.Candidate) bool {
	for _, c := range list {
		if Standalone(c) {
			return true
		}
	}
	return false
}
