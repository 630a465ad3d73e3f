package trace

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestPerfetto(t *testing.T) {
	var b bytes.Buffer
	if err := chainTimeline(t, exact).WritePerfetto(&b); err != nil {
		t.Fatal(err)
	}
	var file struct {
		Events []event `json:"traceEvents"`
	}
	if err := json.Unmarshal(b.Bytes(), &file); err != nil {
		t.Fatal(err)
	}
	slices, arrows, threads := map[string]int{}, map[string]int{}, map[[2]int]bool{}
	ends := map[[2]int]float64{} // when the latest slice of each thread ends
	for _, e := range file.Events {
		switch e.Phase {
		case "X":
			slices[e.Name]++
			if *e.Dur <= 0 {
				t.Errorf("slice %s lasts %f", e.Name, *e.Dur)
			}
			thread := [2]int{e.PID, e.TID}
			if !threads[thread] {
				t.Errorf("slice %s is on a thread without a name", e.Name)
			}
			if e.Time < ends[thread]-1e-9 {
				t.Errorf("slice %s overlaps the one before it on its thread", e.Name)
			}
			ends[thread] = e.Time + *e.Dur
		case "s", "f":
			arrows[e.Phase]++
		case "M":
			threads[[2]int{e.PID, e.TID}] = true
		}
	}
	for name, want := range map[string]int{"a": 1, "e": 2, "wait": 2, "import": 2, "load": 1, "launches before": 4,
		"segment 0, rProgram": 1, "segment 1, wave 0": 1} {
		if slices[name] != want {
			t.Errorf("%d slices are called %s, want %d", slices[name], name, want)
		}
	}
	if arrows["s"] != 2 || arrows["f"] != 2 {
		t.Errorf("%v arrows, want two from c and d", arrows)
	}
}

// Perfetto rounds begin and duration to whole nanoseconds, and drops slices that overlap then. So slices that touch
// must not overlap by a nanosecond, whichever way it rounds.
func TestPerfettoSlicesTouch(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var b bytes.Buffer
	p := &perfetto{w: bufio.NewWriter(&b)}
	fmt.Fprint(p.w, "[")
	at := 0.0 // nanoseconds
	for range 1000 {
		s := slice{"x", at, at + 3000*r.Float64(), nil, -1}
		at = s.to
		p.slice(1, 1, &s)
	}
	fmt.Fprint(p.w, "]")
	var events []event
	if err := errors.Join(p.err, p.w.Flush(), json.Unmarshal(b.Bytes(), &events)); err != nil || len(events) != 1000 {
		t.Fatalf("%d events, %v", len(events), err)
	}
	for _, whole := range []func(float64) float64{math.Trunc, math.Round} {
		end := 0.0
		for i, e := range events {
			if from := whole(e.Time * 1000); from < end {
				t.Fatalf("slice %d begins %f ns before the one in front of it ends", i, end-from)
			} else {
				end = from + whole(*e.Dur*1000)
			}
		}
		if math.Abs(end-at) > 3 {
			t.Errorf("the last slice ends at %f ns, want %f", end, at)
		}
	}
}

// The page's data must survive names that look like markup, and the page must need nothing else.
func TestHTML(t *testing.T) {
	var b bytes.Buffer
	tl := chainTimeline(t, exact)
	if err := tl.WriteHTML(&b, tl.Report()); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	for _, foreign := range []string{"http:", "https:", "src=", "@DATA@", "@TITLE@"} {
		if strings.Contains(text, foreign) {
			t.Errorf("the page contains %q", foreign)
		}
	}
	_, rest, _ := strings.Cut(text, `<script type="application/json" id="data">`)
	data, _, found := strings.Cut(rest, "</script>")
	if !found {
		t.Fatal("the page has no data")
	}
	var d pageData
	if err := json.Unmarshal([]byte(data), &d); err != nil {
		t.Fatal(err)
	}
	if d.Ops[2].Name != "c </script>" || len(d.Runs.VEU) != 6 || d.Runs.From[1] != 3 || d.Runs.Computed[5] != 9900 ||
		len(d.Critical) != 3 {
		t.Errorf("%+v", d)
	}
}
