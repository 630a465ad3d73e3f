package libraries

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rammerc/rammerc/codegen"
	"github.com/rammerc/rammerc/internal/stencil"
	"github.com/rammerc/rammerc/internal/systemtest"
	"github.com/rammerc/rammerc/internal/toolchain"
)

// tenantsMain puts inferences that the host does not wait for, which run without a guard, between others.
const tenantsMain = `
#include "stencil.cu"

alignas(16) static float x[512], y[512];

int main() {
  stencil_ctx* ctx = nullptr;
  if (stencil_create(nullptr, &ctx) != stencil_OK) return std::puts(stencil_last_error(nullptr)), 1;
  const void* in[] = {x};
  void* out[] = {y};
  int status = stencil_OK;
  for (int i = 0; i < 6 && status == stencil_OK; ++i) {
    status = i % 3 == 1 ? stencil_run_async(ctx, nullptr, in, out) : stencil_run(ctx, in, out, stencil_HOST);
  }
  if (status != stencil_OK) return std::puts(stencil_last_error(ctx)), 1;
  std::fputs(stencil_run_info(ctx), stdout);
  stencil_destroy(ctx);
}
`

// Beside others' kernels, launches that the host waits for are guarded and others are not. They do not count
// each other.
func TestTenants(t *testing.T) {
	t.Parallel()
	s := stencil.New(t, 8, 4, 64)
	dir := systemtest.EmitStencil(t, s, codegen.Options{})
	cxx, err := toolchain.FindCxx("")
	if err != nil {
		t.Skip(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "main.cc"), []byte(tenantsMain), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := cxx.BuildProgram(t.Context(), dir, "main", []string{"main.cc"}, "-O1", "-w"); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(dir, "main"))
	cmd.Env = append(os.Environ(), "RAMMER_EMU_TENANTS=1")
	const want = `{"schema":1,"device":"CPU emulator","index":0,"mode":"rprogram","reason":"the plan"}`
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != want {
		t.Errorf("it runs as %s (%v), want %s", out, err, want)
	}
}
