package tune

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/rammerc/rammerc/profiler/db"
)

// madeUp is a space whose times follow from the schedule: every class has a best candidate, which the costs do not know.
type madeUp struct {
	classes int
	timed   [][]Schedule
	swept   int  // schedules that were traced
	roomy   bool // everything fits
	exact   bool // there is a more accurate precision, which is faster
	pause   time.Duration
}

func (m *madeUp) Precisions() []string {
	if m.exact {
		return []string{"", "exact"}
	}
	return []string{""}
}
func (m *madeUp) Kinds() []string    { return []string{"waves", "rprogram"} }
func (m *madeUp) Policies() []string { return []string{"wavefront", "balanced"} }

func (m *madeUp) Classes(string) []Class {
	var out []Class
	for i := range m.classes {
		out = append(out, Class{Name: fmt.Sprint("op", i), Candidates: []string{"a", "b", "c"}, Share: float64(i + 1)})
	}
	return out
}

// us is 100 µs for each class, less 10 if it has its best candidate, and less 5 in all for an rProgram.
func (m *madeUp) us(x Schedule) float64 {
	t := 100 * float64(m.classes)
	for i := range m.classes {
		if x.Picks[fmt.Sprint("op", i)] == []string{"a", "b", "c"}[i%3] {
			t -= 10
		}
	}
	if x.Kind == "rprogram" {
		t -= 5
	}
	if x.Precision == "exact" {
		t /= 2
	}
	return t
}

func (m *madeUp) Predict(x Schedule) (Prediction, error) {
	if x.Picks["op0"] == "c" && !m.roomy {
		return Prediction{}, errors.New("it does not fit")
	}
	return Prediction{Plan: db.Hash(fmt.Sprint(x)), US: float64(len(fmt.Sprint(x)))}, nil
}

// Attribute says of each class what it takes.
func (m *madeUp) Attribute(_ context.Context, list []Schedule) ([][]Part, error) {
	var out [][]Part
	for _, x := range list {
		var parts []Part
		for i, c := range m.Classes("") {
			p := Part{Class: c.Name, Candidate: x.Picks[c.Name], Count: 1, US: 100}
			if p.Candidate == []string{"a", "b", "c"}[i%3] {
				p.US = 90
			}
			parts = append(parts, p)
		}
		out = append(out, parts)
	}
	m.swept += len(list)
	return out, nil
}

func (m *madeUp) Time(_ context.Context, list []Schedule, alone bool) ([]Trial, error) {
	time.Sleep(m.pause)
	m.timed = append(m.timed, slices.Clone(list))
	var out []Trial
	for _, x := range list {
		p, err := m.Predict(x)
		if err != nil {
			return nil, errors.New("BUG: a schedule that is not legal is timed")
		}
		t := Trial{Schedule: x, Plan: p.Plan, US: m.us(x)}
		if x.Policy == "balanced" && x.Kind == "waves" && len(x.Picks) == 0 {
			t.US, t.Problem = 0, "it does not build"
		}
		out = append(out, t)
	}
	return out, nil
}

func options(keep func([]Trial) error) Options {
	return Options{Seed: 1, Batch: 8, Until: time.Now().Add(300 * time.Millisecond), Keep: keep, Show: func(Status) {}}
}

var start = Schedule{Kind: "waves", Policy: "wavefront"}

