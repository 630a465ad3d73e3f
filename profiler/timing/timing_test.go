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
	us      map[int][]float64 // medians of a variant, round by round; a negative one is a failure
	outputs map[int][]float32 // what the inferences of a variant compute, in turn; 1 for those without
	broken  func(variants []int) error
	mu      sync.Mutex // of emitted: builds go on beside what is emitted
	emitted map[string][]int
	ran     map[int]int
	order   []int
}

func (b *fakeBench) Emit(dir string, variants []int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.emitted == nil {
		b.emitted, b.ran = map[string][]int{}, map[int]int{}
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
	round := p.b.ran[p.variant]/inferences - 1
	us := p.b.us[p.variant][round]
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

func TestBetterRoundCounts(t *testing.T) {
	b := &fakeBench{us: map[int][]float64{0: {30, 20}, 1: {10, 40}, 2: {-1}, 3: {15, -1}}}
	results, asked := compare(t, b, false, 0, 0, 0, 1)
	want := []Result{{20, ""}, {10, ""}, {0, "the clock stopped"}, {0, "the clock stopped"}}
	if !slices.Equal(results, want) || Fastest(results) != 1 || asked != 0 {
		t.Errorf("got %+v, fastest %d, asked %d; want %+v", results, Fastest(results), asked, want)
	}
	if !slices.Equal(b.order, []int{0, 1, 2, 3, 0, 1, 3}) {
		t.Errorf("timed in the order %v, want round by round", b.order)
	}
	if len(b.emitted) != 2 {
		t.Errorf("%d libraries of two groups", len(b.emitted))
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
	want := []Result{{30, ""}, {0, "it does not build: too many registers"}, {20, ""}, {40, ""}}
	if !slices.Equal(results, want) || len(b.emitted) != 5 {
		t.Errorf("got %+v of %d libraries, want %+v of 5", results, len(b.emitted), want)
	}
}

func TestNothingCanBeTimed(t *testing.T) {
	b := &fakeBench{broken: func([]int) error { return errors.New("no compiler today") }}
	if results, _ := compare(t, b, true, 0, 1); Fastest(results) != 0 || results[0].Problem == "" ||
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
			Waiting:   silent,
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
