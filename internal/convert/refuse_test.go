package convert

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/internal/toolchain"
)

// refusals are kernels that cannot be converted. The message is the one of the line that has "here" in a comment.
var refusals = []struct{ name, source, want string }{
	{"grid", "#include <cooperative_groups.h>\nnamespace cg = cooperative_groups; // here\n" +
		"__global__ void k(float* x) { cg::grid_group g = cg::this_grid(); g.sync(); }", "uses cooperative groups"},
	{"dynamic parallelism", "__global__ void other(float* x) {}\n__global__ void k(float* x) {\n" +
		"  other<<<1, 1>>>(x); // here\n}",
		"launches kernels on the device"},
	{"texture", "__global__ void k(float* x) {\n  x[0] = tex1Dfetch<float>(0, 1); // here\n}", "reads a texture"},
	{"assembly", "__global__ void k(float* x) {\n  asm volatile(\"bar.sync 0;\"); // here\n}", "has PTX in it"},
	{"in a function", "__device__ float f() {\n  asm(\"nop;\"); // here\n return 0; }\n" +
		"__global__ void k(float* x) { x[0] = f(); }", "has PTX in it"},
	{"constant memory", "__constant__ float c[4]; // here\n__global__ void k(float* x) { x[0] = c[0]; }",
		"constant memory that the host fills: c"},
	{"global variable", "__device__ int count; // here\n__global__ void k(float* x) { atomicAdd(&count, 1); }",
		"lives from launch to launch: count"},
	{"active mask", "__global__ void k(float* x) {\n  x[0] = __activemask(); // here\n}",
		"which threads of the warp run together"},
	{"old shuffle", "__global__ void k(float* x) {\n  x[0] = __shfl_down(x[0], 1); // here\n}", "as before CUDA 9"},
	{"heap", "__global__ void k(float* x) {\n  float* p = new float[4]; // here\n  x[0] = p[0]; }",
		"the heap of the device"},
	{"tensor cores", "__global__ void k(float* x) {\n  nvcuda::wmma::load(x); // here\n}", "tensor cores"},
	{"class parameter", "struct P { int n; };\n__global__ void k(P p) { // here\n}", "is not known as a number"},
	{"size", "struct P { int n[3]; };\n__global__ void k(float* x) {\n  __shared__ P p; // here\n  x[0] = p.n[0]; }",
		"shared_bytes: {p: N}"},
	{"leaves among exchanges", "__global__ void k(float* x) {\n  for (int i = 0; i < 9; ++i) {\n" +
		"    if (x[threadIdx.x] > i) return; // here\n    x[i] = __shfl_xor_sync(0xffffffff, x[i], 1);\n  }\n}",
		"inside a statement in which lanes of a warp meet, on line 4"},
	{"operator", "struct F { __device__ int operator()() { return threadIdx.x; } }; // here\n" +
		"__global__ void k(float* x) { x[0] = F()(); }", "operators and constructors cannot be told"},
	{"not parsed", "__global__ void k(float* x) {\n  x[0] = = 3; // here\n}", "cannot be parsed here"},
	{"name", "__global__ void other(float* x) {}", "there is no kernel k; found: other"},
	{"arguments", "__global__ void k(float* x, int n) { // here\n}", "k has 2 parameters"},
}

// What cannot be converted is refused where it stands, by a message that says what it is.
func TestRefusals(t *testing.T) {
	for _, c := range refusals {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			spec := "kernel: k\nlaunch: {grid: [\"1\"], block: [64]}\narguments:\n" +
				"  - {name: x, role: input, type: float32, shape: [n]}\n"
			if c.name == "class parameter" {
				spec = "kernel: k\nlaunch: {grid: [\"1\"], block: [64]}\narguments:\n  - {name: p, role: value, value: \"1\"}\n"
			}
			for name, text := range map[string]string{"k.cu": c.source, "k.yaml": spec} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			_, err := Convert(context.Background(),
				Options{Source: filepath.Join(dir, "k.cu"), Spec: filepath.Join(dir, "k.yaml")})
			if toolchain.IsMissing(err) {
				t.Skip(err)
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("%v, want %q", err, c.want)
			}
			for i, line := range strings.Split(c.source, "\n") {
				if at := "k.cu:" + string(rune('1'+i)) + ":"; strings.Contains(line, "here") &&
					!strings.Contains(err.Error(), at) {
					t.Errorf("%v, want %s", err, at)
				}
			}
		})
	}
}

// Specifications are checked before anything is parsed.
func TestBadSpecifications(t *testing.T) {
	const fine = "kernel: k\nlaunch: {grid: [n], block: [64]}\narguments:\n" +
		"  - {name: x, role: input, type: float32, shape: [n]}\n"
	for _, c := range []struct{ from, to, want string }{
		{"kernel: k", "kernle: k", "kernle"},
		{"kernel: k", "name: k", "kernel: is missing"},
		{"kernel: k", "kernel: k\nname: a-b", "no name for a C++ class"},
		{"[64]", "[64, 64]", "4096 threads"},
		{"[n], block", "[], block", "grid has 0 extents"},
		{"grid: [n]", "grid: [n +]", "formula"},
		{"role: input", "role: inptu", "none of input, output"},
		{"type: float32", "type: float23", "no element type"},
		{"shape: [n]", "box: [a]", "shape: is missing"},
		{"shape: [n]", "shape: [n], initial: \"0\"", "an input has the elements"},
		{"role: input", "role: output, initial: z", "neither 0 nor the name of an input"},
		{"shape: [n]}", "shape: [n]}\n  - {name: x, role: value, value: \"1\"}", "there twice"},
	} {
		path := filepath.Join(t.TempDir(), "k.yaml")
		if err := os.WriteFile(path, []byte(strings.Replace(fine, c.from, c.to, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadSpec(path); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.to, err, c.want)
		}
	}
}
