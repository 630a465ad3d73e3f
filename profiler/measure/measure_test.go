package measure

import (
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/rammerc/rammerc/internal/toolchain"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/precision"
	"github.com/rammerc/rammerc/profiler/db"
	"github.com/rammerc/rammerc/profiler/measure/measuretest"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/roperator"
)

// What can be wrong with test_scale: testdata/kernels/test/scale.cuh.
const (
	none = iota
	wrong
	hangs
	faults
	doesNotBuild
)

// overlay looks a file up in one file system, then in another.
type overlay struct{ first, second fs.FS }

func (o overlay) Open(name string) (fs.File, error) {
	f, err := o.first.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return o.second.Open(name)
	}
	return f, err
}

// ReadDir lists both.
func (o overlay) ReadDir(name string) ([]fs.DirEntry, error) {
	a, errA := fs.ReadDir(o.first, name)
	b, errB := fs.ReadDir(o.second, name)
	if errA != nil && errB != nil {
		return nil, errA
	}
	return append(a, b...), nil
}

func testKernels() fs.FS { return overlay{os.DirFS("testdata/kernels"), rkernels.Files} }

// scaleGraph is one rOperator, y = 2x + w of 100 elements, with a candidate for each tile and flaw.
func scaleGraph(t *testing.T, candidates [][2]int) *roperator.Graph {
	t.Helper()
	ks, err := rkernels.Load(os.DirFS("testdata/kernels"))
	if err != nil {
		t.Fatal(err)
	}
	const n = 100
	g := &roperator.Graph{Name: "scale"}
	buffer := func(name string, kind roperator.BufferKind) *roperator.Buffer {
		b := &roperator.Buffer{ID: len(g.Buffers), Name: name, Kind: kind, DType: ir.Float32, Elems: n}
		g.Buffers = append(g.Buffers, b)
		return b
	}
	x, w, y := buffer("x", roperator.Input), buffer("w", roperator.Const), buffer("y", roperator.Output)
	w.Data = func() []byte {
		data := make([]byte, 4*n)
		for i := range n {
			binary.LittleEndian.PutUint32(data[4*i:], math.Float32bits(float32(i)))
		}
		return data
	}
	op := &roperator.ROperator{Name: "scale", Kind: "Scale"}
	view := func(b *roperator.Buffer) roperator.View { return roperator.Contiguous(b, []int64{n}) }
	for _, c := range candidates {
		tile := int64(c[0])
		box := func(task int, lo, hi []int64) { lo[0], hi[0] = int64(task)*tile, min(n, int64(task+1)*tile) }
		op.Candidates = append(op.Candidates, &roperator.Candidate{
			Inst: ks[0].Bind(c[0], c[1]), Tasks: (n + c[0] - 1) / c[0],
			Args: []rkernels.Field{{Name: "x", Value: view(x).Ref()}, {Name: "w", Value: view(w).Ref()},
				{Name: "y", Value: view(y).Ref()}, {Name: "n", Value: rkernels.Int(n)}},
			Reads:  []roperator.Access{{View: view(x), Box: box}},
			Writes: []roperator.Access{{View: view(y), Box: box}},
		})
	}
	g.Ops = []*roperator.ROperator{op}
	g.Canonise()
	return g
}

// flat says that all rTasks cost the same.
type flat struct{}

func (flat) TaskTime(*roperator.Candidate) float64 { return 100 }

func emulated(t *testing.T) (*Session, *Keys) {
	t.Helper()
	cxx, err := toolchain.FindCxx("")
	if err != nil {
		t.Skip(err)
	}
	keys, err := NewKeys(db.Machine{GPU: "emulator", Driver: "none"}, testKernels())
	if err != nil {
		t.Fatal(err)
	}
	base, err := db.Open(filepath.Join(t.TempDir(), "measured.jsonl"), "emulator")
	if err != nil {
		t.Fatal(err)
	}
	return &Session{
		DB: base, Keys: keys, Tools: measuretest.Tools{Cxx: cxx}, Kernels: testKernels(), VEUs: 4, Dir: t.TempDir(),
		Patience: 2 * time.Second, Waiting: func(string) func() { return func() {} },
	}, keys
}

// onGPU is a session on the GPU at hand.
func onGPU(t *testing.T) (*Session, *Keys) {
	t.Helper()
	s, keys := emulated(t)
	nvcc, err := toolchain.FindNVCC("")
	if err != nil {
		t.Skip(err)
	}
	arch := toolchain.LocalArch(t.Context())
	if arch == "" {
		t.Skip("no GPU")
	}
	s.Tools = GPUTools{NVCC: nvcc, Arch: arch}
	return s, keys
}

