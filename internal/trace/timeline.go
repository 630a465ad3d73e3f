package trace

import (
	"fmt"
	"maps"
	"slices"
	"sort"

	"github.com/rammerc/rammerc/schema"
)

// Timeline is a traced inference: what ran where and when. Times are in nanoseconds since the first launch began.
type Timeline struct {
	Plan     *Plan
	Runs     []Run    // sorted by vEU, then by launch, then by order in the program
	Launches []Launch // in order
	Span     float64  // when the last vEU came to the end of its last launch
	Chunks   []Chunk  // of streamed weights, by launch and vEU, then in order
	Dropped  int      // number of steps that were not recorded, because the trace had no room for them
	// DroppedChunks is the number of chunks that were not recorded, or whose step was not.
	DroppedChunks int

	number map[uint32]int // the library's number of a launch → index in Launches
}

// Run is a step as it ran.
type Run struct {
	Segment, Launch, VEU, Order int
	SM                          int
	Op, RTask                   int
	// Times of a step: Begun ≤ Loaded ≤ Ready ≤ Started ≤ Computed. Published is 0 where nobody waits for the step.
	Begun, Loaded, Ready, Started, Computed, Published float64
	Streamed                                           int     // bytes of its weights that came through the ring
	Stall                                              float64 // how much of its compute time it waited for them
}

// Load is the time in which it loaded the weights that stay on chip for the steps that follow.
func (r *Run) Load() float64 { return r.Loaded - r.Begun }

// Wait is the time in which it waited for steps of other vEUs.
func (r *Run) Wait() float64 { return r.Ready - r.Loaded }

// Import is the time in which it copied its operands to the import area.
func (r *Run) Import() float64 { return r.Started - r.Ready }

// Compute is the time in which the rTask computed.
func (r *Run) Compute() float64 { return r.Computed - r.Started }

// Chunk is a piece of a step's weights on its way through the ring: the loader asks for a free stage of the ring,
// issues the copy, the copy lands, and the rTask takes it. Asked ≤ Issued ≤ Landed ≤ Full ≤ Freed.
type Chunk struct {
	Run, Number, Bytes    int     // index in Timeline.Runs
	Asked, Issued, Landed float64 // by the loader: when it asked for a stage, issued the copy, saw it landed
	Wanted, Full, Freed   float64 // by the rTask: when it asked for the chunk, had it, gave the stage back
}

// Launch is one kernel launch.
type Launch struct {
	Segment, Wave int
	Kind          string // "rprogram", "wave" or "node"
	Begin, End    float64
	VEUs          []LaunchVEU // the vEUs that took part

	dropped, droppedChunks int
}

func (l *Launch) name() string {
	if l.Kind == "rprogram" {
		return fmt.Sprintf("segment %d, rProgram", l.Segment)
	}
	return fmt.Sprintf("segment %d, %s %d", l.Segment, l.Kind, l.Wave)
}

// LaunchVEU is a launch as one vEU saw it.
type LaunchVEU struct {
	VEU, SM             int
	Begun, Ready, Ended float64
}

// Join makes the timeline of what a library recorded, which was made from the plan. The trace has clocks and numbers of
// rows; the plan says which rTask a row is.
func Join(raw *Raw, plan *Plan) (*Timeline, error) {
	t := &Timeline{Plan: plan}
	if len(raw.Launches) == 0 {
		return nil, fmt.Errorf("the trace is empty")
	}
	c := fitClocks(raw)
	origin := raw.Launches[0].BegunTime
	first := c.at(raw.Launches[0].SM, raw.Launches[0].Begun, origin)
	for _, l := range raw.Launches {
		first = min(first, c.at(l.SM, l.Begun, origin))
	}
	at := func(sm uint32, clock uint64) float64 { return max(0, c.at(sm, clock, origin)-first) }
	if err := t.addLaunches(raw, at); err != nil {
		return nil, err
	}
	if err := t.addRuns(raw, at); err != nil {
		return nil, err
	}
	return t, t.addChunks(raw, at)
}

func (t *Timeline) addLaunches(raw *Raw, at func(sm uint32, clock uint64) float64) error {
	byNumber := map[uint32]*Launch{}
	for _, row := range raw.Launches {
		if int(row.Segment) >= len(t.Plan.Segments) || int(row.VEU) >= len(raw.Launches) {
			return mismatch("launch %d is of segment %d and vEU %d", row.Launch, row.Segment, row.VEU)
		}
		l := byNumber[row.Launch]
		if l == nil {
			l = t.newLaunch(&row)
			l.Begin = at(row.SM, row.Begun)
			byNumber[row.Launch] = l
		}
		v := LaunchVEU{int(row.VEU), int(row.SM), at(row.SM, row.Begun), at(row.SM, row.Ready), at(row.SM, row.Ended)}
		l.Begin, l.End = min(l.Begin, v.Begun), max(l.End, v.Ended)
		l.VEUs = append(l.VEUs, v)
		l.dropped += int(row.Dropped)
		l.droppedChunks += int(row.DroppedChunks)
	}
	dropAbandoned(raw, byNumber)
	numbers := slices.Sorted(maps.Keys(byNumber))
	t.number = map[uint32]int{}
	for i, n := range numbers {
		l := byNumber[n]
		t.number[n] = i
		t.Launches = append(t.Launches, *l)
		t.Dropped += l.dropped
		t.DroppedChunks += l.droppedChunks
		t.Span = max(t.Span, l.End)
	}
	return nil
}

