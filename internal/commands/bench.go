package commands

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/driver"
	"github.com/rammerc/rammerc/internal/engine"
	"github.com/rammerc/rammerc/internal/limits"
	"github.com/rammerc/rammerc/profiler/timing"
)

// BenchOptions are the flags of `rammerc bench`.
type BenchOptions struct {
	SubjectOptions
	Dirs       []string
	Runs       int
	Rounds     int // in which the runs are timed; 0 for one
	WarmUp     int
	RandomSeed uint64
	RandomMax  int64
	Transfers  bool // inputs and outputs in host memory: times include the copies
	Contexts   int  // how many contexts run at once in a measurement of its own; 0 for none
	Save       string
	// Baselines are what the libraries are compared with: a file that Save has written, or one library directory for each
	// of Dirs. MaxRegress is by which part of the baseline's latency a library may be slower.
	Baselines  []string
	MaxRegress float64
}

// BenchResult is what `rammerc bench` reports.
type BenchResult struct {
	Schema    string  `json:"schema"`
	Libraries []Bench `json:"libraries"`
	// Comparisons say for each library how its latency has changed, if there are baselines.
	Comparisons []Comparison `json:"comparisons,omitempty"`
}

const benchSchema = "rammerc/bench/v2"

// Bench is the latency of one library, in milliseconds. On a GPU, device events time an inference whose inputs and
// outputs lie in device memory. With Transfers, and always on the emulator, the host's clock times the whole call.
type Bench struct {
	Dir       string  `json:"dir"`
	Name      string  `json:"name"`              // the prefix of the library's symbols
	Dims      string  `json:"dims,omitempty"`    // of a library whose dims have ranges: "batch=1 seq=128"
	Program   string  `json:"program,omitempty"` // which one runs, by the extents that it takes
	Device    string  `json:"device"`
	Mode      string  `json:"mode"`
	Reason    string  `json:"reason,omitempty"`
	Transfers bool    `json:"transfers"`
	WarmUp    int     `json:"warm_up"`
	N         int     `json:"n"`
	Min       float64 `json:"min_ms"`
	P50       float64 `json:"p50_ms"`
	P90       float64 `json:"p90_ms"`
	P99       float64 `json:"p99_ms"`
	Max       float64 `json:"max_ms"`
	Mean      float64 `json:"mean_ms"`
	// Throughput is how many inferences one context makes in a second, one after another: 1000 / Mean.
	Throughput float64 `json:"inferences_per_s"`
	// AtOnce are several contexts at a time, with --contexts, and Copies what moving inputs and outputs takes on a GPU.
	AtOnce *AtOnce `json:"at_once,omitempty"`
	Copies *Copies `json:"copies,omitempty"`
	// Rounds are the medians of the rounds in which the runs were timed.
	Rounds []float64 `json:"rounds_ms"`
	Cold   Cold      `json:"cold_start"`
	// Predicted is what the plan was expected to take when it was made; 0 if the folder does not say so.
	Predicted float64 `json:"predicted_ms,omitempty"`
	Ratio     float64 `json:"predicted_by_measured,omitempty"` // Predicted / P50
}

// Cold is what a fresh process spends before its inferences are as fast as later ones, in milliseconds of the host's
// clock. The library's files may already be in the system's file cache.
type Cold struct {
	Load   float64 `json:"load_ms"`   // loading the library
	Create float64 `json:"create_ms"` // making a context: the driver's start, the code's and the weights' upload
	First  float64 `json:"first_ms"`  // the first run
}

// validate reports flags that make no sense together.
func (o *BenchOptions) validate() error {
	var l diag.List
	if o.Runs < 1 || o.WarmUp < 0 {
		l.Add(diag.New("bad-flag", "--runs %d --warm-up %d: want at least one run and no negative number", o.Runs,
			o.WarmUp))
	}
	if o.Contexts < 0 || o.Contexts > mostContexts {
		l.Add(diag.New("bad-flag", "--contexts %d: want at most %d", o.Contexts, mostContexts))
	}
	if o.Rounds < 1 || o.Rounds > o.Runs {
		l.Add(diag.New("bad-flag", "--rounds %d: want at least one round, and one run in each of them", o.Rounds))
	}
	if o.Save != "" {
		if info, err := os.Stat(filepath.Dir(o.Save)); err != nil || !info.IsDir() {
			l.Add(diag.New("cannot-write", "--save %s: there is no such folder", o.Save))
		}
	}
	return l.Err()
}

