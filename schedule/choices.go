package schedule

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/profiler"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/vdevice"
)

// choice is a candidate that fits the device, with what it costs. Times are in ns.
type choice struct {
	index    int // among the rOperator's candidates
	c        *roperator.Candidate
	taskTime float64 // of one rTask with its dispatch, or the time that its weights take to stream, if that is more
	opTime   float64 // of all its rTasks, alone on the device
	ready    float64 // of one rTask with its dispatch, if its weights are there
	tagged   float64 // until its tagged operands are there, from when they are written
	rate     float64 // bytes per ns that a loader brings; 0: it streams nothing
	needs    vdevice.Needs
}

// admit lists, per rOperator, the candidates that can be used. All vEUs have as many threads as the
// largest rTask of the plan needs, and that bounds the registers of all others; the number of threads is
// chosen such that every rOperator has a candidate and the sum of their times is least. alone are those that launches of
// a single rOperator can have besides.
func admit(g *roperator.Graph, spec *device.Spec, costs profiler.Costs) (usual, alone [][]choice, err error) {
	var l diag.List
	all := make([][]choice, len(g.Ops))
	sizes, weights := map[int]bool{}, streamedWeights(g)
	for id, op := range g.Ops {
		var lacks []string
		for i, c := range op.Candidates {
			ch := newChoice(i, c, spec, costs, weights)
			if lack := ch.needs.LackingOn(spec); lack != nil {
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
		return nil, nil, err
	}
	if usual, err = bestThreads(g, spec, all, sizes); err != nil {
		return nil, nil, err
	}
	return usual, beyond(all, usual), nil
}

// beyond lists the candidates of all that need more threads than the usual ones, but have kernels of their own in launches
// of a single rOperator: those that multiply by warp groups, and stream nothing.
func beyond(all, usual [][]choice) [][]choice {
	threads := 0
	for _, choices := range usual {
		for i := range choices {
			threads = max(threads, choices[i].needs.Threads)
		}
	}
	out := make([][]choice, len(all))
	for op, choices := range all {
		for i := range choices {
			ch := &choices[i]
			if ch.multipliesByGroups() && ch.needs.Threads > threads && ch.needs.StreamStep == 0 && !ch.special() {
				out[op] = append(out[op], *ch)
			}
		}
	}
	return out
}

func newChoice(i int, c *roperator.Candidate, spec *device.Spec, costs profiler.Costs, weights int64) choice {
	t := costs.TaskTime(c) + spec.Cost.Step
	ch := choice{index: i, c: c, taskTime: t, ready: t, tagged: spec.TaggedTime(c.Polled())}
	if c.Stream != nil {
		ch.rate = spec.LoadRate(min(c.Tasks, spec.VEUs()), weights)
		ch.taskTime = max(t, float64(c.StreamBytes(0))/ch.rate)
	}
	rounds := (c.Tasks + spec.VEUs() - 1) / spec.VEUs()
	ch.opTime = ch.taskTime * float64(rounds)
	ch.needs.AddCandidate(c)
	return ch
}

// streamedWeights is how many bytes of weights a program streams if all rOperators stream theirs that can.
func streamedWeights(g *roperator.Graph) int64 {
	sum := int64(0)
	for _, op := range g.Ops {
		for _, c := range op.Candidates {
			if c.Stream != nil {
				sum += c.StreamedBytes()
				break
			}
		}
	}
	return sum
}

func misfit(op *roperator.ROperator, lacks string) *diag.Diagnostic {
	d := &diag.Diagnostic{ID: "does-not-fit", Node: op.Name, Op: op.Kind,
		Message: "no rKernel fits the device: " + lacks}
	if len(op.Origins) > 0 {
		d.Node, d.Op = op.Origins[0].Name, op.Origins[0].OpType
	}
	return d
}

// bestThreads tries every number of threads that some candidate needs, each without candidates that stream weights and
// with those that take so many bytes of their streams at a time, or fewer. For these all vEUs have one more warp, and a
// ring of stages of so many bytes: large ones take the shared memory from candidates that want it for themselves. But
// every rOperator that may stream its weights keeps a candidate that does. What its time alone does not tell is that
// weights come before the rTask begins: AlexNet, where two did not, took 17 % longer in fp16.
func bestThreads(g *roperator.Graph, spec *device.Spec, all [][]choice, sizes map[int]bool) ([][]choice, error) {
	var threads []int
	for n := range sizes {
		threads = append(threads, n)
	}
	sort.Ints(threads)
	var best [][]choice
	bestTime, mostKept := 0.0, 0
	var lack *diag.List
	imports := mostImports(all)
	steps := streamSteps(all)
	with := func(n, step int) (some [][]choice, time float64, missing *diag.List) {
		some, time, missing = restrict(g, spec, all, vdevice.Needs{Threads: n, StreamStep: step, Imports: imports})
		if missing.Errors() > 0 && imports > 0 {
			return restrict(g, spec, all, vdevice.Needs{Threads: n, StreamStep: step})
		}
		return some, time, missing
	}
	for _, n := range threads {
		most, _, _ := with(n, steps[len(steps)-1])
		for _, step := range steps {
			some, time, missing := with(n, step)
			if step > 0 && streamers(some) < streamers(most) {
				continue
			}
			if missing.Errors() > 0 {
				if lack == nil || missing.Errors() < lack.Errors() {
					lack = missing
				}
				continue
			}
			kept := residentChoices(some)
			if best == nil || kept > mostKept || kept == mostKept && time < bestTime {
				best, bestTime, mostKept = some, time, kept
			}
		}
	}
	if best == nil {
		return nil, lack.Err()
	}
	return best, nil
}

// residentChoices counts the candidates that keep operands on chip. Groups of rOperators live on them: with the widest
// slices missing, too few groups would find vEUs, and no faster rKernel elsewhere makes up for that.
func residentChoices(all [][]choice) int {
	n := 0
	for _, choices := range all {
		for i := range choices {
			if choices[i].c.Resident != nil {
				n++
			}
		}
	}
	return n
}

// special reports that the candidate is for data that travel in tagged words, or for operands that are kept on chip.
// It is decided later whether such candidates are used.
func (c *choice) special() bool {
	return c.c.Resident != nil || len(c.c.Exports) > 0 || c.c.Like != nil
}

// streamers counts the rOperators that may stream their weights.
func streamers(all [][]choice) int {
	n := 0
	for _, choices := range all {
		if slices.ContainsFunc(choices, func(c choice) bool { return c.needs.StreamStep > 0 }) {
			n++
		}
	}
	return n
}

// streamSteps lists how many bytes rKernels take from their streams of weights at a time, from 0 on, for those that take
// nothing.
func streamSteps(all [][]choice) []int {
	steps := []int{0}
	for _, choices := range all {
		for i := range choices {
			steps = append(steps, choices[i].needs.StreamStep)
		}
	}
	slices.Sort(steps)
	return slices.Compact(steps)
}

// mostImports is how many words of values from other vEUs any candidate wants room for. Programs in which recurrent cells
// keep their weights have that room beside the shared memory of all other rTasks.
func mostImports(all [][]choice) int64 {
	most := int64(0)
	for _, choices := range all {
		for i := range choices {
			most = max(most, choices[i].needs.Imports)
		}
	}
	return most
}

// restrict keeps the candidates that fit vEUs of so many threads, with a ring or without.
func restrict(g *roperator.Graph, spec *device.Spec, all [][]choice, vEU vdevice.Needs) (some [][]choice, time float64,
	missing *diag.List) {
	some, missing = make([][]choice, len(all)), &diag.List{}
	misfits := func(ch choice) bool {
		if ch.needs.Threads > vEU.Threads || ch.needs.StreamStep > vEU.StreamStep {
			return true
		}
		needs := vEU
		needs.Join(ch.needs)
		return !needs.FitsOn(spec)
	}
	for id, choices := range all {
		if some[id] = choices; slices.ContainsFunc(choices, misfits) {
			some[id] = slices.DeleteFunc(slices.Clone(choices), misfits)
		}
		least, usable := 0.0, false
		for i := range some[id] {
			ch := &some[id][i]
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
			missing.Add(misfit(g.Ops[id], fmt.Sprintf("vEUs of %d threads have %d registers a thread", vEU.Threads,
				spec.RegisterBound(vEU.Threads))))
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

// fastestOf is the choice with the smallest run time in a launch of at most so many blocks.
func fastestOf(choices []choice, spec *device.Spec, blocks int) *choice {
	best, least := &choices[0], 0.0
	for i := range choices {
		c := &choices[i]
		n := min(blocks, c.c.Tasks)
		time := c.taskTime * float64((c.c.Tasks+n-1)/n) * vdevice.Crowding(spec, c.c, c.ready-spec.Cost.Step, n)
		if i == 0 || time < least {
			best, least = c, time
		}
	}
	return best
}

// work is the sum of the times of all rTasks.
func (c *choice) work() float64 { return c.taskTime * float64(c.c.Tasks) }
