package trace

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/schema"
)

// In a parallel graph a launch comes after the launches that the plan names, not after every launch that happened to
// end earlier.
func TestParallelLaunches(t *testing.T) {
	plan, err := ReadPlan([]byte(`{"ops":[{"name":"a"},{"name":"b"},{"name":"c"},{"name":"d"},{"name":"e"}],"segments":[
	 {"kind":"waves","waves":1,"steps":[[[4,0,0,0]]]},
	 {"kind":"parallel","waves":4,"nodes":[{"stream":0,"after":[]},{"stream":1,"after":[]},{"stream":1,"after":[]},{"stream":0,"after":[2]}],
	  "steps":[[[0,0,0,0],[3,0,3,0]],[[1,0,1,0],[2,0,2,0]]]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	ends := []float64{500, 9000, 2000, 4000, 9900}
	var steps []schema.TraceStep
	var launches []schema.TraceLaunch
	for i, end := range ends {
		segment, in, op, row := uint32(1), uint32(i-1), uint32(i-1), []uint32{0, 0, 2, 3, 1}[i]
		if i == 0 {
			segment, in, op = 0, 0, 4
		}
		steps = append(steps, exact.step(uint32(3), uint32(i), segment, row, op, 0, end-400, -1, end-400, end-400, end))
		l := exact.launch(3, uint32(i), segment, 0, end-450, end+50)
		l.InSegment = in
		launches = append(launches, l)
	}
	raw, err := Decode(encode(steps, launches))
	if err != nil {
		t.Fatal(err)
	}
	tl, err := Join(raw, plan)
	if err != nil {
		t.Fatal(err)
	}
	want := map[int]string{0: "", 1: "e", 2: "e", 3: "b", 4: "a"} // d comes after a and c, of which a ended later
	for l, before := range tl.lastBefore() {
		name := ""
		if before >= 0 {
			name = plan.Ops[tl.Runs[before].Op].Name
		}
		if name != want[l] {
			t.Errorf("launch %d comes after %q, want %q", l, name, want[l])
		}
	}
}

// Steps that are announced by counters or by tagged data are edges of the plan, like those with flags.
func TestPlanEdges(t *testing.T) {
	plan, err := ReadPlan([]byte(`{"schema":2,"ops":[{},{}],"segments":[{"kind":"rprogram","counters":1,
	 "steps":[[[0,0,0,1,0],[1,0,1,0,-1,-1,2]],[[0,1,0,1,0],[1,1,1,0,-1,0,0,-1,2]],[[1,2,1,0,-1]]],"follows":[[2,0,1,0,0,1]]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	s := plan.Segments[0].Steps
	for _, c := range []struct {
		step Step
		want []At
	}{
		{s[0][0], nil}, {s[0][1], []At{{0, 0}, {1, 0}}}, {s[1][1], []At{{0, 0}, {0, 0}, {1, 0}}},
		{s[2][0], []At{{1, 0}, {0, 1}}},
	} {
		if !slices.Equal(c.step.Needs, c.want) {
			t.Errorf("got %v, want %v", c.step.Needs, c.want)
		}
	}
}

// An rProgram that finds no room and goes on in waves leaves rows of the launch that it gave up. The library does not
// number launches without gaps then.
func TestAbandonedLaunch(t *testing.T) {
	steps, launches := exact.chain()
	for i := range steps {
		steps[i].Launch = 11
		if i < 4 {
			steps[i].Launch = 5 + uint32(i%2)
		}
	}
	launches[2].Launch, launches[3].Launch = 11, 11
	wave := exact.launch(7, 4, 0, 0, 8000, 8100)
	for i := range uint32(2) {
		wave.InSegment, wave.Launch = i+1, 5+i
		launches = append(launches, wave)
	}
	raw, err := Decode(encode(steps, launches))
	if err != nil {
		t.Fatal(err)
	}
	plan, _ := ReadPlan([]byte(chainPlan))
	tl, err := Join(raw, plan)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, l := range tl.Launches {
		kinds = append(kinds, l.name())
	}
	if got := strings.Join(kinds, "; "); got != "segment 0, wave 0; segment 0, wave 1; segment 1, wave 0" {
		t.Errorf("launches are %s", got)
	}
	for _, r := range tl.Runs {
		if r.Launch >= 3 || tl.Launches[r.Launch].Segment != r.Segment {
			t.Errorf("a step of segment %d is of launch %d", r.Segment, r.Launch)
		}
	}
}

func TestChunks(t *testing.T) {
	steps, launches := exact.chain()
	c := func(ns float64) uint64 { return exact.clock(3, ns) }
	launches[1].DroppedChunks = 4
	chunk := func(asked, issued, landed, wanted, full, freed uint64, step, number, bytes uint32) schema.TraceChunk {
		return schema.TraceChunk{
			Asked: asked, Issued: issued, Landed: landed, Wanted: wanted, Full: full, Freed: freed,
			Launch: 1, Step: step, VEU: 1, Number: number, Bytes: bytes,
		}
	}
	chunks := []schema.TraceChunk{
		chunk(c(60), c(80), c(440), c(160), c(460), c(900), 2, 0, 4096),
		chunk(c(80), c(90), 0, c(900), c(900), c(1000), 2, 1, 1024),     // the loader had ended
		chunk(c(80), c(90), c(95), c(900), 0, 0, 2, 2, 1024),            // not read: the plan and the program differ
		chunk(c(80), c(90), c(95), c(900), c(901), c(902), 77, 2, 1024), // of a step that was not recorded
		{},
	}
	raw, err := Decode(encodeAll(steps, launches, chunks))
	if err != nil {
		t.Fatal(err)
	}
	plan, _ := ReadPlan([]byte(chainPlan))
	tl, err := Join(raw, plan)
	if err != nil {
		t.Fatal(err)
	}
	if len(tl.Chunks) != 2 || tl.DroppedChunks != 6 {
		t.Fatalf("%d chunks, %d dropped, want 2 and 6", len(tl.Chunks), tl.DroppedChunks)
	}
	if a, b := tl.Chunks[0], tl.Chunks[1]; math.Abs(a.Landed-a.Issued-360) > 1e-6 || b.Landed != b.Full {
		t.Errorf("copies have landed at %v and %v", a.Landed, b.Landed)
	}
	r := tl.Report()
	if b := r.Ops[0]; b.Name != "b" || b.Streamed != 5120 || math.Abs(b.Stall-0.3) > 1e-9 || r.Lost != 6 ||
		math.Abs(r.PerVEU[1].Stall-0.3) > 1e-9 {
		t.Errorf("%+v", r)
	}
	var b bytes.Buffer
	if w := r.Weights; w == nil || w.Copies != 2 || w.Bytes != 5120 || math.Abs(w.Copy-(0.36+0.81)/2) > 1e-9 ||
		math.Abs(w.Ahead-(0.08+0.81)/2) > 1e-9 || w.There != 0.5 {
		t.Errorf("copies of weights are %+v", r.Weights)
	}
	if err := tl.WritePerfetto(&b); err != nil || strings.Count(b.String(), `"weights of b"`) != 2 {
		t.Errorf("%v; %s", err, b.String())
	}
	if !strings.Contains(b.String(), `"vEU 1 load 2 (SM 3)"`) {
		t.Error("copies that overlap are on one track")
	}
}

// Damaged rows must not hang the search for the critical path: each of its steps was computed before the next.
func TestCriticalPathEnds(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		s, l := exact.chain()
		for i := range s {
			for k := range s[i].Clock {
				s[i].Clock[k] = 5_000_000_000 + uint64(r.IntN(10000))
			}
		}
		raw, err := Decode(encode(s, l))
		if err != nil {
			t.Fatal(err)
		}
		plan, _ := ReadPlan([]byte(chainPlan))
		tl, err := Join(raw, plan)
		if err != nil {
			t.Fatal(err)
		}
		if path := tl.Critical(); len(path) > len(tl.Runs) {
			t.Fatalf("%d steps on the path", len(path))
		}
	}
}