// RunBench times libraries one after another, and each in turns with its baseline if that is a library, too. The result
// is there, with an error, if a library is slower than it may be.
func RunBench(job *driver.Job, o BenchOptions) (r *BenchResult, err error) {
	defer job.Guard(&err)
	o.Rounds = cmp.Or(o.Rounds, 1)
	if err := o.validate(); err != nil {
		return nil, err
	}
	base, err := o.baselines()
	if err != nil {
		return nil, err
	}
	r = &BenchResult{Schema: benchSchema, Libraries: []Bench{}}
	for i, dir := range o.Dirs {
		b, before, err := o.bench(job, dir, base.dir(i))
		if err == nil && base != nil {
			var c Comparison
			c, err = base.compare(*b, before, o.MaxRegress)
			r.Comparisons = append(r.Comparisons, c)
		}
		if err != nil {
			return nil, err
		}
		r.Libraries = append(r.Libraries, *b)
	}
	if o.Save != "" {
		if err := r.save(o.Save); err != nil {
			return nil, err
		}
	}
	return r, r.regression(o.MaxRegress)
}

// timed is an open library, and what has been measured of it.
type timed struct {
	subject *subject
	library *engine.Library
	raw     [][]byte
	dir     string
	dims    string
	first   float64   // ms of the first run
	ms      []float64 // of all timed runs
	rounds  []float64 // the median of each round
	atOnce  *AtOnce   // of several contexts, if that is asked for
	copies  *Copies   // nil where tensors are not in device memory
}

// bench times a library, in turns with a baseline if there is one.
func (o *BenchOptions) bench(job *driver.Job, dir, baseline string) (b, before *Bench, err error) {
	var all []*timed
	defer func() {
		for _, t := range all {
			t.subject.close()
		}
	}()
	for _, d := range []string{dir, baseline} {
		if d == "" {
			continue
		}
		t, err := o.prepare(job, d)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, t)
	}
	if all[0].library.Name() != engine.Emu {
		defer timing.Alone(job.Waiting)()
	}
	done := job.Stage("bench")
	if err := o.time(all, job.Progress("timing")); err != nil {
		return nil, nil, err
	}
	if err := o.timeApart(all[0]); err != nil {
		return nil, nil, err
	}
	b = o.result(all[0])
	if len(all) > 1 {
		before = o.result(all[1])
	}
	done("%s: p50 %.4f ms, %.1f inferences a second", dir, b.P50, b.Throughput)
	return b, before, nil
}

