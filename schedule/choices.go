package schedule

import (
	"fmt"
	"sort"
	"strings"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/profiler"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/schedule/vdevice"
)

// choice is a candidate that fits the device, with what it costs.
type choice struct {
	index    int // among the rOperator's candidates
	c        *roperator.Candidate
	taskTime float64 // dispatch included
	opTime   float64 // of all its rTasks, alone on the device
	needs    vdevice.Needs
}

// admit lists, per rOperator, the candidates that can be used. All vEUs have as many threads as the
// largest rTask of the plan needs, and that bounds the registers of all others; the number of threads is
// chosen such that every rOperator has a candidate and the sum of their times is least.
func admit(g *roperator.Graph, spec *vdevice.Spec, costs profiler.Costs) ([][]choice, error) {
	var l diag.List
	all := make([][]choice, len(g.Ops))
	sizes := map[int]bool{}
	for id, op := range g.Ops {
		var lacks []string
		for i, c := range op.Candidates {
			ch := newChoice(i, c, spec, costs)
			if lack := spec.Fit(ch.needs); lack != nil {
				lacks = append(lacks, fmt.Sprintf("%s needs %s", c.Inst.Name(), strings.Join(lack, " and ")))
				continue
			}
			all[id] = append(all[id], ch)
			sizes[ch.needs.Threads] = true
		}
		if len(all[id]) == 0 {
			l.Add(misfit(op, strings.Join(lacks, "; ")))
		}
	}
	if err := l.Err(); err != nil || len(g.Ops) == 0 {
		return nil, err
	}
	return bestThreads(g, spec, all, sizes)
}

func newChoice(i int, c *roperator.Candidate, spec *vdevice.Spec, costs profiler.Costs) choice {
	t := costs.TaskTime(c) + spec.Cost.Step
	rounds := (c.Tasks + spec.VEUs() - 1) / spec.VEUs()
	ch := choice{index: i, c: c, taskTime: t, opTime: t * float64(rounds)}
	ch.needs.AddCandidate(c)
	return ch
}

func misfit(op *roperator.ROperator, lacks string) *diag.Diagnostic {
	d := &diag.Diagnostic{ID: "does-not-fit", Node: op.Name, Op: op.Kind, Message: "no rKernel fits the device: " + lacks}
	if len(op.Origins) > 0 {
		d.Node, d.Op = op.Origins[0].Name, op.Origins[0].OpType
	}
	return d
}

// bestThreads tries every number of threads that some candidate needs.
func bestThreads(g *roperator.Graph, spec *vdevice.Spec, all [][]choice, sizes map[int]bool) ([][]choice, error) {
	var threads []int
	for n := range sizes {
		threads = append(threads, n)
	}
	sort.Ints(threads)
	var best [][]choice
	bestTime := 0.0
	var lack *diag.List
	for _, n := range threads {
		some, time, missing := restrict(g, spec, all, n)
		if missing.Errors() > 0 {
			if lack == nil || missing.Errors() < lack.Errors() {
				lack = missing
			}
			continue
		}
		if best == nil || time < bestTime {
			best, bestTime = some, time
		}
	}
	if best == nil {
		return nil, lack.Err()
	}
	return best, nil
}

// special candidates are for data that travel with tags or operands that stay on chip; whether they are
// used is decided later.
func (c *choice) special() bool { return c.c.Resident != nil || len(c.c.Exports) > 0 }

// restrict keeps the candidates that fit vEUs of n threads.
func restrict(g *roperator.Graph, spec *vdevice.Spec, all [][]choice, n int) (some [][]choice, time float64, missing *diag.List) {
	some, missing = make([][]choice, len(all)), &diag.List{}
	bound := spec.RegisterBound(n)
	for id, choices := range all {
		least, usable := 0.0, false
		for _, ch := range choices {
			if ch.needs.Threads > n || ch.needs.Registers > bound {
				continue
			}
			some[id] = append(some[id], ch)
			if ch.special() {
				continue
			}
			if !usable || ch.opTime < least {
				least = ch.opTime
			}
			usable = true
		}
		time += least
		if !usable {
			missing.Add(misfit(g.Ops[id], fmt.Sprintf("vEUs of %d threads have %d registers a thread", n, bound)))
		}
	}
	return some, time, missing
}

// fastest is the choice with the smallest run time alone on the device, of equals the one with the
// least work.
func fastest(choices []choice) *choice {
	best := &choices[0]
	for i := range choices[1:] {
		c := &choices[i+1]
		if c.opTime < best.opTime || c.opTime == best.opTime && c.work() < best.work() {
			best = c
		}
	}
	return best
}

// efficient is the choice with the smallest product of run time and number of rTasks.
func efficient(choices []choice) *choice {
	best := &choices[0]
	for i := range choices[1:] {
		if c := &choices[i+1]; c.work() < best.work() {
			best = c
		}
	}
	return best
}

// fastestOn is the choice with the smallest run time on so many vEUs.
func fastestOn(veus int, choices []choice) *choice {
	best, least := &choices[0], 0.0
	for i := range choices {
		c := &choices[i]
		time := c.taskTime * float64((c.c.Tasks+veus-1)/veus)
		if i == 0 || time < least || time == least && c.work() < best.work() {
			best, least = c, time
		}
	}
	return best
}

// work is the time that all rTasks take together.
func (c *choice) work() float64 { return c.taskTime * float64(c.c.Tasks) }