// Candidates that are right get times; one that hangs, faults, computes something wrong or does not build gets a line
// that says so, stands in nobody's way, and is removed from the graph.
func TestFlaws(t *testing.T) {
	for _, c := range []struct {
		name    string
		session func(*testing.T) (*Session, *Keys)
		fault   string // how the problem of the candidate that faults begins
	}{{"emulator", emulated, "its process ended"}, {"GPU", onGPU, "an illegal memory access"}} {
		t.Run(c.name, func(t *testing.T) {
			s, keys := c.session(t)
			testFlaws(t, s, keys, c.fault)
		})
	}
}

func testFlaws(t *testing.T, s *Session, keys *Keys, fault string) {
	list := [][2]int{{10, wrong}, {10, none}, {20, hangs}, {25, none}, {30, faults}, {50, none}, {60, doesNotBuild}}
	want := []string{"wrong numbers", "", "no end after 2s", "", fault, "", "it does not build"}
	g := scaleGraph(t, list)
	report, err := s.Run(t.Context(), Program{g, "scale.onnx", flat{}})
	if err != nil {
		t.Fatal(err)
	}
	if report.Measured != len(list) || report.Missing != len(list) || len(report.Problems) != 4 {
		t.Errorf("%+v", report)
	}
	for i, c := range g.Ops[0].Candidates {
		key, err := keys.Of(g, c)
		if err != nil {
			t.Fatal(err)
		}
		e, ok := s.DB.Find(key)
		switch {
		case !ok:
			t.Errorf("candidate %d: no line", i)
		case want[i] == "" && (e.Problem != "" || e.Times.Cold <= 0 || (e.Times.Wave > 0) != (e.Times.DRAM > 0)):
			t.Errorf("candidate %d: %+v", i, e)
		case !strings.HasPrefix(e.Problem, want[i]) || want[i] != "" && e.Times != (db.Times{}):
			t.Errorf("candidate %d has the problem %q, want %q", i, e.Problem, want[i])
		}
	}
	lines, damaged, err := db.ReadFile(s.DB.Path())
	if err != nil || len(lines) != len(list) || damaged > 0 {
		t.Errorf("%d lines, %d damaged, %v", len(lines), damaged, err)
	}
	again, err := s.Run(t.Context(), Program{g, "scale.onnx", flat{}})
	if err != nil || again.Missing != 0 {
		t.Errorf("measured again: %+v, %v", again, err)
	}
	struck, err := Strike(g, s.DB, keys)
	if err != nil || len(struck) != 4 || len(g.Ops[0].Candidates) != 3 {
		t.Errorf("struck %d, left %d, %v", len(struck), len(g.Ops[0].Candidates), err)
	}
	for _, c := range g.Ops[0].Candidates {
		if c.Inst.Int("FLAW") != none {
			t.Errorf("%s is left", c.Inst.Name())
		}
	}
}

// counted are tools that count what they build.
type counted struct {
	Tools
	machines, parts *atomic.Int32
}

func (c counted) Machine(ctx context.Context, dir string) error {
	c.machines.Add(1)
	return c.Tools.Machine(ctx, dir)
}

func (c counted) Part(ctx context.Context, dir, name string, machine func() error) ([]toolchain.Kernel, error) {
	c.parts.Add(1)
	kernels, err := c.Tools.Part(ctx, dir, name, machine)
	return append(kernels, toolchain.Kernel{Name: "kernel_0", Registers: 77}), err
}

// Programs that one session builds and keeps are what another one measures with; two graphs with an instance in common
// share its program.
func TestBuiltBefore(t *testing.T) {
	built := t.TempDir()
	programs := func() []Program {
		list := [][2]int{{10, none}, {25, none}}
		return []Program{{scaleGraph(t, list), "one.onnx", flat{}}, {scaleGraph(t, list[:1]), "two.onnx", flat{}}}
	}
	run := func(only bool) (Report, *Session, counted) {
		s, _ := emulated(t)
		c := counted{s.Tools, new(atomic.Int32), new(atomic.Int32)}
		s.Tools, s.Built, s.BuildOnly, s.Compilers = c, built, only, 1
		r, err := s.Run(t.Context(), programs()...)
		if err != nil {
			t.Fatal(err)
		}
		return r, s, c
	}
	first, _, c := run(true)
	if first.Measured != 0 || first.Missing != 2 || c.machines.Load() != 1 || c.parts.Load() != 1 {
		t.Errorf("building: %+v, %d machines, %d parts", first, c.machines.Load(), c.parts.Load())
	}
	second, s, c := run(false)
	if second.Measured != 2 || len(second.Problems) > 0 || c.machines.Load()+c.parts.Load() != 0 {
		t.Errorf("measuring: %+v, %d machines, %d parts", second, c.machines.Load(), c.parts.Load())
	}
	lines, _, err := db.ReadFile(s.DB.Path())
	if err != nil || len(lines) != 2 || lines[0].Model != "one.onnx" ||
		!slices.ContainsFunc(lines, func(e db.Entry) bool { return e.Code.Spills == 0 && e.Times.Cold > 0 }) {
		t.Errorf("%d lines, %v", len(lines), err)
	}
}

