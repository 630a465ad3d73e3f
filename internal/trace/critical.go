package trace

import "slices"

// Reasons why a step on the critical path could not start earlier.
const (
	ByStart  = "start"  // nothing came before it
	ByLaunch = "launch" // a launch that its own comes after had to end
	ByOrder  = "order"  // the step before it on its vEU had to end
	ByWait   = "wait"   // a step of another vEU had to publish its results
)

// Link is a step on the critical path.
type Link struct {
	Run int     // index in Timeline.Runs
	By  string  // the reason: ByStart, ByLaunch, ByOrder or ByWait
	Gap float64 // nanoseconds from the end of the previous step on the path to this step's start
}

// edges finds the runs whose results a run waited for.
type edges struct {
	t     *Timeline
	index [][]map[int]int // [segment][vEU] order → run
}

func newEdges(t *Timeline) *edges {
	e := &edges{t: t}
	for _, s := range t.Plan.Segments {
		e.index = append(e.index, make([]map[int]int, len(s.Steps)))
	}
	for i := range t.Runs {
		r := &t.Runs[i]
		if e.index[r.Segment][r.VEU] == nil {
			e.index[r.Segment][r.VEU] = map[int]int{}
		}
		e.index[r.Segment][r.VEU][r.Order] = i
	}
	return e
}

// last is, of the runs that run i waits for, the one whose results came last, or -1 if it waits for none.
func (e *edges) last(i int) int {
	r := &e.t.Runs[i]
	if e.t.Launches[r.Launch].Kind != "rprogram" {
		return -1
	}
	best := -1
	for _, w := range e.t.Plan.Segments[r.Segment].Steps[r.VEU][r.Order].Needs {
		p, ok := e.index[r.Segment][w.VEU][w.Order]
		if ok && (best < 0 || known(&e.t.Runs[p]) > known(&e.t.Runs[best])) {
			best = p
		}
	}
	return best
}

// known is when other vEUs can know that a step is done: when it has published, or when it was computed if nobody waits
// for it.
func known(r *Run) float64 { return max(r.Computed, r.Published) }

// Critical is the critical path: the chain of steps that determined when the inference ended, from its first step to
// its last. It is found backwards from the step that ended last. The step before a step on the path is
//
//   - the step of another vEU whose results it waited for, if it did wait;
//   - otherwise the step before it on its own vEU;
//   - otherwise the step that ended last in the launches that its launch comes after.
func (t *Timeline) Critical() []Link {
	if len(t.Runs) == 0 {
		return nil
	}
	e := newEdges(t)
	before := t.lastBefore()
	at := 0
	for i := range t.Runs {
		if t.Runs[i].Computed > t.Runs[at].Computed {
			at = i
		}
	}
	var path []Link
	for at >= 0 {
		from, by := t.reason(e, before, at)
		// The clocks of two multiprocessors do not agree exactly. A step that seems to have ended after the one that
		// waited for it would lead in a circle.
		if from >= 0 && by != ByOrder && t.Runs[from].Computed >= t.Runs[at].Computed {
			from, by = t.previous(at), ByOrder
		}
		if from >= 0 && t.Runs[from].Computed > t.Runs[at].Computed {
			from = -1
		}
		l := Link{Run: at, By: by, Gap: t.Runs[at].Started}
		if from < 0 {
			l.By = ByStart
		} else {
			l.Gap = max(0, l.Gap-t.Runs[from].Computed)
		}
		path = append(path, l)
		at = from
	}
	for i, j := 0, len(path)-1; i < j; i, j = i+1, j-1 {
		path[i], path[j] = path[j], path[i]
	}
	return path
}

// reason is the run that run i had to wait for, and why; from is -1 if there is none.
func (t *Timeline) reason(e *edges, before []int, i int) (from int, by string) {
	r := &t.Runs[i]
	previous := t.previous(i)
	if p := e.last(i); p >= 0 && (previous < 0 || known(&t.Runs[p]) > r.Begun) {
		return p, ByWait
	}
	if previous >= 0 {
		return previous, ByOrder
	}
	return before[r.Launch], ByLaunch
}

// previous is the run before run i on its vEU in the same launch, or -1. Such runs are neighbours in Timeline.Runs.
func (t *Timeline) previous(i int) int {
	if i > 0 && t.Runs[i-1].VEU == t.Runs[i].VEU && t.Runs[i-1].Launch == t.Runs[i].Launch {
		return i - 1
	}
	return -1
}

// lastBefore is, for every launch, the run that ended last in the launches that it came after, or -1.
func (t *Timeline) lastBefore() []int {
	last := make([]int, len(t.Launches)) // of the launch itself
	for i := range last {
		last[i] = -1
	}
	for i := range t.Runs {
		l := t.Runs[i].Launch
		last[l] = t.later(last[l], i)
	}
	before := make([]int, len(t.Launches))
	for l := range before {
		before[l] = -1
		for _, p := range t.launchesBefore(l) {
			before[l] = t.later(before[l], last[p])
		}
		if last[l] < 0 { // a launch without steps stands for those that it came after
			last[l] = before[l]
		}
	}
	return before
}

// later is the one of two runs that ended later; -1 stands for no run.
func (t *Timeline) later(a, b int) int {
	if a < 0 || b >= 0 && t.Runs[b].Computed > t.Runs[a].Computed {
		return b
	}
	return a
}

// launchesBefore are the launches that had to end before launch l began. Inside a parallel graph the plan says which
// nodes those are. Other segments launch one after the other: the launch before l in its segment, or for the first
// launch of a segment all launches of the segment before.
func (t *Timeline) launchesBefore(l int) []int {
	this := &t.Launches[l]
	first := l
	for first > 0 && t.Launches[first-1].Segment == this.Segment {
		first--
	}
	var out []int
	if nodes := t.Plan.Segments[this.Segment].Nodes; this.Wave < len(nodes) {
		after := nodes[this.Wave].After
		for w := this.Wave - 1; w >= 0; w-- {
			if nodes[w].Stream == nodes[this.Wave].Stream {
				after = append(slices.Clone(after), w)
				break
			}
		}
		for _, w := range after {
			if first+w < l { // a damaged trace may name launches that come later
				out = append(out, first+w)
			}
		}
	} else if l > first {
		out = append(out, l-1)
	}
	if len(out) > 0 {
		return out
	}
	for p := first - 1; p >= 0 && t.Launches[p].Segment == t.Launches[first-1].Segment; p-- {
		out = append(out, p)
	}
	return out
}

// Contributions are what each rOperator adds to the time of the inference, in nanoseconds, by its number in the plan:
// of the steps on the critical path the time that they computed, and the time before them in which nothing on the path
// did. They add up to the end of the last step.
func (t *Timeline) Contributions() []float64 {
	out := make([]float64, len(t.Plan.Ops))
	for _, l := range t.Critical() {
		r := &t.Runs[l.Run]
		out[r.Op] += l.Gap + r.Compute()
	}
	return out
}
