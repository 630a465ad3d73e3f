package programs

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/codegen"
	"github.com/rammerc/rammerc/internal/runner"
	"github.com/rammerc/rammerc/internal/stencil"
	"github.com/rammerc/rammerc/internal/systemtest"
	"github.com/rammerc/rammerc/internal/toolchain"
	"github.com/rammerc/rammerc/vdevice"
)

// forkVariants are plans of one graph: on streams, in sequence, and in waves with all on one vEU.
func forkVariants(t testing.TB) (*stencil.Model, []*vdevice.Plan) {
	s := stencil.Forking(t, 4, 64)
	s.Fork()
	var launches []vdevice.Launch
	for i := range int32(6) {
		launches = append(launches, vdevice.Launch{Op: i})
	}
	graph, narrow := *s.Plan, *s.Plan
	graph.Segments = []vdevice.Segment{{Kind: vdevice.LaunchSequence,
		Program: vdevice.NodeProgram(s.Plan.Spec, s.Plan.Graph, vdevice.LaunchSequence, launches)}}
	b := vdevice.NewBuilder(s.Plan.Spec, s.Plan.Graph)
	for op := range int32(6) {
		b.NextWave()
		b.Pick(op, 0)
		for k := range int32(4) {
			b.Append(vdevice.Task{Op: op, Index: k}, 0)
		}
	}
	narrow.Segments = []vdevice.Segment{{Kind: vdevice.RProgram, Program: b.Program()}}
	plans := []*vdevice.Plan{s.Plan, &graph, &narrow}
	for i, p := range plans {
		if err := vdevice.Verify(p); err != nil {
			t.Fatalf("plan %d: %v", i, err)
		}
	}
	return s, plans
}

// Plans of one graph are one library: one program, one weights file, an interface for each plan.
func TestVariants(t *testing.T) {
	t.Parallel()
	s, plans := forkVariants(t)
	dir := t.TempDir()
	opt := codegen.Options{Name: "fork", Version: "test", Kernels: stencil.Kernels()}
	if err := codegen.EmitVariants(plans, opt, codegen.Dir(dir)); err != nil {
		t.Fatal(err)
	}
	again := codegen.Memory{}
	if err := codegen.EmitVariants(plans, opt, again); err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(filepath.Join(dir, "fork.cu"))
	if err != nil || !bytes.Equal(source, again["fork.cu"]) {
		t.Errorf("emitted twice, the source differs (%v)", err)
	}
	if n := strings.Count(string(source), "struct Program"); n != 1 ||
		!strings.Contains(string(source), "3 plans in one program, with 2 distinct") {
		t.Errorf("%d programs", n)
	}
	if files, _ := filepath.Glob(filepath.Join(dir, "*.weights")); len(files) != 1 {
		t.Errorf("weights files are %v", files)
	}
	lib := systemtest.BuildEmulated(t, dir, "fork", "-Wall", "-Werror", "-Wno-unused")
	var open []*runner.Lib
	for i, want := range []string{"parallel", "graph", "rprogram"} {
		l := systemtest.OpenLib(t, lib, runner.Options{Name: codegen.VariantName("fork", i), Weights: filepath.Join(dir, "fork.weights")})
		if l.Launch.Mode != want {
			t.Errorf("plan %d runs as %s, want %s", i, l.Launch.Mode, want)
		}
		open = append(open, l)
	}
	for range 3 {
		for i, l := range open {
			if n := s.ForkMismatches(t, l); n > 0 {
				t.Errorf("plan %d: %d elements are wrong", i, n)
			}
		}
	}
	// One process runs one plan after another; a plan that does not exist leaves it as it was.
	l := open[0]
	for _, i := range []int{2, 1, 3, 0} {
		if err := l.Switch(codegen.VariantName("fork", i)); (err != nil) != (i == 3) {
			t.Errorf("switching to plan %d: %v", i, err)
		}
		if want := []string{"parallel", "graph", "rprogram", "graph"}[i]; l.Launch.Mode != want {
			t.Errorf("plan %d runs as %s, want %s", i, l.Launch.Mode, want)
		}
		if n := s.ForkMismatches(t, l); n > 0 {
			t.Errorf("plan %d: %d elements are wrong", i, n)
		}
	}
	if nvcc, err := toolchain.FindNVCC(""); err == nil {
		if _, err := nvcc.BuildLibrary(t.Context(), dir, "fork", []string{"sm_90"}); err != nil {
			t.Error(err)
		}
	}
}
