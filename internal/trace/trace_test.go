package trace

import (
	"bytes"
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/schema"
)

// chainPlan has two vEUs. In its first segment, an rProgram, vEU 0 runs a and c, and vEU 1 runs b and d; c waits for b,
// and d for a. Its second segment runs in waves, after all of these.
const chainPlan = `{"name":"chain","model":"chain.onnx","device":"emu4","arch":"emu",
 "ops":[{"name":"a","kind":"K","rtasks":1,"predicted_ns":100,"source":"measured","nodes":["na"]},{"name":"b","kind":"K","rtasks":1,"nodes":["nb"]},
        {"name":"c </script>","kind":"K","rtasks":1,"nodes":[]},{"name":"d","kind":"K","rtasks":1,"nodes":["nd"]},{"name":"e","kind":"K","rtasks":2,"nodes":["ne"]}],
 "segments":[{"kind":"rprogram","veus":2,"waves":2,"steps":[[[0,0,0,1],[2,0,1,0,1,0]],[[1,0,0,1],[3,0,1,0,0,0]]]},
             {"kind":"waves","veus":2,"waves":1,"steps":[[[4,0,0,0]],[[4,1,0,0]]]}]}`

// machine makes rows with clocks as a GPU has them: each multiprocessor counts cycles from a start of its own, and the
// device's timer moves in coarse steps.
type machine struct {
	rate  float64 // cycles per nanosecond
	grain uint64  // nanoseconds
	start map[uint32]uint64
}

func (m *machine) clock(sm uint32, ns float64) uint64 {
	return m.start[sm] + uint64(math.Round(ns*m.rate))
}

func (m *machine) time(ns float64) uint64 { return (5_000_000_000 + uint64(ns)) / m.grain * m.grain }

func (m *machine) step(sm, launch, segment, step, op, rtask uint32, at ...float64) schema.TraceStep {
	r := schema.TraceStep{Time: m.time(at[0]), SM: sm, Launch: launch + 1, Segment: segment, Step: step, Op: op,
		RTask: rtask}
	for i, ns := range at {
		if ns >= 0 {
			r.Clock[i] = m.clock(sm, ns)
		}
	}
	return r
}

func (m *machine) launch(sm, launch, segment, veu uint32, begin, end float64) schema.TraceLaunch {
	return schema.TraceLaunch{
		Begun: m.clock(sm, begin), Ready: m.clock(sm, begin+10), Ended: m.clock(sm, end), BegunTime: m.time(begin),
		EndedTime: m.time(end),
		SM:        sm, Launch: launch + 1, Segment: segment, VEU: veu,
	}
}

// chain is a run of chainPlan in which b is slow: c waits for it, while what d needs is there when d begins.
func (m *machine) chain() ([]schema.TraceStep, []schema.TraceLaunch) {
	return []schema.TraceStep{
			m.step(7, 0, 0, 0, 0, 0, 100, -1, 100, 110, 1110, 1200),
			m.step(7, 0, 0, 1, 2, 0, 1210, 1310, 5600, 5650, 7650),
			m.step(3, 0, 0, 2, 1, 0, 150, -1, 150, 150, 5000, 5100),
			m.step(3, 0, 0, 3, 3, 0, 5110, -1, 5600, 5600, 5700),
			m.step(3, 1, 1, 0, 4, 0, 9000, -1, 9000, 9000, 9500),
			m.step(7, 1, 1, 1, 4, 1, 9000, -1, 9000, 9000, 9900),
		}, []schema.TraceLaunch{
			m.launch(7, 0, 0, 0, 0, 8000), m.launch(3, 0, 0, 1, 50, 6000),
			m.launch(3, 1, 1, 0, 8900, 9600), m.launch(7, 1, 1, 1, 8900, 10000),
		}
}

func encode(steps []schema.TraceStep, launches []schema.TraceLaunch) []byte {
	return encodeAll(steps, launches, nil)
}

func encodeAll(steps []schema.TraceStep, launches []schema.TraceLaunch, chunks []schema.TraceChunk) []byte {
	h := schema.TraceHeader{
		Version: schema.TraceVersion, HeaderBytes: schema.TraceHeaderBytes, StepBytes: schema.TraceStepBytes,
		LaunchBytes: schema.TraceLaunchBytes, ChunkBytes: schema.TraceChunkBytes,
		Steps: uint64(len(steps)), Launches: uint64(len(launches)), Chunks: uint64(len(chunks)),
	}
	copy(h.Magic[:], schema.TraceMagic)
	var b bytes.Buffer
	for _, part := range []any{h, steps, launches, chunks} {
		if err := binary.Write(&b, binary.LittleEndian, part); err != nil {
			panic(err)
		}
	}
	return b.Bytes()
}

