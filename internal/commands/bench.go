package commands

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/driver"
	"github.com/rammerc/rammerc/internal/engine"
	"github.com/rammerc/rammerc/profiler/timing"
)

// BenchOptions are the flags of `rammerc bench`.
type BenchOptions struct {
	SubjectOptions
	Dirs       []string
	Runs       int
	WarmUp     int
	RandomSeed uint64
	RandomMax  int64
	Transfers  bool // inputs and outputs in host memory: times include the copies
}

// BenchResult is what `rammerc bench` reports.
type BenchResult struct {
	Schema    string  `json:"schema"`
	Libraries []Bench `json:"libraries"`
}

// Bench is the latency of one library, in milliseconds. On a GPU, device events time an inference whose inputs and
// outputs lie in device memory. With Transfers, and always on the emulator, the host's clock times the whole call.
type Bench struct {
	Dir       string  `json:"dir"`
	Dims      string  `json:"dims,omitempty"` // of a library whose dims have ranges: "batch=1 seq=128"
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
	Cold      Cold    `json:"cold_start"`
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

// RunBench times libraries one after another.
func RunBench(job *driver.Job, o BenchOptions) (r *BenchResult, err error) {
	defer job.Guard(&err)
	if o.Runs < 1 || o.WarmUp < 0 {
		return nil, diag.New("bad-flag", "--runs %d --warm-up %d: want at least one run and no negative number",
			o.Runs, o.WarmUp)
	}
	r = &BenchResult{Schema: "rammerc/bench/v1", Libraries: []Bench{}}
	for _, dir := range o.Dirs {
		b, err := o.bench(job, dir)
		if err != nil {
			return nil, err
		}
		r.Libraries = append(r.Libraries, *b)
	}
	return r, nil
}

func (o *BenchOptions) bench(job *driver.Job, dir string) (*Bench, error) {
	s, l, err := o.open(job, dir)
	if err != nil {
		return nil, err
	}
	defer s.close()
	if len(o.Dims) > 0 && !s.general() {
		return nil, diag.New("bad-flag", "--dim %s: %s has no dims with ranges", o.Dims[0], dir)
	}
	dims := s.largestDims()
	raw, err := l.Raw(engine.RandomInputs(s.inputs, o.RandomSeed, max(o.RandomMax, 1)))
	if err != nil {
		return nil, err
	}
	if l.Name() != engine.Emu {
		defer timing.Alone(job.Waiting)()
	}
	done := job.Stage("bench")
	first, err := l.Time(raw)
	if err != nil {
		return nil, err
	}
	ms, err := l.Bench(raw, o.WarmUp, o.Runs)
	if err != nil {
		return nil, err
	}
	sort.Float64s(ms)
	at := func(q float64) float64 { return ms[min(len(ms)-1, int(q*float64(len(ms))))] }
	b := &Bench{
		Dir: dir, Dims: dims, Device: l.Launch.Device, Mode: l.Launch.Mode, Reason: l.Launch.Reason, Transfers: !l.OnDevice,
		WarmUp: o.WarmUp, N: len(ms), Min: ms[0], P50: at(0.5), P90: at(0.9), P99: at(0.99), Max: ms[len(ms)-1],
		Cold: Cold{l.Load, l.Create, first},
	}
	if b.Predicted = predictedMS(dir); b.Predicted > 0 && b.P50 > 0 && l.Name() != engine.Emu {
		b.Ratio = b.Predicted / b.P50
	}
	done("%s: p50 %.4f ms", dir, b.P50)
	return b, nil
}

// predictedMS reads from NAME.plan.json in a library directory what the plan was expected to take; 0 without one.
func predictedMS(dir string) float64 {
	files, _ := filepath.Glob(filepath.Join(dir, "*.plan.json"))
	if len(files) != 1 {
		return 0
	}
	data, err := os.ReadFile(files[0])
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
			at = " at " + b.Dims
		}
		fmt.Fprintf(w, "%s%s  %s, %s: min %.4f  p50 %.4f  p90 %.4f  p99 %.4f  max %.4f ms  (n %d after %d)\n",
			b.Dir, at, b.Device, b.Mode, b.Min, b.P50, b.P90, b.P99, b.Max, b.N, b.WarmUp)
		fmt.Fprintf(w, "%s  cold start: library %.3f  context %.3f  first run %.3f ms\n",
			b.Dir, b.Cold.Load, b.Cold.Create, b.Cold.First)
		if b.Ratio > 0 {
			fmt.Fprintf(w, "%s  predicted %.4f ms: %.2f of what was measured\n", b.Dir, b.Predicted, b.Ratio)
		}
	}
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
