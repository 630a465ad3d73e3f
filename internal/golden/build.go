package golden

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/rammerc/rammerc/codegen/backend"
	"github.com/rammerc/rammerc/codegen/rt"
	"github.com/rammerc/rammerc/rkernels"
)

// nvccVariable names nvcc: with it set, the tests run on this machine's GPU instead of the emulator.
const nvccVariable = "RAMMER_GOLDEN_NVCC"

// keepVariable names a folder in which sources and programs stay when the tests have ended.
const keepVariable = "RAMMER_GOLDEN_KEEP"

// compiler finds a C++ compiler, "" when there is none.
func compiler() string {
	for _, name := range []string{os.Getenv("CXX"), "g++", "c++", "clang++"} {
		if path, err := exec.LookPath(name); name != "" && err == nil {
			return path
		}
	}
	return ""
}

// workshop is the folder in which the programs of all tests are built. What they have in common is there once: the
// headers, and the prelude, which every program includes first.
type workshop struct {
	prepared sync.Once
	dir      string
	err      error // of the preparation
}

// programs is used by all tests of this process.
var programs workshop

// Main runs the tests of a package, removes what their programs share, and ends the process. It is what a TestMain calls.
func Main(tests interface{ Run() int }) {
	code := tests.Run()
	if err := programs.remove(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

// preludeFile is what every program includes first: the emulator, the run time and the parts that all rKernels share.
const preludeFile = "prelude.h"

const prelude = `#include "rt/host/harness.cuh"
#include "common/math.cuh"
#include "common/operand.cuh"
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <sys/mman.h>
`

// build compiles the source of the program with the given name, which must be another one for each call.
func (w *workshop) build(name, text string) (program string, err error) {
	w.prepared.Do(func() { w.err = w.prepare() })
	if w.err != nil {
		return "", w.err
	}
	src := filepath.Join(w.dir, name+".cc") // one source for either compiler
	if err := os.WriteFile(src, []byte(text), 0o644); err != nil {
		return "", err
	}
	program = filepath.Join(w.dir, name)
	return program, w.compile(src, "-o", program)
}

// prepare writes the headers and, for the emulator, compiles the prelude. GCC takes prelude.h.gch where a source that
// is compiled with the same flags includes prelude.h. Other compilers do not know the file and read prelude.h.
func (w *workshop) prepare() (err error) {
	if w.dir = os.Getenv(keepVariable); w.dir == "" {
		if w.dir, err = os.MkdirTemp("", "rammer-golden-"); err != nil {
			return err
		}
	}
	include := filepath.Join(w.dir, "include")
	for sub, files := range map[string]fs.FS{"rt": rt.Files, "backend": backend.Files, "": rkernels.Files} {
		if err := os.CopyFS(filepath.Join(include, sub), files); err != nil && !os.IsExist(err) {
			return err
		}
	}
	header := filepath.Join(include, preludeFile)
	if err := os.WriteFile(header, []byte(prelude), 0o644); err != nil {
		return err
	}
	if os.Getenv(nvccVariable) != "" {
		return nil
	}
	if err := checkDivisions(filepath.Join(include, "rt", "device", "div.cuh")); err != nil {
		return err
	}
	return w.compile("-x", "c++-header", header, "-o", header+".gch")
}

// checkDivisions has programs end with a message where rt::Div is asked about a number below zero, of which it knows
// nothing: its digits would be those of another number, and their products overflow.
func checkDivisions(header string) error {
	data, err := os.ReadFile(header)
	if err != nil {
		return err
	}
	const first = "    const uint32_t high = "
	text := string(data)
	if strings.Count(text, first) != 1 {
		return fmt.Errorf("%s has the text %q %d times, want once", header, first, strings.Count(text, first))
	}
	check := "    if (n < 0) std::printf(\"%d is divided by %u\\n\", n, d), std::abort();\n"
	text = strings.Replace(text, first, check+first, 1)
	text = strings.Replace(text, "#include <cstdint>\n", "#include <cstdint>\n#include <cstdio>\n#include <cstdlib>\n", 1)
	return os.WriteFile(header, []byte(text), 0o644)
}

// compile runs the compiler. Nothing is optimised: all programs together are built within a third of the time that -O1
// needs, and what they then take longer to run is less than that.
func (w *workshop) compile(args ...string) error {
	cmd := exec.Command(compiler(), "-O0", "-pthread", "-fno-strict-aliasing")
	if nvcc := os.Getenv(nvccVariable); nvcc != "" {
		cmd = exec.Command(nvcc, "-arch=native", "-x", "cu")
	}
	cmd.Args = append(cmd.Args, "-std=c++20", "-w", "-I", filepath.Join(w.dir, "include"))
	cmd.Args = append(cmd.Args, args...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, firstLines(string(out), 60))
	}
	return nil
}

// remove deletes the folder, unless it is to be kept.
func (w *workshop) remove() error {
	if w.dir == "" || os.Getenv(keepVariable) != "" {
		return nil
	}
	return os.RemoveAll(w.dir)
}

func firstLines(s string, n int) string {
	lines := strings.SplitAfterN(s, "\n", n+1)
	return strings.Join(lines[:min(n, len(lines))], "")
}