// Where the time ends in the middle, what was measured until then is kept, and that is no error.
func TestTimeEnds(t *testing.T) {
	s, _ := emulated(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s.Compilers = 1
	s.Progress = func(done, _ int) {
		if done == 2 {
			cancel()
		}
	}
	g := scaleGraph(t, [][2]int{{10, none}, {20, none}, {25, none}, {50, none}})
	report, err := s.Run(ctx, Program{g, "scale.onnx", flat{}})
	lines, _, errRead := db.ReadFile(s.DB.Path())
	if err != nil || errRead != nil || report.Measured != 2 || len(lines) != 2 {
		t.Errorf("%+v, %d lines, %v, %v", report, len(lines), err, errRead)
	}
}

// Keys are of content: equal candidates of two graphs have equal keys, and whatever changes code or arguments changes
// the key.
func TestKeys(t *testing.T) {
	keys := func(m db.Machine, kernels fs.FS) *Keys {
		k, err := NewKeys(m, kernels)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	of := func(k *Keys, g *roperator.Graph, i int) string {
		key, err := k.Of(g, g.Ops[0].Candidates[i])
		if err != nil {
			t.Fatal(err)
		}
		return key.ID()
	}
	machine := db.Machine{GPU: "a", Clocks: "b", Driver: "c", NVCC: "d"}
	list := [][2]int{{10, none}, {20, none}}
	one, two := scaleGraph(t, list), scaleGraph(t, list)
	k := keys(machine, testKernels())
	want := of(k, one, 0)
	if of(k, two, 0) != want || of(keys(machine, testKernels()), two, 0) != want {
		t.Error("equal candidates have different keys")
	}
	if of(k, one, 1) == want {
		t.Error("another instance has the same key")
	}
	two.Ops[0].Candidates[0].Args[3].Value = rkernels.Int(99)
	if of(k, two, 0) == want {
		t.Error("another argument has the same key")
	}
	changed := overlay{fstest.MapFS{"common/math.cuh": {Data: []byte("// changed\n")}}, testKernels()}
	if of(keys(machine, changed), one, 0) != want {
		t.Error("a header that the kernel does not include changes its key")
	}
	source, err := fs.ReadFile(testKernels(), "test/scale.cuh")
	if err != nil {
		t.Fatal(err)
	}
	changed = overlay{fstest.MapFS{"test/scale.cuh": {Data: append(source, "// changed\n"...)}}, testKernels()}
	if of(keys(machine, changed), one, 0) == want {
		t.Error("another source has the same key")
	}
	machine.Driver = "e"
	if of(keys(machine, testKernels()), one, 0) == want {
		t.Error("another driver has the same key")
	}
}

// A candidate that computes something else than most is wrong, even if it is the first.
func TestReference(t *testing.T) {
	of := func(x float32) []*ir.Tensor { return []*ir.Tensor{ir.FromSlice(ir.Float32, []float32{1, x}, 2)} }
	for _, c := range []struct {
		results [][]*ir.Tensor
		want    int
	}{
		{[][]*ir.Tensor{nil, of(1), of(1)}, 1},
		{[][]*ir.Tensor{of(2), of(1), of(1)}, 1},
		{[][]*ir.Tensor{of(2), of(1)}, 0},
		{[][]*ir.Tensor{nil, nil}, -1},
	} {
		if got := reference(c.results, precision.FP32); got != c.want {
			t.Errorf("%v: %d, want %d", c.results, got, c.want)
		}
	}
}

// Partial sums may be cut at different places: what is compared is their sum. Other partial results are not compared.
func TestParts(t *testing.T) {
	of := func(x ...float32) []*ir.Tensor { return []*ir.Tensor{ir.FromSlice(ir.Float32, x, int64(len(x)))} }
	// Two groups of two parts of two elements.
	a, b, c := of(1, 2, 3, 4, 5, 6, 7, 8), of(0, 1, 4, 5, 6, 7, 6, 7), of(0, 1, 4, 5, 6, 7, 6, 8)
	sums := roperator.Parts{Count: 2, Length: 2, Sum: true}
	if err := different(joined(sums, b), joined(sums, a), precision.FP32); err != nil {
		t.Error(err)
	}
	if different(joined(sums, c), joined(sums, a), precision.FP32) == nil {
		t.Error("a wrong sum is taken for right")
	}
	if different(joined(roperator.Parts{}, b), joined(roperator.Parts{}, a), precision.FP32) == nil {
		t.Error("wrong results are taken for right")
	}
	if err := different(joined(roperator.Parts{Count: 2, Length: 4}, c),
		joined(roperator.Parts{Count: 2, Length: 4}, a),
		precision.FP32); err != nil {
		t.Error(err)
	}
}