// The search finds what the costs do not know, and tries no plan twice.
func TestSearch(t *testing.T) {
	space := &madeUp{classes: 6}
	seen := map[string]bool{}
	r, err := Search(t.Context(), space, start, options(func(list []Trial) error {
		for _, x := range list {
			if seen[x.Plan] && !x.Final {
				t.Errorf("%+v is tried twice", x.Schedule)
			}
			seen[x.Plan] = true
		}
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	if r.First.US != 600 || r.Best.US != 600-6*10-5 || !r.Best.Final || r.Problems != 1 || r.Tries < 20 {
		t.Errorf("%+v", r)
	}
	if last := space.timed[len(space.timed)-1]; !same(last[0], start) {
		t.Errorf("at the end %+v was compared, not what the search began with", last)
	}
}

// One sweep through the candidates finds the best one of every class, however many classes there are.
func TestSweep(t *testing.T) {
	space := &madeUp{classes: 60, roomy: true}
	opt := options(func([]Trial) error { return nil })
	opt.Until = time.Now().Add(time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	opt.Show = func(s Status) {
		if space.swept > 0 { // the batch after the sweep
			cancel()
		}
	}
	r, err := Search(ctx, space, start, opt)
	if err != nil {
		t.Fatal(err)
	}
	if want := 60 * 90.0; r.Best.US != want || space.swept > 4 {
		t.Errorf("%v µs after %d traced programs and %d trials, want %v", r.Best.US, space.swept, r.Tries, want)
	}
}

// A sweep says nothing of classes whose candidates all take the same, and of programs that could not be traced.
func TestGains(t *testing.T) {
	s := &search{space: &madeUp{classes: 2}}
	all := s.contributions([][]Part{
		{{"op0", "a", 2, 20}, {"op1", "a", 1, 10}},
		nil,
		{{"op0", "b", 2, 19.8}, {"op1", "b", 1, 8}},
		{{"op0", "c", 1, 30}, {"op1", "b", 1, 7}},
	})
	if got := all.poor(); !slices.Equal(got["op0"], []string{"c"}) || !slices.Equal(got["op1"], []string{"a"}) {
		t.Errorf("slower by far are %v", got)
	}
	got := s.gains("", all)
	if len(got) != 1 || got[0] != (gain{"op1", "b", 2.5}) {
		t.Errorf("%+v", got)
	}
	if x := taking(Schedule{Kind: "waves", Picks: map[string]string{"op0": "c"}}, got, 0); x.Picks["op0"] != "c" ||
		x.Picks["op1"] != "b" {
		t.Errorf("%+v", x)
	}
}

// Other precisions are tried, and searched in where they are faster.
func TestPrecisions(t *testing.T) {
	space := &madeUp{classes: 6, exact: true}
	r, err := Search(t.Context(), space, start, options(func([]Trial) error { return nil }))
	if err != nil || r.Best.Schedule.Precision != "exact" || r.Best.US >= 300 || r.First.Schedule.Precision != "" {
		t.Errorf("%+v, %v", r, err)
	}
}

// Where nothing is faster the search ends with what it began with.
func TestNothingFaster(t *testing.T) {
	space := &madeUp{}
	first := Schedule{Kind: "rprogram", Policy: "wavefront"}
	r, err := Search(t.Context(), space, first, options(func([]Trial) error { return nil }))
	if err != nil || !same(r.Best.Schedule, first) {
		t.Errorf("%+v, %v", r, err)
	}
}

// A search that is started again goes on: it times nothing that was timed.
func TestGoesOn(t *testing.T) {
	var known []Trial
	keep := func(list []Trial) error {
		known = append(known, list...)
		return nil
	}
	opt := options(keep)
	opt.Until = time.Now().Add(20 * time.Millisecond)
	if _, err := Search(t.Context(), &madeUp{classes: 6, pause: 5 * time.Millisecond}, start, opt); err != nil {
		t.Fatal(err)
	}
	before := map[string]bool{}
	for _, x := range known {
		before[x.Plan] = true
	}
	opt = options(func(list []Trial) error {
		for _, x := range list {
			if before[x.Plan] && !x.Final {
				t.Errorf("%+v was timed before", x.Schedule)
			}
		}
		return nil
	})
	opt.Known = slices.Clone(known)
	if r, err := Search(t.Context(), &madeUp{classes: 6}, start, opt); err != nil || r.Tries <= len(before) {
		t.Errorf("%+v, %v", r, err)
	}
}

// searchVariable makes the test binary a process that searches until it is killed; its value is the database.
const searchVariable = "RAMMER_TEST_SEARCH"

func logAt(path string) (*Log, error) {
	base, err := db.Open(path, "")
	if err != nil {
		return nil, err
	}
	return Beside(base, Key{Machine: db.Machine{GPU: "g"}, Program: "p"}), nil
}

func searchForever(path string) error {
	log, err := logAt(path)
	if err != nil {
		return err
	}
	known, err := log.Trials()
	if err != nil {
		return err
	}
	opt := Options{
		Seed: 1, Batch: 4, Until: time.Now().Add(time.Hour), Known: known, Show: func(Status) {},
		Keep: func(list []Trial) error {
			err := log.Append("m", list)
			for _, x := range list {
				fmt.Println(x.Plan) // it is on the disk now
			}
			return err
		},
	}
	_, err = Search(context.Background(), &madeUp{classes: 40, pause: time.Millisecond}, start, opt)
	return err
}

func TestMain(m *testing.M) {
	if path := os.Getenv(searchVariable); path != "" {
		fmt.Fprintln(os.Stderr, searchForever(path))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// A search that is killed at any moment loses no trial that it has kept, and tries none of them again.
func TestKilled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "measured.jsonl")
	r := rand.New(rand.NewPCG(3, 4))
	kept := map[string]int{}
	for range 20 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), searchVariable+"="+path)
		var out bytes.Buffer
		cmd.Stdout = &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(20+r.IntN(60)) * time.Millisecond)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		for _, plan := range bytes.Fields(out.Bytes()) {
			if kept[string(plan)]++; kept[string(plan)] > 1 {
				t.Fatalf("plan %s is timed again", plan)
			}
		}
	}
	log, err := logAt(path)
	if err != nil {
		t.Fatal(err)
	}
	trials, err := log.Trials()
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range trials {
		delete(kept, x.Plan)
	}
	if len(kept) > 0 {
		t.Errorf("%d trials are lost", len(kept))
	}
}

// Trials of another program, or of another machine, are not used.
func TestLogKey(t *testing.T) {
	base, err := db.Open(filepath.Join(t.TempDir(), "measured.jsonl"), "")
	if err != nil {
		t.Fatal(err)
	}
	key := Key{Machine: db.Machine{GPU: "g", Driver: "1"}, Program: "p"}
	if err := Beside(base, key).Append("m", []Trial{{Plan: "x", US: 1}, {Plan: "y", US: 2, Final: true}}); err != nil {
		t.Fatal(err)
	}
	trials, err := Beside(base, key).Trials()
	if err != nil || len(trials) != 2 || trials[1].Plan != "y" || !trials[1].Final {
		t.Errorf("%+v, %v", trials, err)
	}
	other := key
	other.Driver = "2"
	elsewhere := key
	elsewhere.Program = "q"
	for _, k := range []Key{other, elsewhere} {
		if trials, err := Beside(base, k).Trials(); err != nil || len(trials) > 0 {
			t.Errorf("%+v are used for %+v, %v", trials, k, err)
		}
	}
}
