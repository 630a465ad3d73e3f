package driver

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/rammerc/rammerc/precision"
	"github.com/rammerc/rammerc/profiler/db"
	"github.com/rammerc/rammerc/profiler/measure/measuretest"
)

// A search may try what is more accurate than the flags ask for, but nothing else; rules leave it no choice.
func TestOtherPrecisions(t *testing.T) {
	for _, c := range []struct {
		asked string
		rules []string
		want  []string
	}{
		{"", nil, []string{"strict"}},
		{"strict", nil, nil},
		{"tf32", nil, []string{"fp32", "strict"}},
		{"fp16", nil, []string{"tf32", "fp32", "strict"}},
		{"bf16", nil, []string{"tf32", "fp32", "strict"}},
		{"tf32", []string{"Conv=fp32"}, nil},
	} {
		x := &Compilation{opt: CompileOptions{Precision: c.asked}}
		for _, text := range c.rules {
			r, err := precision.ParseRule(text)
			if err != nil {
				t.Fatal(err)
			}
			x.opt.PrecisionOf = append(x.opt.PrecisionOf, r)
		}
		var got []string
		for _, o := range x.others() {
			got = append(got, o.name())
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%q %v: %v, want %v", c.asked, c.rules, got, c.want)
		}
	}
}

// The precisions that a search has found to be faster are those of the next compilation, until a search finds others.
func TestTunedPrecisions(t *testing.T) {
	t.Parallel()
	cxx := compiler(t)
	path := filepath.Join(t.TempDir(), "measured.jsonl")
	o := CompileOptions{Tries: 1, Emit: EmitSources}
	var err error
	if o.rTasks, err = o.benchOf(path, db.Machine{GPU: "emulator"}, measuretest.Tools{Cxx: cxx}); err != nil {
		t.Fatal(err)
	}
	o.Path, o.Target = "testdata/two_layers.rir", TargetEmu
	planned := func() *Compilation {
		c, err := Plan(&Job{}, o)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	first := planned()
	program, ok := first.programOf(first.plan.Graph)
	if !ok || first.opt.PrecisionChoice().Program != precision.FP32 {
		t.Fatalf("the program is %q, in %v", program, first.opt.PrecisionChoice())
	}
	for _, c := range []struct {
		kept string
		want precision.Precision
	}{{"strict", precision.Strict}, {"tf32", precision.FP32}, {"strict", precision.Strict}, {"", precision.FP32}} {
		if err := first.keepPrecisions(program, c.kept); err != nil {
			t.Fatal(err)
		}
		if got := planned().opt.PrecisionChoice().Program; got != c.want {
			t.Errorf("%q was found: the model is compiled in %v, want %v", c.kept, got, c.want)
		}
	}
}

// The space of a search has the model in all precisions that it may try, each with plans of its own.
func TestSpaceOfPrecisions(t *testing.T) {
	t.Parallel()
	space := spaceOf(t, compiler(t), nil)
	if err := space.addOthers(); err != nil {
		t.Fatal(err)
	}
	if got := space.Precisions(); !slices.Equal(got, []string{"", "strict"}) {
		t.Errorf("%v", got)
	}
	strict := space.graph("strict")
	if strict.costs == space.graphs[0].costs || strict.ops == space.graphs[0].ops {
		t.Error("the model in another precision is not lowered or costed by itself")
	}
	for _, op := range strict.ops.Ops {
		if op.Precision != precision.Strict {
			t.Errorf("%s is in %v", op.Name, op.Precision)
		}
	}
	if space.coarsest() != precision.FP32 {
		t.Errorf("the least accurate precision is %v", space.coarsest())
	}
}
