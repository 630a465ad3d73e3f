package rammerc_test

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
)

const module = "github.com/rammerc/rammerc/"

// families is what the lowerings of all families may import.
const families = "ir rkernels rkernels/functor roperator lower/arg lower/build lower/elementwise schema "

// allowed lists, per package, the project packages it may import directly: the arrows of ARCHITECTURE.md.
// "*" allows all.
var allowed = map[string]string{
	"internal/diag":      "",
	"internal/limits":    "",
	"internal/dump":      "internal/limits",
	"internal/npy":       "internal/limits",
	"internal/tensorio":  "ir ir/onnx internal/limits internal/npy",
	"internal/process":   "",
	"internal/wheel":     "",
	"internal/toolchain": "internal/process",
	"codegen/abi":        "schema",
	"ir/onnx/onnxpb":     "",
	"ir":                 "internal/diag",
	"ir/onnx":            "ir ir/onnx/onnxpb internal/diag internal/limits internal/npy",
	"ir/eval":            "ir internal/limits internal/process internal/toolchain",
	"ir/axes":            "ir ir/eval internal/diag",
	// What fuses with an operator is in the manifests of its rKernels.
	"graphopt":         "ir ir/eval rkernels internal/diag internal/dump precision",
	"rkernels":         "ir rkernels/functor internal/diag",
	"rkernels/functor": "ir",
	"roperator":        "ir ir/axes rkernels internal/diag precision",
	// Lowering, from what all share to the table of all families: each row may import what stands above it.
	"precision":         "ir",
	"lower/target":      "device ir schema",
	"lower/arg":         "rkernels rkernels/functor roperator",
	"lower/pack":        "ir rkernels/functor roperator",
	"lower/build":       "ir ir/axes rkernels rkernels/functor roperator lower/arg lower/target internal/diag precision",
	"lower/elementwise": "ir rkernels rkernels/functor roperator lower/arg lower/build",
	"lower/tails":       "ir rkernels rkernels/functor roperator lower/arg lower/build lower/elementwise",
	"lower/contraction": families + "ir/axes lower/target lower/tails precision",
	"lower/gemv":        families + "lower/target lower/tails lower/contraction lower/pack precision",
	"lower/pointwise":   families + "lower/tails lower/contraction lower/pack",
	"lower/gemm":        families + "lower/tails lower/contraction lower/pack lower/gemv lower/norm lower/pointwise lower/target precision",
	"lower/einsum":      families + "lower/tails lower/contraction lower/gemm",
	"lower/custom":      families,
	"lower/conv":        families + "lower/target lower/tails lower/contraction lower/pack lower/gemm lower/pointwise precision",
	"lower/attention":   families + "ir/axes lower/tails lower/contraction lower/pack lower/target",
	"lower/indexed":     families + "ir/axes lower/tails",
	"lower/norm":        families + "lower/tails",
	"lower/pool":        families + "lower/tails",
	"lower/quantize":    families,
	"lower/recurrent":   families + "lower/tails lower/contraction lower/gemv lower/pack",
	"lower/reduce":      families + "ir/axes lower/tails",
	"lower/sampling":    families + "lower/tails",
	"lower/squeeze":     families + "lower/tails lower/pack",
	"lower/source":      families + "lower/tails",
	"lower/views":       families,
	"lower": "ir ir/axes rkernels roperator device lower/target lower/build lower/elementwise lower/attention lower/conv lower/custom lower/einsum lower/gemm " +
		"lower/indexed lower/norm lower/pool lower/quantize lower/recurrent lower/reduce lower/sampling lower/source lower/squeeze lower/views precision",
	"profiler":       "ir rkernels roperator device internal/diag",
	"profiler/model": "profiler ir rkernels roperator device internal/diag",
	"profiler/db":    "",
	"profiler/tune":  "profiler/db",
	"profiler/measure": "codegen codegen/backend codegen/rt internal/process internal/toolchain internal/tolerance ir precision profiler " +
		"profiler/db profiler/timing rkernels roperator",
	"device":             "internal/diag internal/limits",
	"vdevice":            "device rkernels roperator internal/diag schema",
	"schedule":           "device roperator profiler vdevice internal/diag internal/dump",
	"codegen":            "ir ir/axes device rkernels rkernels/functor roperator vdevice codegen/abi codegen/backend codegen/rt internal/diag internal/dump internal/toolchain schema precision",
	"codegen/rt":         "",
	"schema":             "",
	"schema/describe":    "",
	"schema/generate":    "schema/describe",
	"codegen/backend":    "codegen/rt",
	"internal/runner":    "codegen/abi internal/outdir internal/process internal/toolchain internal/diag",
	"internal/convert":   "codegen/backend codegen/rt internal/diag internal/limits internal/outdir internal/process internal/toolchain ir rkernels",
	"internal/calibrate": "codegen/backend internal/process internal/toolchain device",
	"internal/trace":     "schema internal/diag",
	"internal/report":    "device internal/diag internal/trace",
	"profiler/timing":    "ir internal/tolerance precision",
	"internal/progress":  "internal/diag",
	"internal/outdir":    "internal/diag",
	"internal/budget":    "ir ir/eval graphopt internal/tolerance precision",
	"internal/engine":    "ir ir/eval ir/onnx internal/diag internal/limits internal/runner internal/tensorio internal/tolerance internal/toolchain precision",
	// The pipeline sees every stage; only commands see the pipeline.
	"internal/driver": "ir ir/axes ir/onnx graphopt lower rkernels roperator device profiler profiler/db profiler/measure profiler/model profiler/timing profiler/tune vdevice schedule " +
		"codegen codegen/abi codegen/backend internal/diag internal/budget internal/dump internal/engine internal/outdir internal/progress " +
		"internal/limits internal/runner internal/tensorio internal/toolchain internal/trace precision internal/wheel",
	"internal/commands":    "*",
	"cmd/rammerc":          "internal/commands internal/driver internal/engine internal/diag internal/limits internal/process precision",
	"internal/tolerance":   "ir precision",
	"scripts/benchtables":  "",
	"scripts/testcount":    "",
	"scripts/mutate":       "internal/process",
	"scripts/soak":         "internal/npy",
	"scripts/compareplans": "codegen device internal/driver ir profiler/model schedule vdevice",
	// Test-only packages; nothing imports them (see forbidden).
	"internal/golden": "*", "internal/golden/images": "", "internal/golden/rows": "",
	"internal/hostile": "ir/onnx/onnxpb",
	// Tests of pages and of examples.
	"docs/guide":          "",
	"examples":            "",
	"internal/testbuild":  "internal/toolchain",
	"internal/stencil":    "device ir rkernels rkernels/functor roperator vdevice",
	"internal/systemtest": "codegen internal/driver internal/runner internal/stencil internal/testbuild internal/toolchain ir ir/onnx/onnxpb",
	// Tests of whole libraries, by what they have.
	"internal/systemtest/attacks":   "",
	"internal/systemtest/decoders":  "",
	"internal/systemtest/digits":    "",
	"internal/systemtest/dynamic":   "",
	"internal/systemtest/libraries": "",
	"internal/systemtest/programs":  "",
	"internal/systemtest/steps":     "",
	"internal/difftest":             "*",
	"internal/conformance":          "*",
	// The command is a test that runs on machines without Go.
	"internal/conformance/cmd/conformance": "internal/conformance precision",
	"vdevice/vdevicetest":                  "*",
	"profiler/measure/measuretest":         "internal/toolchain",
}

