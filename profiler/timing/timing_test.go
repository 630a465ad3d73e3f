package timing

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/precision"
)

// fakeBench has variants whose behaviour is written down.
type fakeBench struct {
	us      map[int][]float64 // medians of a variant, round by round, the last one for all others; a negative one is a failure
	outputs map[int][]float32 // what the inferences of a variant compute, in turn; 1 for those without
	broken  func(variants []int) error
	mu      sync.Mutex // of emitted: builds go on beside what is emitted
	emitted map[string][]int
	ran     map[int]int
	timed   map[int]int
	order   []int
}

func (b *fakeBench) Emit(dir string, variants []int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.emitted == nil {
		b.emitted, b.ran, b.timed = map[string][]int{}, map[int]int{}, map[int]int{}
	}
	b.emitted[dir] = variants
	return nil
}

func (b *fakeBench) Build(dir string) error {
	if b.broken == nil {
		return nil
	}
	b.mu.Lock()
	variants := b.emitted[dir]
	b.mu.Unlock()
	return b.broken(variants)
}

func (b *fakeBench) Open(dir string, variant, position int) (Program, error) {
	if b.emitted[dir][position] != variant {
		return nil, fmt.Errorf("variant %d is not at %d of %v", variant, position, b.emitted[dir])
	}
	b.order = append(b.order, variant)
	return &fakeProgram{b, variant}, nil
}

type fakeProgram struct {
	b       *fakeBench
	variant int
}

func (p *fakeProgram) Infer() (Tensors, error) {
	n := p.b.ran[p.variant]
	p.b.ran[p.variant]++
	x := float32(1)
	if outs := p.b.outputs[p.variant]; n < len(outs) {
		x = outs[n]
	}
	return Tensors{"y": ir.FromSlice(ir.Float32, []float32{x}, 1)}, nil
}

func (p *fakeProgram) Time() (float64, error) {
	us := p.b.us[p.variant][min(p.b.timed[p.variant], len(p.b.us[p.variant])-1)]
	p.b.timed[p.variant]++
	if us < 0 {
		return 0, errors.New("the clock stopped\nfor good")
	}
	return us, nil
}

func (p *fakeProgram) Close() error { return nil }

// compare runs a comparison of variants in the given groups; the right output is 1.
func compare(t *testing.T, b *fakeBench, verify bool, groups ...int) (results []Result, asked int) {
	t.Helper()
	c := &Comparison{
		Bench: b, Groups: groups, Dir: t.TempDir(), Verify: verify, Progress: func(int, int) {}, Waiting: silent,
		Building: silentBuilding,
		Reference: func() (Tensors, error) {
			asked++
			return Tensors{"y": ir.FromSlice(ir.Float32, []float32{1}, 1)}, nil
		},
	}
	results, err := c.Run()
	if err != nil {
		t.Fatal(err)
	}
	return results, asked
}

// times are the results without their rounds.
func times(results []Result) []Result {
	out := slices.Clone(results)
	for i := range out {
		out[i].Rounds = nil
	}
	return out
}

func same(a, b Result) bool { return a.MeasuredUS == b.MeasuredUS && a.Problem == b.Problem }

// All variants are timed in two rounds, of which the better one counts; then those within a few percent of the fastest
// are timed in turns, with the one that is kept unless another is better.
func TestRounds(t *testing.T) {
	b := &fakeBench{us: map[int][]float64{0: {30, 20}, 1: {10, 40, 10.2, 10.4, 10.3, 10.1}, 2: {-1}, 3: {15, -1},
		4: {10.3, 10.3, 9, 9, 9, 9}}}
	results, asked := compare(t, b, false, 0, 0, 0, 1, 1)
	want := []Result{{MeasuredUS: 20}, {MeasuredUS: 10.2}, {Problem: "the clock stopped"}, {Problem: "the clock stopped"},
		{MeasuredUS: 9}}
	if !slices.EqualFunc(results, want, same) || asked != 0 {
		t.Errorf("got %+v, asked %d; want %+v", times(results), asked, want)
	}
	order := []int{0, 1, 2, 3, 4, 0, 1, 3, 4}
	for range finalRounds {
		order = append(order, 0, 1, 4)
	}
	if !slices.Equal(b.order, order) {
		t.Errorf("timed in the order %v, want %v", b.order, order)
	}
	if len(b.emitted) != 2 {
		t.Errorf("%d libraries of two groups", len(b.emitted))
	}
}

