package lower

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/graphopt"
	"github.com/rammerc/rammerc/precision"
	"github.com/rammerc/rammerc/roperator"
)

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

// Heads that share keys have a candidate that fits devices with little shared memory.
func TestSharedKeysFit(t *testing.T) {
	const in = "%q: float16[8,8,4,1,128], %k: float16[8,8,1,256,128]"
	for _, name := range []string{"rtx4090", "a100", "h200"} {
		device := testTarget(name)
		g, err := lowerStatic(parsed(t, in, "%y = rammer.Attention(%q, %k, %k) {scale = 0.09f}"), device, testKernels(),
			precision.Choice{Program: precision.FP16})
		if err != nil {
			t.Fatal(err)
		}
		fit := slices.ContainsFunc(g.Ops[len(g.Ops)-1].Candidates, func(c *roperator.Candidate) bool {
			return c.Inst.Shared() <= device.SharedPerTask
		})
		if !fit {
			t.Errorf("%s: no candidate fits %d bytes", name, device.SharedPerTask)
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
			name := c.Inst.Name()
			return strings.Contains(name, "Together") && !strings.Contains(name, "Together0")
		})
		if (together >= 0) != c.want {
			t.Errorf("%s: candidate %d has tiles of several heads", c.name, together)
		} else if c.want && g.Ops[len(g.Ops)-1].Candidates[together].Tasks != 128 {
			t.Errorf("%s: %d rTasks", c.name, g.Ops[len(g.Ops)-1].Candidates[together].Tasks)
		}
	}
}
