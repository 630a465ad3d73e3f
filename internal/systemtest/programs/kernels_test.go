package programs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/codegen"
	"github.com/rammerc/rammerc/internal/runner"
	"github.com/rammerc/rammerc/internal/stencil"
	"github.com/rammerc/rammerc/internal/systemtest"
	"github.com/rammerc/rammerc/vdevice"
)

// Launches that leave registers for blocks of another launch have a kernel of their own: it holds the instances of
// these launches and no others, and no code for weights that none of them streams, nor for any other part of the executor
// that these launches do without.
func TestKernelsApart(t *testing.T) {
	t.Parallel()
	s := stencil.Streamed(t, 2, 4, 512)
	s.Plan.Segments[0].Kind = vdevice.Waves
	s.Plan.Spec.Cost.PDL, s.Plan.Spec.Cost.Node = 1, 2 // launches overlap
	s.Plan.Spec.Registers = 4096                       // enough for two blocks without a loader, or one with
	dir := systemtest.EmitStencil(t, s, codegen.Options{})
	text, err := os.ReadFile(filepath.Join(dir, "stencil.cu"))
	if err != nil {
		t.Fatal(err)
	}
	for kernel, want := range map[string]struct {
		blocks, instance, other string
		ring                    bool
	}{
		"Kernel0": {"kBlocksPerSM = 1;", "kernels::test_stencil_streamed", "kernels::test_stencil>", true},
		"Kernel1": {"kBlocksPerSM = 2;", "kernels::test_stencil", "kernels::test_stencil_streamed", false},
	} {
		loads := fmt.Sprintf("kSingle = %t;", want.ring)
		_, body, found := strings.Cut(string(text), "struct "+kernel+" : Program {")
		body, _, _ = strings.Cut(body, "\n};")
		if !found || !strings.Contains(body, want.blocks) || !strings.Contains(body, want.instance) ||
			strings.Contains(body, want.other) || strings.Contains(body, "kStageBytes = 0") == want.ring ||
			!strings.Contains(body, loads) || !strings.Contains(body, "kPersistent = false;") {
			t.Errorf("%s is\n%s", kernel, body)
		}
	}
	l := systemtest.OpenLib(t, systemtest.BuildEmulated(t, dir, "stencil"), runner.Options{})
	for range 2 {
		if n := s.Mismatches(t, l); n > 0 {
			t.Errorf("%d elements are wrong", n)
		}
	}
	s.Plan.Spec.Registers = 1 << 16
	if n := len(s.Plan.Kernels()); n != 1 {
		t.Errorf("%d kernels where blocks of any two launches have registers", n)
	}
}
