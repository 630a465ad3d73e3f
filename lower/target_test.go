package lower

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/graphopt"
	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/target"
	"github.com/rammerc/rammerc/precision"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/schema"
)

// edited is the built-in catalogue with one manifest changed; an empty text removes the kernel.
func edited(t *testing.T, path string, edit func(text string) string) *rkernels.Catalogue {
	t.Helper()
	files := fstest.MapFS{}
	err := fs.WalkDir(rkernels.Files, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(rkernels.Files, p)
		if p == path {
			data = []byte(edit(string(data)))
		}
		if len(data) > 0 {
			files[p] = &fstest.MapFile{Data: data}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	kernels, err := rkernels.NewCatalogue(files)
	if err != nil {
		t.Fatal(err)
	}
	return kernels
}

func needs90(text string) string { return text + "\nmin_arch: 90\n" }

func parsed(t *testing.T, in, body string) *ir.Graph {
	t.Helper()
	g, err := parseGraph(in, body)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// kernelsOf counts the candidates of all rOperators by kernel.
func kernelsOf(g *roperator.Graph) map[string]int {
	out := map[string]int{}
	for _, op := range g.Ops {
		for _, c := range op.Candidates {
			out[c.Inst.Kernel.Name]++
		}
	}
	return out
}

// A kernel that needs sm_90 is a candidate there and on the emulator, and not on an A100.
func TestKernelsOfLaterDevices(t *testing.T) {
	kernels := edited(t, "gemm/gemv_stream.yaml", needs90)
	in, body := "%a: float32[1,512]", weights("b", 512, 256)+"%y = MatMul(%a, %b)"
	for device, want := range map[string]bool{"h200": true, "emu4": true, "a100": false, "v100": false} {
		g, err := lowerStatic(parsed(t, in, body), testTarget(device), kernels, precision.Choice{})
		if err != nil {
			t.Fatal(err)
		}
		count := kernelsOf(g)
		if (count["gemv_stream"] > 0) != want || count["gemv_packed"] == 0 {
			t.Errorf("%s: candidates %v", device, count)
		}
	}
}

// A node that only such a kernel carries out is refused by name; one whose kernel is missing as well.
func TestNodesWithoutKernels(t *testing.T) {
	for _, c := range []struct {
		edit func(string) string
		want string
	}{
		{needs90, "Softmax has no rKernel that a100 can run: softmax needs sm_90"},
		{func(string) string { return "" }, "there is no rKernel softmax"},
	} {
		kernels := edited(t, "norm/softmax.yaml", c.edit)
		_, err := lowerStatic(parsed(t, "%x: float32[4,9]", "%r: invalid? = Relu(%x)\n%y = Softmax(%r)"), testTarget("a100"),
			kernels, precision.Choice{})
		ds := diag.All(err)
		if len(ds) == 0 || !strings.Contains(ds[0].Message, c.want) || ds[0].Op != "Softmax" {
			t.Errorf("error %v, want %q at the Softmax", err, c.want)
		}
	}
}

// What is split depends on the device: a small one is full where a large one is idle.
func TestSplitsFollowTheTarget(t *testing.T) {
	in, body := "%a: float32[16,6000]", weights("b", 6000, 64)+"%y = MatMul(%a, %b)"
	tasks := map[string]int{}
	for _, device := range []string{"emu4", "h200", "v100"} {
		g, err := lowerStatic(parsed(t, in, body), testTarget(device), testKernels(), precision.Choice{})
		if err != nil {
			t.Fatal(err)
		}
		if err := roperator.Verify(g); err != nil {
			t.Errorf("%s: %v", device, err)
		}
		for _, c := range g.Ops[0].Candidates {
			tasks[device] = max(tasks[device], c.Tasks)
		}
	}
	if !(tasks["emu4"] < tasks["v100"] && tasks["v100"] <= tasks["h200"]) {
		t.Errorf("rTasks by device: %v", tasks)
	}
	defer func() {
		if recover() == nil {
			t.Error("no target is taken for a device")
		}
	}()
	lowerStatic(parsed(t, in, body), target.Target{}, testKernels(), precision.Choice{})
}

// A convolution that squeezes what it makes has one tile, of such a size that the executor's own memory is left beside it.
func TestSqueezingTilesFit(t *testing.T) {
	for _, c := range []struct {
		in, conv          string
		channels, squeeze int
	}{
		{"%x: float32[1,16,112,112]", "Conv(%r, %k) {group = 16, strides = [2, 2], pads = [1, 1, 1, 1]}", 16, 8},
		{"%x: float32[1,240,14,14]", "Conv(%r, %k) {group = 240, pads = [2, 2, 2, 2]}", 240, 64},
		{"%x: float32[1,96,28,28]", "Conv(%r, %k) {group = 96, strides = [2, 2], pads = [2, 2, 2, 2]}", 96, 24},
	} {
		width := 3
		if strings.Contains(c.conv, "pads = [2") {
			width = 5
		}
		body := weights("k", c.channels, 1, width, width) + weights("v", c.squeeze, c.channels, 1, 1) +
			weights("w", c.channels, c.squeeze, 1, 1) + weights("e", c.channels, c.channels, 1, 1) + `
%f: invalid? = Conv(%x, %e)
%r: invalid? = Relu(%f)
%c: invalid? = ` + c.conv + `
%m: invalid? = GlobalAveragePool(%c)
%a: invalid? = Conv(%m, %v)
%u: invalid? = Relu(%a)
%d: invalid? = Conv(%u, %w)
%s: invalid? = Sigmoid(%d)
%z: invalid? = Mul(%s, %c)
%y = Conv(%z, %e)`
		for _, p := range []precision.Precision{precision.FP16, precision.TF32, precision.FP32} {
			for _, name := range []string{"emu4", "h200", "a100", "rtx4090"} {
				g, choice := parsed(t, c.in, body), precision.Choice{Program: p}
				if err := graphopt.Run(g, graphopt.Options{Check: true, Precision: choice}); err != nil {
					t.Fatal(err)
				}
				spec, err := device.Find(name)
				if err != nil {
					t.Fatal(err)
				}
				ops, err := lowerStatic(g, target.Of(spec), testKernels(), choice)
				if err != nil {
					t.Fatal(err)
				}
				if kernelsOf(ops)["conv_depthwise_patch_squeeze"] == 0 {
					t.Fatalf("%s in %v on %s: %v", c.in, p, name, kernelsOf(ops))
				}
				room := spec.SharedBound() - schema.LeastShared
				for _, op := range ops.Ops {
					least := 1 << 30
					for _, c := range op.Candidates {
						least = min(least, c.Inst.Shared())
					}
					if least > room {
						t.Errorf("%s in %v on %s: %s needs %d bytes of %d", c.in, p, name, op.Kind, least, room)
					}
				}
			}
		}
	}
}

// No rTask of a split sum has nothing to add up: it would seem to read what it does not wait for.
func TestSplitsHaveTerms(t *testing.T) {
	for channels := 512; channels <= 1024; channels += 96 {
		for _, width := range []int{1, 3} {
			in := fmt.Sprintf("%%x: float32[1,%d,7,7]", channels)
			g := parsed(t, in, weights("w", 128, channels, width, width)+"%y = Conv(%x, %w)")
			ops, err := lowerStatic(g, testTarget("v100"), testKernels(), precision.Choice{})
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range ops.Ops[0].Candidates {
				for task := range c.Tasks {
					lo, hi := make([]int64, 8), make([]int64, 8)
					r := c.Reads[0]
					r.Box(task, lo, hi)
					for d := range r.View.Shape {
						if lo[d] >= hi[d] {
							t.Fatalf("%d channels, filter %d: rTask %d of %d of %s reads nothing", channels, width, task, c.Tasks,
								c.Inst.Key())
						}
					}
				}
			}
		}
	}
}