func chainTimeline(t *testing.T, m *machine) *Timeline {
	t.Helper()
	raw, err := Decode(encode(m.chain()))
	if err != nil {
		t.Fatal(err)
	}
	plan, err := ReadPlan([]byte(chainPlan))
	if err != nil {
		t.Fatal(err)
	}
	tl, err := Join(raw, plan)
	if err != nil {
		t.Fatal(err)
	}
	return tl
}

var exact = &machine{rate: 1, grain: 1, start: map[uint32]uint64{7: 5_000_000_000, 3: 5_000_000_000}}

func TestTimeline(t *testing.T) {
	tl := chainTimeline(t, exact)
	if len(tl.Runs) != 6 || len(tl.Launches) != 2 || tl.Span != 10000 {
		t.Fatalf("%d runs, %d launches, span %f", len(tl.Runs), len(tl.Launches), tl.Span)
	}
	c := tl.Runs[1]
	want := Run{Segment: 0, Launch: 0, VEU: 0, Order: 1, SM: 7, Op: 2, RTask: 0, Begun: 1210, Loaded: 1310, Ready: 5600,
		Started: 5650, Computed: 7650}
	if c != want {
		t.Errorf("got  %+v\nwant %+v", c, want)
	}
	if l := tl.Launches[1]; l.Kind != "wave" || l.Begin != 8900 || l.End != 10000 || tl.Launches[0].Kind != "rprogram" {
		t.Errorf("%+v", tl.Launches)
	}
}

// With clocks at 1.755 GHz that start at different values, and a timer that moves every 32 ns, the timeline is the same
// to within 32 ns.
func TestClocksOfMultiprocessors(t *testing.T) {
	m := &machine{rate: 1.755, grain: 32, start: map[uint32]uint64{7: 987_654_321_000, 3: 12_345}}
	want, got := chainTimeline(t, exact), chainTimeline(t, m)
	for i := range want.Runs {
		a, b := want.Runs[i], got.Runs[i]
		for _, d := range []float64{a.Begun - b.Begun, a.Started - b.Started, a.Computed - b.Computed} {
			if math.Abs(d) > 40 {
				t.Errorf("vEU %d, step %d: got %+v, want %+v", a.VEU, a.Order, b, a)
			}
		}
		if d := a.Compute() - b.Compute(); math.Abs(d) > 0.02*a.Compute() {
			t.Errorf("vEU %d, step %d computes for %f ns, want %f", a.VEU, a.Order, b.Compute(), a.Compute())
		}
	}
}