// prepare opens a library and draws its inputs.
func (o *BenchOptions) prepare(job *driver.Job, dir string) (*timed, error) {
	s, l, err := o.open(job, dir)
	if err != nil {
		return nil, err
	}
	t := &timed{subject: s, library: l, dir: dir}
	t.dims = s.largestDims()
	at, err := s.seek()
	if err == nil {
		t.raw, err = l.Raw(engine.RandomInputsAt(s.inputs, o.RandomSeed, max(o.RandomMax, 1), at))
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return t, nil
}

// time runs all libraries in turns, a round each. Every round begins with its share of the untimed runs, since another
// library may have run before.
func (o *BenchOptions) time(all []*timed, progress func(done, of int)) error {
	for _, t := range all {
		var err error
		if t.first, err = t.library.Time(t.raw); err != nil {
			return err
		}
	}
	total := o.Runs * len(all)
	for round := range o.Rounds {
		for _, t := range all {
			ms, err := t.round(share(o.WarmUp, round, o.Rounds), share(o.Runs, round, o.Rounds), func() {
				done := 0
				for _, x := range all {
					done += len(x.ms)
				}
				progress(done, total)
			})
			if err != nil {
				return err
			}
			t.rounds = append(t.rounds, median(ms))
		}
	}
	return nil
}

// share is how many of n are in a round; the first rounds have what cannot be divided.
func share(n, round, rounds int) int {
	if round < n%rounds {
		return n/rounds + 1
	}
	return n / rounds
}

// median is the upper median of values, which are not empty.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

func (o *BenchOptions) result(t *timed) *Bench {
	ms, l := slices.Sorted(slices.Values(t.ms)), t.library
	at := func(q float64) float64 { return quantile(ms, q) }
	sum := 0.0
	for _, x := range ms {
		sum += x
	}
	b := &Bench{
		Dir: t.dir, Name: t.subject.name, Dims: t.dims, Program: l.Launch.Program, Device: l.Launch.Device, Mode: l.Launch.Mode,
		Reason:    l.Launch.Reason,
		Transfers: !l.OnDevice, WarmUp: o.WarmUp, N: len(ms), Min: ms[0], P50: at(0.5), P90: at(0.9), P99: at(0.99),
		Max: ms[len(ms)-1], Mean: sum / float64(len(ms)), Rounds: t.rounds, Cold: Cold{l.Load, l.Create, t.first},
		Throughput: 1000 * float64(len(ms)) / sum, AtOnce: t.atOnce, Copies: t.copies,
	}
	if b.Predicted = predictedMS(t.dir); b.Predicted > 0 && b.P50 > 0 && l.Name() != engine.Emu {
		b.Ratio = b.Predicted / b.P50
	}
	return b
}

// predictedMS reads from NAME.plan.json in a library directory what the plan was expected to take; 0 without one.
func predictedMS(dir string) float64 {
	files := limits.Matching(dir, "*.plan.json")
	if len(files) != 1 {
		return 0
	}
	data, err := limits.Read(files[0], limits.LargeText)
	if err != nil {
		return 0
	}
	var plan struct {
		Predicted float64 `json:"predicted_us"`
	}
	if json.Unmarshal(data, &plan) != nil {
		return 0
	}
	return plan.Predicted / 1000
}

// open opens a library directory. On a GPU, inputs and outputs are on the device unless transfers are to be timed too.
// Whether the library was built for a GPU is known only when it is open, so it may have to be opened once more.
func (o *BenchOptions) open(job *driver.Job, dir string) (*subject, *engine.Library, error) {
	sub := o.SubjectOptions
	sub.Path = dir
	for {
		s, err := openSubject(job, sub)
		if err != nil {
			return nil, nil, err
		}
		l, ok := s.engine.(*engine.Library)
		switch {
		case !ok:
			s.close()
			return nil, nil, diag.New("bad-flag", "%s: bench takes library directories", dir)
		case sub.OnDevice || o.Transfers || l.Name() == engine.Emu:
			return s, l, nil
		}
		s.close()
		sub.OnDevice = true
	}
}

// Text prints lines for each library: the latency, the cold start, and on a GPU how good the prediction was.
func (r *BenchResult) Text(w io.Writer) {
	for _, b := range r.Libraries {
		at := ""
		if b.Dims != "" {
			at = " at " + b.Dims + " by " + b.Program
		}
		fmt.Fprintf(w, "%s%s  %s, %s: min %.4f  p50 %.4f  p90 %.4f  p99 %.4f  max %.4f  mean %.4f ms  (n %d after %d)\n",
			b.Dir, at, b.Device, b.Mode, b.Min, b.P50, b.P90, b.P99, b.Max, b.Mean, b.N, b.WarmUp)
		fmt.Fprintf(w, "%s  cold start: library %.3f  context %.3f  first run %.3f ms\n",
			b.Dir, b.Cold.Load, b.Cold.Create, b.Cold.First)
		fmt.Fprintf(w, "%s  throughput: %.1f inferences/s of one context\n", b.Dir, b.Throughput)
		if a := b.AtOnce; a != nil {
			fmt.Fprintf(w, "%s  %d contexts at once: %.1f inferences/s, p50 %.4f  p99 %.4f  max %.4f ms  (n %d)\n",
				b.Dir, a.Contexts, a.Throughput, a.P50, a.P99, a.Max, a.N)
		}
		if c := b.Copies; c != nil {
			fmt.Fprintf(w, "%s  apart: host to device %.4f  compute %.4f  device to host %.4f ms\n", b.Dir, c.ToDevice, b.P50, c.ToHost)
		}
		if b.Ratio > 0 {
			fmt.Fprintf(w, "%s  predicted %.4f ms: %.2f of what was measured\n", b.Dir, b.Predicted, b.Ratio)
		}
	}
	r.compared(w)
}

// GoBench prints the medians in the format of Go's benchmarks, which benchstat reads.
func (r *BenchResult) GoBench(w io.Writer) {
	for _, b := range r.Libraries {
		fmt.Fprintf(w, "Benchmark%s %d %.0f ns/op\n", benchName(b.Dir), b.N, b.P50*1e6)
	}
}

func benchName(dir string) string {
	out := []rune{}
	for _, r := range dir {
		if r == ' ' || r == '\t' {
			r = '_'
		}
		out = append(out, r)
	}
	return "/" + string(out)
}