// newLaunch makes the launch of a row, and finds out what kind of launch it is.
func (t *Timeline) newLaunch(row *schema.TraceLaunch) *Launch {
	l := &Launch{Segment: int(row.Segment), Wave: int(row.InSegment), Kind: "wave"}
	switch t.Plan.Segments[row.Segment].Kind {
	case "rprogram": // number 0 is the persistent launch; number w+1 is wave w, when the rProgram runs in waves
		l.Wave--
		if row.InSegment == 0 {
			l.Kind, l.Wave = "rprogram", 0
		}
	case "graph", "parallel":
		l.Kind = "node"
	}
	return l
}

// dropAbandoned drops launches that did no work. An rProgram that finds no room on the device gives up its persistent
// launch and runs in waves, but the rows of the launch that it gave up stay in the trace. The rows of the steps are
// those of the latest run, so the kind of launch that they name is the one that counts.
func dropAbandoned(raw *Raw, byNumber map[uint32]*Launch) {
	ran := map[int]map[string]bool{} // for each segment, the kinds of launch that steps name
	for i := range raw.Steps {
		if l := byNumber[raw.Steps[i].Launch]; l != nil {
			if ran[l.Segment] == nil {
				ran[l.Segment] = map[string]bool{}
			}
			ran[l.Segment][l.Kind] = true
		}
	}
	maps.DeleteFunc(byNumber, func(_ uint32, l *Launch) bool {
		kinds := ran[l.Segment]
		return len(kinds) == 1 && !kinds[l.Kind]
	})
}

func (t *Timeline) addRuns(raw *Raw, at func(sm uint32, clock uint64) float64) error {
	places := make([][]At, len(t.Plan.Segments))
	for i, s := range t.Plan.Segments {
		for v, steps := range s.Steps {
			for order := range steps {
				places[i] = append(places[i], At{v, order})
			}
		}
	}
	for i := range raw.Steps {
		row := &raw.Steps[i]
		launch, ok := t.number[row.Launch]
		if !ok || int(row.Segment) >= len(places) || int(row.Step) >= len(places[row.Segment]) {
			return mismatch("it has step %d of segment %d", row.Step, row.Segment)
		}
		p := places[row.Segment][row.Step]
		if s := &t.Plan.Segments[row.Segment].Steps[p.VEU][p.Order]; s.Op != int(row.Op) || s.RTask != int(row.RTask) {
			return mismatch("vEU %d ran rTask %d of rOperator %d as step %d, planned is %d of %d", p.VEU, row.RTask,
				row.Op, p.Order, s.RTask, s.Op)
		}
		t.Runs = append(t.Runs, makeRun(row, launch, p, at))
	}
	sort.SliceStable(t.Runs, func(i, j int) bool {
		a, b := &t.Runs[i], &t.Runs[j]
		if a.VEU != b.VEU {
			return a.VEU < b.VEU
		}
		if a.Launch != b.Launch {
			return a.Launch < b.Launch
		}
		return a.Order < b.Order
	})
	return nil
}

// addChunks gives each chunk to the step whose weights it holds. Chunks of steps that were not recorded are left out.
func (t *Timeline) addChunks(raw *Raw, at func(sm uint32, clock uint64) float64) error {
	byRow := map[[2]uint32]int{} // from segment and row to the run
	for i := range t.Runs {
		r := &t.Runs[i]
		row := r.Order
		for _, steps := range t.Plan.Segments[r.Segment].Steps[:r.VEU] {
			row += len(steps)
		}
		byRow[[2]uint32{uint32(r.Segment), uint32(row)}] = i
	}
	for _, c := range raw.Chunks {
		i, ok := byRow[[2]uint32{c.Segment, c.Step}]
		if !ok || c.Issued < c.Asked || c.Full < c.Issued || c.Wanted > c.Full || c.Freed < c.Full {
			t.DroppedChunks++
			continue
		}
		r := &t.Runs[i]
		sm := uint32(r.SM)
		if c.Landed < c.Issued || c.Landed > c.Full { // the rTask saw it before the loader did
			c.Landed = c.Full
		}
		x := Chunk{
			i, int(c.Number), int(c.Bytes),
			at(sm, c.Asked), at(sm, c.Issued), at(sm, c.Landed), at(sm, c.Wanted), at(sm, c.Full), at(sm, c.Freed),
		}
		r.Streamed += x.Bytes
		r.Stall += x.Full - x.Wanted
		t.Chunks = append(t.Chunks, x)
	}
	return nil
}

// makeRun translates a row. A point in time that did not occur, such as the end of an import where nothing is imported,
// is put at the point before it.
func makeRun(row *schema.TraceStep, launch int, p At, at func(sm uint32, clock uint64) float64) Run {
	r := Run{
		Segment: int(row.Segment), Launch: launch, VEU: p.VEU, Order: p.Order, SM: int(row.SM),
		Op: int(row.Op), RTask: int(row.RTask), Begun: at(row.SM, row.Clock[schema.TraceBegun]),
	}
	last := r.Begun
	for _, x := range []struct {
		point schema.TracePoint
		to    *float64
	}{
		{schema.TraceLoaded, &r.Loaded}, {schema.TraceReady, &r.Ready},
		{schema.TraceStarted, &r.Started}, {schema.TraceComputed, &r.Computed},
	} {
		if clock := row.Clock[x.point]; clock >= row.Clock[schema.TraceBegun] {
			last = max(last, at(row.SM, clock))
		}
		*x.to = last
	}
	if clock := row.Clock[schema.TracePublished]; clock >= row.Clock[schema.TraceBegun] && clock > 0 {
		r.Published = max(r.Computed, at(row.SM, clock))
	}
	return r
}

func mismatch(format string, args ...any) error {
	return fmt.Errorf("the trace does not fit the plan: "+format, args...)
}
