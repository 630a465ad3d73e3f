package codegen

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/codegen/backend"
	"github.com/rammerc/rammerc/codegen/rt"
	"github.com/rammerc/rammerc/internal/toolchain"
)

// A header of the schema that somebody changed by hand does not compile: its assertions, or those of the executor's
// layout, speak of what the compiler counts on.
func TestSchemaHeadersAssertTheirLayout(t *testing.T) {
	t.Parallel()
	cxx, err := toolchain.FindCxx("")
	if err != nil {
		t.Skip(err)
	}
	for _, c := range []struct{ name, header, from, to string }{
		{name: "as it is"},
		{"members exchanged", "tables.cuh", "uint32_t veu;\n  uint32_t order;", "uint32_t order;\n  uint32_t veu;"},
		{"a wider member", "tables.cuh", "uint16_t wait_count;", "uint32_t wait_count;"},
		{"one more member", "tables.cuh", "  uint16_t kind;", "  uint16_t kind;\n  uint16_t more;"},
		{"a trace row that grew", "trace.cuh", "uint32_t in_segment;", "uint64_t in_segment;"},
		{"less room for gates", "memory.cuh", "kSharedAlign - 1) / kSharedAlign *", "0) / kSharedAlign *"},
		{"more gates than have room", "memory.cuh", "kTurnBarriers * kStagedOperands)", "0)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := copyRuntime(t)
			if c.header != "" {
				path := filepath.Join(dir, "rt", "schema", c.header)
				text, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				changed := strings.Replace(string(text), c.from, c.to, 1)
				if changed == string(text) {
					t.Fatalf("%s has no %q", c.header, c.from)
				}
				if err := os.WriteFile(path, []byte(changed), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			compile := exec.Command(cxx.Path, "-std=c++20", "-fsyntax-only", "-I", dir, filepath.Join(dir, "layout.cc"))
			out, err := compile.CombinedOutput()
			if (err == nil) != (c.header == "") {
				t.Errorf("%v\n%s", err, out)
			}
			if err != nil && !strings.Contains(string(out), "static assertion failed") {
				t.Errorf("it is no assertion that fails:\n%s", out)
			}
		})
	}
}

// copyRuntime writes the run time below a folder, with a source that instantiates the layout of shared memory.
func copyRuntime(t *testing.T) string {
	dir := t.TempDir()
	for name, files := range map[string]fs.FS{"rt": rt.Files, "backend": backend.Files} {
		if err := os.CopyFS(filepath.Join(dir, name), files); err != nil {
			t.Fatal(err)
		}
	}
	source := `#include "rt/exec/layout.cuh"
struct Program {
  static constexpr int kSpaces = 3, kArgsBytes = 64, kMoves = 2, kImports = 8, kSlots = 64, kThreads = 64;
  static constexpr int kStageBytes = 0, kShared = 0, kSharedBudget = 0, kSideBudget = 0, kAlone = 0;
  static constexpr bool kJumps = false, kRepeats = false, kPassing = false;
};
static_assert(rt::SharedLayout<Program>::kTask > 0);
#include "rt/schema/library.h"
#include "rt/schema/trace.cuh"
`
	if err := os.WriteFile(filepath.Join(dir, "layout.cc"), []byte(source), 0o666); err != nil {
		t.Fatal(err)
	}
	return dir
}