func TestCriticalPath(t *testing.T) {
	tl := chainTimeline(t, exact)
	type link struct {
		op, by string
		gap    float64
	}
	var got []link
	for _, l := range tl.Critical() {
		got = append(got, link{tl.Plan.Ops[tl.Runs[l.Run].Op].Name, l.By, l.Gap})
	}
	want := []link{{"b", ByStart, 150}, {"c </script>", ByWait, 650}, {"e", ByLaunch, 1350}}
	if len(got) != len(want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	r := tl.Report()
	// The path covers the time up to the end of the last rTask.
	if sum := r.Path.Compute + r.Path.Wait + r.Path.Order + r.Path.Launch; math.Abs(sum-9.9) > 1e-9 {
		t.Errorf("the critical path sums up to %f µs, want 9.9: %+v", sum, r.Path)
	}
}

func TestReport(t *testing.T) {
	r := chainTimeline(t, exact).Report()
	if r.Span != 10 || r.RTasks != 6 || r.Launched != 2 || r.VEUs != 2 || r.SMs != 2 {
		t.Errorf("%+v", r)
	}
	var names []string
	for _, o := range r.Ops {
		names = append(names, o.Name[:1])
	}
	if got := strings.Join(names, ""); got != "bcead" {
		t.Errorf("rOperators by time: %s", got)
	}
	near := func(what string, got, want float64) {
		if math.Abs(got-want) > 1e-9 {
			t.Errorf("%s is %f, want %f", what, got, want)
		}
	}
	e, a := r.Ops[2], r.Ops[3]
	near("compute of e", e.Compute, 1.4)
	near("mean of e", e.Mean, 0.7)
	near("maximum of e", e.Max, 0.9)
	near("critical share of e", e.Share, 0.09)
	near("predicted time of a", a.Predicted, 0.1)
	near("ratio of a", a.Ratio, 10)
	if a.Source != "measured" {
		t.Errorf("the time of a is %q, want measured", a.Source)
	}
	near("wait of c", r.Ops[1].Wait, 4.29)
	near("import of c", r.Ops[1].Import, 0.05)
	near("load of c", r.Ops[1].Load, 0.1)
	if e.Predicted != 0 || e.Ratio != 0 {
		t.Errorf("e has no predicted time, the report says %f", e.Predicted)
	}
	near("use of vEU 1", r.PerVEU[1].Utilisation, (4.85+0.1+0.9)/10)
	s := r.Shares
	near("all shares", s.Compute+s.Load+s.Wait+s.Import+s.Idle, 1)
}

func TestDroppedSteps(t *testing.T) {
	steps, launches := exact.chain()
	launches[0].Dropped = 1
	plan, _ := ReadPlan([]byte(chainPlan))
	raw, err := Decode(encode(append(steps[:1], steps[2:]...), launches))
	if err != nil {
		t.Fatal(err)
	}
	tl, err := Join(raw, plan)
	if err != nil {
		t.Fatal(err)
	}
	if tl.Dropped != 1 || len(tl.Runs) != 5 || len(tl.Critical()) == 0 {
		t.Errorf("%d runs, %d dropped", len(tl.Runs), tl.Dropped)
	}
}

func TestMismatches(t *testing.T) {
	good := func() ([]schema.TraceStep, []schema.TraceLaunch) { return exact.chain() }
	for name, c := range map[string]struct {
		spoil func(s []schema.TraceStep, l []schema.TraceLaunch)
		want  string
	}{
		"segment": {func(s []schema.TraceStep, _ []schema.TraceLaunch) { s[0].Segment = 2 },
			"step 0 of segment 2"},
		"step": {func(s []schema.TraceStep, _ []schema.TraceLaunch) { s[0].Step = 4 }, "step 4 of segment 0"},
		"launch": {func(s []schema.TraceStep, _ []schema.TraceLaunch) { s[0].Launch = 9 },
			"step 0 of segment 0"},
		"rTask": {func(s []schema.TraceStep, _ []schema.TraceLaunch) { s[1].RTask = 3 },
			"ran rTask 3 of rOperator 2"},
		"launch's own": {func(_ []schema.TraceStep, l []schema.TraceLaunch) { l[0].Segment = 7 }, "is of segment 7"},
		"vEU": {func(_ []schema.TraceStep, l []schema.TraceLaunch) { l[0].VEU = 1 << 31 },
			"is of segment 0 and vEU 2147483648"},
		"lost launches": {func(_ []schema.TraceStep, l []schema.TraceLaunch) { l[2].Launch, l[3].Launch = 5, 5 },
			"step 0 of segment 1"},
		"nothing": {func(_ []schema.TraceStep, l []schema.TraceLaunch) { clear(l) }, "is empty"},
	} {
		s, l := good()
		c.spoil(s, l)
		raw, err := Decode(encode(s, l))
		if err != nil {
			t.Fatal(err)
		}
		plan, _ := ReadPlan([]byte(chainPlan))
		if _, err := Join(raw, plan); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
	for _, bad := range []string{`{`, `{"segments":[{"steps":[[[0,0,0]]]}]}`, `{"segments":[{"steps":[[[0,0,0,0]]]}]}`,
		`{"ops":[{}],"segments":[{"steps":[[[0,0,0,0,1,0]]]}]}`,
		`{"ops":[{}],"segments":[{"steps":[[[0,0,0,0,0,5]]]}]}`,
		`{"ops":[{}],"segments":[{"steps":[[[0,0,0,0]]],"follows":[[0,0,0]]}]}`,
		`{"ops":[{}],"segments":[{"steps":[[[0,0,0,0]]],"follows":[[0,1,0,0]]}]}`,
		`{"schema":2,"ops":[{}],"segments":[{"counters":1,"steps":[[[0,0,0,0,1]]]}]}`,
		`{"ops":[{}],"segments":[{"steps":[],"nodes":[{"after":[0]}]}]}`} {
		if _, err := ReadPlan([]byte(bad)); err == nil {
			t.Errorf("the plan %s was taken", bad)
		}
	}
}

func FuzzDecode(f *testing.F) {
	whole := encode(exact.chain())
	f.Add(whole)
	f.Add(whole[:70])
	f.Add([]byte(schema.TraceMagic))
	plan, err := ReadPlan([]byte(chainPlan))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		raw, err := Decode(data)
		if err != nil {
			return
		}
		tl, err := Join(raw, plan)
		if err != nil {
			return
		}
		if err := tl.WritePerfetto(&bytes.Buffer{}); err != nil {
			t.Error(err)
		}
		tl.Report()
	})
}
