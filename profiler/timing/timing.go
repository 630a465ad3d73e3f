// Package timing times several forms of one program, its variants, on the device at hand.
//
// Variants are built as few libraries, because a build takes seconds; each is opened, run and timed by itself. What
// they compute must agree. Building, opening and running are the caller's (Bench), so that this package knows
// neither plans nor emitted sources:
//
//	Emit ─▶ Build ─▶ Open, Infer, Time, Close of every variant ─▶ compare outputs ─▶ Open, … once more
//	     ─▶ the contenders in turns, round by round ─▶ Preferred
package timing

import (
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/rammerc/rammerc/internal/tolerance"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/precision"
)

// Tensors are the outputs of an inference, by name.
type Tensors = map[string]*ir.Tensor

// Bench builds and opens the variants, which it knows by their numbers.
type Bench interface {
	// Emit writes the sources of one library that holds the variants into dir, an empty folder.
	Emit(dir string, variants []int) error
	// Build compiles the library in dir. It is called from several goroutines, each with a folder of its own.
	Build(dir string) error
	// Open opens a variant of the library in dir, in which it is the one at position.
	Open(dir string, variant, position int) (Program, error)
}

// Program is an opened variant. Its inputs are the same for all variants.
type Program interface {
	// Infer runs the program once and returns what it computes.
	Infer() (Tensors, error)
	// Time runs the program repeatedly and returns the median in microseconds.
	Time() (us float64, err error)
	Close() error
}

// Result is what came of a variant.
type Result struct {
	MeasuredUS float64   // the median of its rounds, in microseconds; 0 if the variant could not be timed
	Rounds     []float64 // what each of its rounds measured; the variants of a comparison have the first ones in common
	Problem    string    // why it could not be timed, on one line; "" if it was
}

// usualRounds is how often all variants are timed, one after another. So a disturbance of the device hits one round of
// several variants and not all rounds of one. Then the contenders, which come near to the fastest one, are timed in
// finalRounds more, because a median moves by one or two percent with where a process finds its memory.
const (
	usualRounds = 2
	finalRounds = 4
	contending  = 1.05 // times the fastest variant's time
)

// inferences is how often a variant runs before it is timed in the first round. The first inference launches its kernels one
// by one, the second as a CUDA graph, and both must be right.
const inferences = 2

// Comparison times variants.
type Comparison struct {
	Bench Bench
	// Groups has the group of each variant; those of one group share a library. Kernels of one library get equally
	// many registers a thread, so variants whose blocks have different numbers of threads should not share one.
	Groups []int
	Dir    string // a working folder
	// Reference computes the right outputs. It is asked where variants disagree, and in any case with Verify.
	Reference func() (Tensors, error)
	Verify    bool
	Rounds    int // how often all variants are timed; 0: as often as is usual, and contenders more often
	// Kept is the variant that is taken unless another is clearly faster; it always is a contender.
	Kept int
	// Precision is how the variants make products of float32: it says how far their outputs may differ.
	Precision precision.Precision
	// Progress is told how many of all timings are done. Waiting shows that work of unknown length goes on until end is
	// called, and Building that of several parts, whose ends built tells.
	Progress func(done, total int)
	Waiting  func(what string) (end func())
	Building func(what string, parts int) (built, end func())

	results []Result
	built   []place     // per variant
	outputs [][]Tensors // per variant: what its inferences computed
}

// place is where a built variant is; dir is "" for one that was not built.
type place struct {
	dir      string
	position int
}

// Run builds the variants, compares what they compute and times them. The results are in the order of the variants.
// A variant that cannot be built, run or timed, or computes something wrong, has its Problem there; the error is
// that of Reference.
func (c *Comparison) Run() ([]Result, error) {
	n := len(c.Groups)
	c.results, c.built, c.outputs = make([]Result, n), make([]place, n), make([][]Tensors, n)
	c.build()
	err := c.time()
	return c.results, err
}

// Preferred is the variant to take: the fastest one if it is clearly faster than kept, else kept. If kept has no time it
// is the fastest, and if none has any it is kept.
func Preferred(results []Result, kept int) int {
	best := kept
	for i, r := range results {
		if r.MeasuredUS > 0 && (results[best].MeasuredUS == 0 || r.MeasuredUS < results[best].MeasuredUS) {
			best = i
		}
	}
	if results[kept].MeasuredUS > 0 && !clearlyFaster(&results[best], &results[kept]) {
		return kept
	}
	return best
}

// clear is the part of a time that a variant must save to be clearly faster.
const clear = 0.01

// clearlyFaster reports that a is faster than b by more than what differs from one run to the next: in all rounds that
// both were timed in, and in the median by so much.
func clearlyFaster(a, b *Result) bool {
	for round := range min(len(a.Rounds), len(b.Rounds)) {
		if a.Rounds[round] >= b.Rounds[round] {
			return false
		}
	}
	return a.MeasuredUS <= (1-clear)*b.MeasuredUS
}

// library is a library in the making.
type library struct {
	dir      string
	variants []int
	err      error
}

// build makes a library of each group. Where that does not build, each variant of the group gets a library of its
// own, so that one of them does not stand in the way of the others.
func (c *Comparison) build() {
	byGroup := map[int]*library{}
	var shared []*library
	for i, group := range c.Groups {
		if byGroup[group] == nil {
			byGroup[group] = &library{}
			shared = append(shared, byGroup[group])
		}
		byGroup[group].variants = append(byGroup[group].variants, i)
	}
	c.buildAll(shared)
	var single []*library
	for _, l := range shared {
		if l.err == nil || len(l.variants) == 1 {
			continue
		}
		for _, i := range l.variants {
			single = append(single, &library{variants: []int{i}})
		}
	}
	c.buildAll(single)
}

