package lower

import (
	"fmt"
	"io/fs"
	"slices"
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

// On a device with little shared memory attention has candidates that leave room for a ring of weights.
func TestAttentionBesideRings(t *testing.T) {
	const in = "%q: float32[1,8,32,64], %k: float32[1,8,64,32], %v: float32[1,8,32,64]"
	for name, want := range map[string]bool{"rtx4090": true, "h200": false} {
		for _, p := range []precision.Precision{precision.TF32, precision.FP16} {
			g, choice := parsed(t, in, "%s: invalid? = MatMul(%q, %k)\n%p: invalid? = Softmax(%s)\n%y = MatMul(%p, %v)"),
				precision.Choice{Program: p}
			if err := graphopt.Run(g, graphopt.Options{Check: true, Precision: choice}); err != nil {
				t.Fatal(err)
			}
			ops, err := lowerStatic(g, testTarget(name), testKernels(), choice)
			if err != nil {
				t.Fatal(err)
			}
			small := 0
			for _, op := range ops.Ops {
				for _, c := range op.Candidates {
					if c.Inst.Kernel.Name == "attention_mma" && c.Inst.Shared() <= 48<<10 {
						small++
					}
				}
			}
			if small > 0 != want {
				t.Errorf("%s, %v: %d small candidates", name, p, small)
			}
		}
	}
}

// Attention with heads that no attention kernel takes is lowered as its parts.
func TestLargeHeads(t *testing.T) {
	for columns, want := range map[int]bool{256: true, 257: false} {
		in := fmt.Sprintf("%%q: float32[1,2,8,%d], %%k: float32[1,2,%[1]d,8], %%v: float32[1,2,8,%[1]d]", columns)
		g := parsed(t, in, "%s: invalid? = MatMul(%q, %k)\n%p: invalid? = Softmax(%s)\n%y = MatMul(%p, %v)")
		if err := graphopt.Run(g, graphopt.Options{Check: true}); err != nil {
			t.Fatal(err)
		}
		ops, err := lowerStatic(g, testTarget("h200"), testKernels(), precision.Choice{})
		if err != nil {
			t.Fatalf("%d columns: %v", columns, err)
		}
		if count := kernelsOf(ops); (count["attention_mma"] > 0) != want || (count["softmax"] > 0) == want {
			t.Errorf("%d columns: candidates %v", columns, count)
		}
	}
}

// Warp groups multiply in attention where a GPU has them, elements have 16 bits, and enough queries share keys. They are
// beside the kernels of other GPUs, of which few tasks may be faster.
func TestAttentionByWarpGroups(t *testing.T) {
	const body = "%y = rammer.Attention(%q, %k, %k) {scale = 0.125f}"
	for _, c := range []struct {
		name, device, in string
		want             bool
	}{
		{"heads of 16 bits", "h200", "%q: float16[2,4,64,64], %k: float16[2,4,80,64]", true},
		{"on the emulator", "emu4", "%q: bfloat16[2,4,64,64], %k: bfloat16[2,4,80,64]", true},
		{"without warp groups", "a100", "%q: float16[2,4,64,64], %k: float16[2,4,80,64]", false},
		{"float32", "h200", "%q: float32[2,4,64,64], %k: float32[2,4,80,64]", false},
		{"few queries", "h200", "%q: float16[2,4,16,64], %k: float16[2,4,80,64]", false},
		{"rows that are no whole loads", "h200", "%q: float16[2,4,64,60], %k: float16[2,4,80,60]", false},
	} {
		g, err := lowerStatic(parsed(t, c.in, body), testTarget(c.device), testKernels(), precision.Choice{})
		if err != nil {
			t.Fatal(err)
		}
		if err := roperator.Verify(g); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if count := kernelsOf(g); (count["attention_wgmma"] > 0) != c.want || count["attention_mma"] == 0 {
			t.Errorf("%s: candidates %v", c.name, count)
		}
	}
}

// Registers hold all keys where there are few of them, heads are of whole fragments, and rTasks have a multiprocessor each.
func TestAttentionInRegisters(t *testing.T) {
	const body = "%y = rammer.Attention(%q, %k, %k) {scale = 0.125f}"
	for _, c := range []struct {
		name, in string
		want     bool
	}{
		{"heads of 64", "%q: float16[1,3,197,64], %k: float16[1,3,197,64]", true},
		{"windows", "%q: float16[64,3,49,32], %k: float16[64,3,49,32]", true},
		{"many rTasks", "%q: float16[8,12,128,64], %k: float16[8,12,128,64]", false},
		{"many keys", "%q: float16[1,3,197,64], %k: float16[1,3,257,64]", false},
		{"few keys", "%q: float16[1,3,197,64], %k: float16[1,3,64,64]", false},
		{"odd heads", "%q: float16[1,3,197,56], %k: float16[1,3,197,56]", false},
		{"three products", "%q: float32[1,3,197,64], %k: float32[1,3,197,64]", false},
	} {
		g, err := lowerStatic(parsed(t, c.in, body), testTarget("h200"), testKernels(), precision.Choice{})
		if err != nil {
			t.Fatal(err)
		}
		if err := roperator.Verify(g); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if count := kernelsOf(g); (count["attention_direct"] > 0) != c.want {
			t.Errorf("%s: candidates %v", c.name, count)
		}
	}
}

// One token whose heads share many keys is multiplied on tensor cores where that fills the device, and by threads
// elsewhere.
func TestAttentionOfOneToken(t *testing.T) {
	const body = "%y = rammer.Attention(%q, %k, %k) {scale = 0.125f}"
	for _, c := range []struct {
		name, in string
		want     bool
	}{
		{"shared keys", "%q: float16[8,8,4,1,128], %k: float16[8,8,1,256,128]", true},
		{"few heads", "%q: float16[1,8,4,1,128], %k: float16[1,8,1,256,128]", false},
		{"keys of one head", "%q: float16[8,32,1,128], %k: float16[8,32,256,128]", false},
		{"few keys", "%q: float16[8,8,4,1,128], %k: float16[8,8,1,100,128]", false},
		{"float32", "%q: float32[8,8,4,1,128], %k: float32[8,8,1,256,128]", false},
	} {
		g, err := lowerStatic(parsed(t, c.in, body), testTarget("h200"), testKernels(), precision.Choice{})
		if err != nil {
			t.Fatal(err)
		}
		count := kernelsOf(g)
		for _, tensor := range []string{"attention_mma", "attention_warps"} {
			if (count[tensor] > 0) != c.want || (count["attention_few"] > 0) == c.want {
				t.Errorf("%s: candidates %v", c.name, count)
			}
		}
	}
}

// Where more tiles of few rows share keys than there are vEUs, rTasks with several of them are considered, too.
func TestFewRowsInTurns(t *testing.T) {
	in := "%q: float16[32,8,4,1,128], %k: float16[32,8,1,256,128]"
	g, err := lowerStatic(parsed(t, in, "%y = rammer.Attention(%q, %k, %k) {scale = 0.125f}"), testTarget("h200"),
		testKernels(), precision.Choice{})
	if err != nil {
		t.Fatal(err)
	}
	if err := roperator.Verify(g); err != nil {
		t.Error(err)
	}
	var tasks []int
	for _, c := range g.Ops[len(g.Ops)-1].Candidates {
		if c.Inst.Kernel.Name == "attention_warps" {
			tasks = append(tasks, c.Tasks)
		}
	}
	if !slices.Equal(tasks, []int{256, 128}) {
		t.Errorf("candidates with so many rTasks: %v", tasks)
	}
}

// Where some queries do not attend to all keys, tiles have queries of several heads that share keys: of as many as leave
// rTasks equally many keys.
func TestTilesOfSeveralHeads(t *testing.T) {
	const prompts, causal = "%q: float16[32,8,4,256,128], %k: float16[32,8,1,256,128]", ", before = -1000, behind = 0"
	for _, c := range []struct {
		name, in, attrs string
		want            bool
	}{
		{"causal", prompts, causal, true},
		{"a quarter of them", strings.ReplaceAll(prompts, "[32,", "[8,"), causal, true},
		{"all keys", prompts, "", false},
		{"keys of one head", strings.Replace(prompts, "8,1,", "8,4,", 1), causal, false},
	} {
		body := "%y = rammer.Attention(%q, %k, %k) {scale = 0.125f" + c.attrs + "}"
		g, err := lowerStatic(parsed(t, c.in, body), testTarget("h200"), testKernels(), precision.Choice{})
		if err != nil {
			t.Fatal(err)
		}
		if err := roperator.Verify(g); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		together := slices.IndexFunc(g.Ops[len(g.Ops)-1].Candidates, func(c *roperator.Candidate) bool {
			return strings.Contains(c.Inst.Name(), "Together1")
		})
		if (together >= 0) != c.want {
			t.Errorf("%s: candidate %d has tiles of several heads", c.name, together)
		} else if c.want && g.Ops[len(g.Ops)-1].Candidates[together].Tasks != 128 {
			t.Errorf("%s: %d rTasks", c.name, g.Ops[len(g.Ops)-1].Candidates[together].Tasks)
		}
	}
}
