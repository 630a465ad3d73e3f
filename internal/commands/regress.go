package commands

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/aclements/go-moremath/stats"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/driver"
	"github.com/rammerc/rammerc/internal/outdir"
)

// Comparison says how the latency of a library has changed.
type Comparison struct {
	Dir      string  `json:"dir"`
	Baseline string  `json:"baseline"` // a library directory, or a file that bench --save has written
	Paired   bool    `json:"paired"`   // both were timed in turns; else the baseline's times come from a file
	Before   float64 `json:"before_ms"`
	After    float64 `json:"after_ms"`
	Change   float64 `json:"change"` // After/Before - 1, of medians
	// P is how probable such times would be if the library were slower by MaxRegress and no more.
	P      float64 `json:"p_value"`
	Slower bool    `json:"slower"` // by more than MaxRegress: P is below significance
}

// significance is the probability of a false alarm for a library that is slower by exactly what is allowed.
const significance = 0.01

// baselines are what libraries are compared with: library directories, or what an earlier run has saved.
type baselines struct {
	dirs  []string
	file  string
	saved []Bench
}

// baselines reads what --baseline names; nil if it names nothing.
func (o *BenchOptions) baselines() (*baselines, error) {
	if len(o.Baselines) == 0 {
		return nil, nil
	}
	if o.Rounds < leastRounds {
		return nil, diag.New("bad-flag", "--rounds %d: a comparison needs at least %d rounds", o.Rounds, leastRounds)
	}
	first := o.Baselines[0]
	info, err := os.Stat(first)
	if err == nil && !info.IsDir() && len(o.Baselines) == 1 {
		return readBaseline(first)
	}
	if err != nil {
		return nil, &diag.Diagnostic{ID: "cannot-read", File: first, Message: diag.Reason(err).Error(),
			Help: "--baseline takes a file that bench --save has written, or a library directory"}
	}
	if len(o.Baselines) != len(o.Dirs) {
		return nil, diag.New("bad-flag", "--baseline: want one file, or one library directory for each library: %d, not %d",
			len(o.Dirs), len(o.Baselines))
	}
	return &baselines{dirs: o.Baselines}, nil
}

// leastRounds is the number of rounds from which on a difference can be significant.
const leastRounds = 6

func readBaseline(file string) (*baselines, error) {
	data, err := os.ReadFile(file)
	var r BenchResult
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err == nil && r.Schema != benchSchema {
		err = fmt.Errorf("its schema is %q, want %q", r.Schema, benchSchema)
	}
	for _, b := range r.Libraries {
		if err == nil && len(b.Rounds) < leastRounds {
			err = fmt.Errorf("%s was timed in %d rounds; a comparison needs at least %d", b.Dir, len(b.Rounds),
				leastRounds)
		}
	}
	if err != nil {
		return nil, &diag.Diagnostic{ID: "bad-baseline", File: file,
			Message: "is not what bench --save writes: " + diag.Reason(err).Error()}
	}
	return &baselines{file: file, saved: r.Libraries}, nil
}

// dir is the baseline of library i that is to be timed in turns with it; "" if there is none.
func (l *baselines) dir(i int) string {
	if l == nil || i >= len(l.dirs) {
		return ""
	}
	return l.dirs[i]
}

// compare compares a library with what was timed in turns with it, or else with what the file has of it.
func (l *baselines) compare(now Bench, before *Bench, allowed float64) (Comparison, error) {
	c := Comparison{Dir: now.Dir, Baseline: l.file, Paired: before != nil}
	if before == nil {
		for i, b := range l.saved {
			if b.Name == now.Name && b.Dims == now.Dims && b.Transfers == now.Transfers {
				before = &l.saved[i]
			}
		}
		if before == nil {
			return c, &diag.Diagnostic{ID: "bad-baseline", File: l.file,
				Message: fmt.Sprintf("has no times of %s (library %s)", now.Dir, now.Name)}
		}
	} else {
		c.Baseline = before.Dir
	}
	if before.Device != now.Device {
		return c, &diag.Diagnostic{ID: "bad-baseline", File: c.Baseline,
			Message: fmt.Sprintf("was timed on %s, and %s on %s", before.Device, now.Dir, now.Device)}
	}
	c.Before, c.After = median(before.Rounds), median(now.Rounds)
	c.Change = c.After/c.Before - 1
	c.P = probability(now.Rounds, before.Rounds, allowed, c.Paired)
	c.Slower = c.P < significance
	return c, nil
}

// probability is how probable rounds as slow as those of now would be if the library had become slower by the part
// allowed of before's latency and no more. Rounds that were made in turns are compared in pairs, by Student's t-test of
// the logarithms of their ratios; others by the U-test of Mann and Whitney.
func probability(now, before []float64, allowed float64, paired bool) float64 {
	limit := make([]float64, len(before))
	for i, b := range before {
		limit[i] = b * (1 + allowed)
	}
	if !paired {
		r, err := stats.MannWhitneyUTest(now, limit, stats.LocationGreater)
		if errors.Is(err, stats.ErrSamplesEqual) {
			return 1
		}
		return r.P
	}
	ratios := stats.Sample{Xs: make([]float64, len(now))}
	for i := range now {
		ratios.Xs[i] = math.Log(now[i] / limit[i])
	}
	r, err := stats.OneSampleTTest(ratios, 0, stats.LocationGreater)
	if errors.Is(err, stats.ErrZeroVariance) { // all ratios are the same
		if ratios.Xs[0] > 0 {
			return 0
		}
		return 1
	}
	return r.P
}

// regression is the error that libraries are slower than they may be; nil if none is.
func (r *BenchResult) regression(allowed float64) error {
	var slower []string
	for _, c := range r.Comparisons {
		if c.Slower {
			slower = append(slower, c.Dir)
		}
	}
	if slower == nil {
		return nil
	}
	return &driver.CheckError{Message: fmt.Sprintf("slower than the baseline by more than %s: %s", percent(allowed),
		strings.Join(slower, ", "))}
}

// save writes r where a later --baseline finds it.
func (r *BenchResult) save(file string) error {
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return outdir.WriteFile(file, append(text, '\n'))
}

// compared prints a table of the comparisons, if there are any.
func (r *BenchResult) compared(w io.Writer) {
	if len(r.Comparisons) == 0 {
		return
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "LIBRARY\tBASELINE\tBEFORE\tAFTER\tCHANGE\tP\t")
	for _, c := range r.Comparisons {
		verdict := ""
		if c.Slower {
			verdict = "SLOWER"
		}
		fmt.Fprintf(t, "%s\t%s\t%.4f ms\t%.4f ms\t%+.1f %%\t%.3f\t%s\n", c.Dir, c.Baseline, c.Before, c.After,
			100*c.Change, c.P, verdict)
	}
	t.Flush()
}