// buildAll emits the libraries one after another and compiles them side by side, as many at a time as there are
// processors.
func (c *Comparison) buildAll(libraries []*library) {
	if len(libraries) == 0 {
		return
	}
	variants := 0
	finished := make(chan *library, len(libraries))
	free := make(chan struct{}, runtime.NumCPU())
	for _, l := range libraries {
		variants += len(l.variants)
		l.err = c.emit(l)
		go func() {
			free <- struct{}{}
			if l.err == nil {
				l.err = c.Bench.Build(l.dir)
			}
			<-free
			finished <- l
		}()
	}
	what := "building 1 plan"
	if variants > 1 {
		what = fmt.Sprintf("building %d plans", variants)
	}
	built, end := c.Building(what, len(libraries))
	for range libraries {
		c.note(<-finished)
		built()
	}
	end()
}

func (c *Comparison) emit(l *library) (err error) {
	if l.dir, err = os.MkdirTemp(c.Dir, ""); err != nil {
		return err
	}
	return c.Bench.Emit(l.dir, l.variants)
}

// note keeps how the build of a library ended.
func (c *Comparison) note(l *library) {
	for position, i := range l.variants {
		if l.err != nil {
			c.results[i].Problem = "it does not build: " + firstLine(l.err)
			continue
		}
		c.results[i].Problem = ""
		c.built[i] = place{l.dir, position}
	}
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(strings.TrimSpace(err.Error()), "\n")
	return line
}

// time runs and times all variants that were built, round by round. After the first round it discards those that
// compute something else than they should.
func (c *Comparison) time() error {
	defer Alone(c.Waiting)()
	rounds, more := c.Rounds, 0
	if rounds == 0 {
		rounds, more = usualRounds, finalRounds
	}
	all := make([]int, len(c.Groups))
	for i := range all {
		all[i] = i
	}
	for round := range rounds {
		c.round(all, round*len(all), rounds*len(all))
		if round == 0 {
			if err := c.discardWrong(); err != nil {
				return err
			}
		}
	}
	if last := c.contenders(); len(last) > 1 {
		for round := range more {
			c.round(last, round*len(last), more*len(last))
		}
	}
	return nil
}

// round times the variants that nothing is wrong with; done and total say how far the rounds are.
func (c *Comparison) round(variants []int, done, total int) {
	for k, i := range variants {
		if c.built[i].dir != "" && c.results[i].Problem == "" {
			c.timeOne(i)
		}
		c.Progress(done+k+1, total)
	}
}

// contenders are the variants that may still turn out to be the ones to take.
func (c *Comparison) contenders() []int {
	least := 0.0
	for _, r := range c.results {
		if r.MeasuredUS > 0 && (least == 0 || r.MeasuredUS < least) {
			least = r.MeasuredUS
		}
	}
	var out []int
	for i, r := range c.results {
		if r.MeasuredUS > 0 && (i == c.Kept || r.MeasuredUS <= contending*least) {
			out = append(out, i)
		}
	}
	return out
}

func (c *Comparison) timeOne(i int) {
	us, err := c.measure(i)
	if err != nil {
		c.discard(i, err)
		return
	}
	r := &c.results[i]
	r.Rounds = append(r.Rounds, us)
	sorted := slices.Sorted(slices.Values(r.Rounds))
	r.MeasuredUS = sorted[(len(sorted)-1)/2] // of two the better one: a disturbance makes times longer
}

func (c *Comparison) discard(i int, err error) {
	c.results[i] = Result{Problem: firstLine(err)}
}

func (c *Comparison) measure(i int) (us float64, err error) {
	program, err := c.Bench.Open(c.built[i].dir, i, c.built[i].position)
	if err != nil {
		return 0, err
	}
	defer program.Close()
	if len(c.outputs[i]) == 0 {
		for range inferences {
			out, err := program.Infer()
			if err != nil {
				return 0, err
			}
			c.outputs[i] = append(c.outputs[i], out)
		}
	}
	return program.Time()
}

// discardWrong discards variants that compute something else than they should. Variants that all agree are taken to
// be right, unless Verify asks the reference all the same.
func (c *Comparison) discardWrong() error {
	var first Tensors
	agree := true
	for _, outputs := range c.outputs {
		for _, out := range outputs {
			if first == nil {
				first = out
			}
			agree = agree && c.different(out, first) == nil
		}
	}
	if first == nil || agree && !c.Verify {
		return nil
	}
	want, err := c.Reference()
	if err != nil {
		return err
	}
	for i, outputs := range c.outputs {
		for _, out := range outputs {
			if err := c.different(out, want); err != nil {
				c.discard(i, err)
			}
		}
	}
	return nil
}

// different returns an error that names an output which is missing or differs by more than the tolerance, nil if
// there is none.
func (c *Comparison) different(got, want Tensors) error {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if got[name] == nil {
			return fmt.Errorf("output %s is missing", name)
		}
		if d := tolerance.Compare(name, got[name],
			want[name]); !d.Within(tolerance.LimitIn(c.Precision, want[name].DType)) {
			return fmt.Errorf("output %s is wrong: it differs by more than the tolerance", name)
		}
	}
	return nil
}
