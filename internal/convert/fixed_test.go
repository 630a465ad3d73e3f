package convert

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Elements of inputs that are const and __restrict__ are loaded as such where their values are asked for, and nothing
// else is: no element that others may write, none whose address is taken, none of another pointer.
func TestFixedElements(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	source := write("k.cu", `
__device__ float twice(const float& x) { return 2 * x; }
__global__ void k(const float* __restrict__ x, const float* __restrict__ both, const float* plain, const float *__restrict__ const rows,
                  float* __restrict__ y, int n) {
  const int i = threadIdx.x;
  const float2* pairs = (const float2*)(rows + 2 * n);
  if (i > 7) both = plain;
  const float& kept = x[i + 1];
  const float2 p = pairs[i];
  y[i] = x[i] + plain[i] * (float)rows[i] + sinf(x[2]) + twice(x[3]) + both[i] + *(&x[4]) + pairs[5].x + kept;
  y[8] = (rows[6]), y[9] = p.y;
}
`)
	spec := write("k.yaml", `kernel: k
launch: {grid: [1], block: [8]}
arguments:
  - {name: x, role: input, type: float32, shape: ["100"]}
  - {name: both, role: input, type: float32, shape: ["100"]}
  - {name: plain, role: input, type: float32, shape: ["100"]}
  - {name: rows, role: input, type: float32, shape: ["100"]}
  - {name: y, role: output, type: float32, shape: ["100"]}
  - {name: n, role: value, value: "8"}
`)
	r := converted(t, source, spec)
	if r == nil {
		return
	}
	for _, want := range []string{
		"const float& kept = x[i + 1];",
		"const float2 p = pairs[i];",
		"y[i] = launch.constant(x[i]) + plain[i] * (float)launch.constant(rows[i]) + sinf(launch.constant(x[2])) + " +
			"twice(x[3]) + both[i] + *(&x[4]) + pairs[5].x + kept;",
		"y[8] = (launch.constant(rows[6])), y[9] = p.y;",
	} {
		if !strings.Contains(r.Header, want) {
			t.Errorf("no line %q in\n%s", want, r.Header)
		}
	}
}