// forbidden are reachabilities that must not exist even through other packages.
var forbidden = [][2]string{
	{"codegen", "schedule"}, {"codegen", "profiler"}, {"codegen", "graphopt"},
	{"rkernels", "roperator"}, {"roperator", "lower"}, {"schedule", "lower"}, {"codegen", "lower"},
	{"profiler", "vdevice"},
	{"vdevice", "schedule"}, {"vdevice", "profiler"},
	{"internal/driver", "internal/commands"}, {"internal/engine", "internal/driver"}, {"profiler", "codegen"},
	{"profiler/timing", "schedule"}, {"profiler/timing", "codegen"}, {"profiler/timing", "internal/runner"},
	{"internal/commands", "internal/golden"}, {"internal/commands", "internal/difftest"},
	{"internal/commands", "vdevice/vdevicetest"}, {"internal/commands", "profiler/measure/measuretest"},
	{"cmd/rammerc", "internal/golden"}, {"cmd/rammerc", "internal/difftest"}, {"cmd/rammerc", "internal/conformance"},
}

type pkg struct {
	ImportPath string
	Imports    []string
	Deps       []string
}

func list(t *testing.T) map[string]pkg {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports,Deps", "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	pkgs := map[string]pkg{}
	for dec := json.NewDecoder(strings.NewReader(string(out))); dec.More(); {
		var p pkg
		if err := dec.Decode(&p); err != nil {
			t.Fatal(err)
		}
		pkgs[strings.TrimPrefix(p.ImportPath, module)] = p
	}
	return pkgs
}

func TestImportArrows(t *testing.T) {
	for name, p := range list(t) {
		rule, known := allowed[name]
		if !known {
			if !strings.HasPrefix(name, "github.com/") { // the root has tests only
				t.Errorf("package %s is in no row of the import table", name)
			}
			continue
		}
		ok := map[string]bool{}
		for _, a := range strings.Fields(rule) {
			ok[a] = true
		}
		for _, imp := range p.Imports {
			local, isLocal := strings.CutPrefix(imp, module)
			if isLocal && !ok[local] && !ok["*"] {
				t.Errorf("%s imports %s; it may import: %s", name, local, rule)
			}
		}
	}
}

func TestForbiddenReach(t *testing.T) {
	pkgs := list(t)
	for _, f := range forbidden {
		for _, dep := range pkgs[f[0]].Deps {
			if dep == module+f[1] {
				t.Errorf("%s reaches %s", f[0], f[1])
			}
		}
	}
}