// A variant is taken instead of the kept one if it is faster by more than chance, and never if that is slower.
func TestPreferred(t *testing.T) {
	of := func(rounds ...float64) Result {
		return Result{MeasuredUS: slices.Sorted(slices.Values(rounds))[(len(rounds)-1)/2], Rounds: rounds}
	}
	none := Result{Problem: "it does not build"}
	for name, c := range map[string]struct {
		results []Result
		want    int
	}{
		"the kept one is the fastest":      {[]Result{of(10, 10), of(11, 11), of(12, 12)}, 0},
		"another is much faster":           {[]Result{of(10, 10), of(11, 11), of(8, 8)}, 2},
		"another is hardly faster":         {[]Result{of(10, 10), of(9.95, 9.95)}, 0},
		"another was slower in one round":  {[]Result{of(10, 9, 10), of(9.5, 9.6, 9.5)}, 0},
		"another was timed in fewer":       {[]Result{of(10, 10, 10, 10), of(9, 9)}, 1},
		"the kept one could not be timed":  {[]Result{none, of(11, 11), of(10.99, 12)}, 2},
		"nothing could be timed":           {[]Result{none, none}, 0},
		"only the kept one could be timed": {[]Result{of(10, 10), none}, 0},
	} {
		if got := Preferred(c.results, 0); got != c.want {
			t.Errorf("%s: %d is taken, want %d", name, got, c.want)
		}
	}
}

func TestGroupThatDoesNotBuild(t *testing.T) {
	b := &fakeBench{
		us: map[int][]float64{0: {30, 30}, 2: {20, 20}, 3: {40, 40}},
		broken: func(variants []int) error {
			if slices.Contains(variants, 1) {
				return errors.New("too many registers\nand more")
			}
			return nil
		},
	}
	results, _ := compare(t, b, false, 0, 0, 0, 1)
	want := []Result{{MeasuredUS: 30}, {Problem: "it does not build: too many registers"}, {MeasuredUS: 20}, {MeasuredUS: 40}}
	if !slices.EqualFunc(results, want, same) || len(b.emitted) != 5 {
		t.Errorf("got %+v of %d libraries, want %+v of 5", results, len(b.emitted), want)
	}
}

func TestNothingCanBeTimed(t *testing.T) {
	b := &fakeBench{broken: func([]int) error { return errors.New("no compiler today") }}
	if results, _ := compare(t, b, true, 0, 1); Preferred(results, 0) != 0 || results[0].Problem == "" ||
		results[1].MeasuredUS != 0 {
		t.Errorf("got %+v", results)
	}
}

// Variants that disagree are judged by the reference, also when the first of them is the one that is wrong.
func TestDisagreement(t *testing.T) {
	for _, wrong := range [][]int{{1}, {0}, {0, 1}} {
		b := &fakeBench{us: map[int][]float64{}, outputs: map[int][]float32{}}
		for i := range 3 {
			b.us[i] = []float64{10, 10}
		}
		for _, i := range wrong {
			b.outputs[i] = []float32{1, 2} // the second inference is wrong
		}
		results, asked := compare(t, b, false, 0, 0, 0)
		for i, r := range results {
			if slices.Contains(wrong, i) != (r.Problem != "") || asked != 1 {
				t.Errorf("wrong are %v; variant %d has the verdict %q after %d questions", wrong, i, r.Problem, asked)
			}
		}
	}
	// Variants that all agree are right without asking, unless Verify asks.
	for _, verify := range []bool{false, true} {
		b := &fakeBench{us: map[int][]float64{0: {10, 10}}, outputs: map[int][]float32{0: {2, 2, 2, 2}}}
		if results, _ := compare(t, b, verify, 0); (results[0].Problem != "") != verify {
			t.Errorf("verify %v: %+v", verify, results)
		}
	}
}

// Variants that round products to tf32 may differ by as much, and are not taken for wrong.
func TestPrecisionSaysWhatIsWrong(t *testing.T) {
	for _, c := range []struct {
		p     precision.Precision
		wrong bool
	}{{precision.FP32, true}, {precision.TF32, false}} {
		b := &fakeBench{us: map[int][]float64{0: {30, 30}, 1: {20, 20}},
			outputs: map[int][]float32{1: {1.002, 1.002, 1.002, 1.002}}}
		comparison := &Comparison{
			Bench: b, Groups: []int{0, 0}, Dir: t.TempDir(), Precision: c.p, Progress: func(int, int) {},
			Waiting: silent, Building: silentBuilding,
			Reference: func() (Tensors, error) { return Tensors{"y": ir.FromSlice(ir.Float32, []float32{1}, 1)}, nil },
		}
		results, err := comparison.Run()
		if err != nil {
			t.Fatal(err)
		}
		if (results[1].Problem != "") != c.wrong {
			t.Errorf("%v: %+v", c.p, results)
		}
	}
}
