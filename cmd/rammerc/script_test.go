package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/rammerc/rammerc/internal/process"
	"github.com/rammerc/rammerc/internal/testbuild"
	"github.com/rammerc/rammerc/internal/toolchain"
)

// TestMain makes this program act as rammerc in scripts.
func TestMain(m *testing.M) {
	testbuild.Unoptimised()
	testscript.Main(testbuild.Tests{M: m}, map[string]func(){"rammerc": main})
}

// TestScripts runs testdata/script/*.txtar. Beside testscript's own commands there are
//
//	status N COMMAND…        runs COMMAND, whose exit status must be N
//	json FILE PATH [VALUE]   FILE (or stdout) is JSON; .a.b.0 in it exists (and prints as VALUE)
//	mkmodel KIND FILE        writes a model of models_test.go
//	cut FILE BYTES NEW       the first BYTES of FILE, or all but the last -BYTES
//	flip FILE OFFSET         inverts a byte
//	same FILE FILE           the files have the same bytes
//	npy FILE VALUE…          a .npy file of int64
//	lib DIR                  copies the library of digits_branchy, built once for all scripts
//
// and the conditions [cxx], [nvcc], [gpu], [parser] and [numpy]. $MODELS is testdata/models.
func TestScripts(t *testing.T) {
	models, err := filepath.Abs("../../testdata/models")
	if err != nil {
		t.Fatal(err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = t.TempDir()
	}
	built := &library{dir: filepath.Join(t.TempDir(), "lib"), model: filepath.Join(models, "digits_branchy.onnx")}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("MODELS", models)
			e.Setenv("XDG_CACHE_HOME", cache)
			for _, v := range []string{"CXX", "CXXFLAGS", "NVCC", "CUDA_HOME", "CUDA_PATH", process.PythonVariable} {
				e.Setenv(v, os.Getenv(v))
			}
			return nil
		},
		Condition: condition,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"status": status, "json": checkJSON, "mkmodel": makeModel, "cut": cutFile, "flip": flipByte,
			"named": nameFile,
			"same":  sameFiles,
			"npy":   writeNPY, "lib": built.copy,
		},
	})
}

func condition(name string) (bool, error) {
	switch name {
	case "cxx":
		_, err := toolchain.FindCxx("")
		return err == nil, nil
	case "nvcc":
		_, err := toolchain.FindNVCC("")
		return err == nil, nil
	case "numpy":
		return exec.Command("python3", "-c", "import numpy, pip").Run() == nil, nil
	case "parser":
		return exec.Command(cmp.Or(os.Getenv(process.PythonVariable), "python3"), "-c", "import tree_sitter_cuda").Run() == nil, nil
	case "gpu":
		return toolchain.LocalArch(context.Background()) != "", nil
	}
	return false, fmt.Errorf("unknown condition %q", name)
}

func status(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N COMMAND…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

func checkJSON(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: json FILE PATH [VALUE]")
	}
	var v any
	if err := json.Unmarshal([]byte(ts.ReadFile(args[0])), &v); err != nil {
		ts.Fatalf("%s is no JSON: %v", args[0], err)
	}
	found, ok := lookUp(v, strings.Split(strings.TrimPrefix(args[1], "."), "."))
	matches := ok && (len(args) == 2 || fmt.Sprint(found) == args[2])
	if matches == neg {
		ts.Fatalf("%s in %s is %v (there: %v)", args[1], args[0], found, ok)
	}
}

func lookUp(v any, path []string) (any, bool) {
	for _, p := range path {
		switch x := v.(type) {
		case map[string]any:
			inner, ok := x[p]
			if !ok {
				return nil, false
			}
			v = inner
		case []any:
			i, err := strconv.Atoi(p)
			if err != nil || i < 0 || i >= len(x) {
				return nil, false
			}
			v = x[i]
		default:
			return nil, false
		}
	}
	return v, true
}

func makeModel(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 || modelKinds[args[0]] == nil {
		ts.Fatalf("usage: mkmodel KIND FILE, with a known KIND")
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), modelKinds[args[0]](), 0o666))
}

func cutFile(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: cut FILE BYTES NEW")
	}
	data, err := os.ReadFile(ts.MkAbs(args[0]))
	ts.Check(err)
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	if n < 0 {
		n += len(data)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), data[:n], 0o666))
}

// nameFile implements "named NAME PATTERN": $NAME becomes the path of the one file that matches. The numbers of dumps
// change with every pass that is added.
func nameFile(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: named NAME PATTERN")
	}
	found, err := filepath.Glob(ts.MkAbs(args[1]))
	ts.Check(err)
	if len(found) != 1 {
		ts.Fatalf("%d files match %s", len(found), args[1])
	}
	ts.Setenv(args[0], filepath.ToSlash(filepath.Join(filepath.Dir(args[1]), filepath.Base(found[0]))))
}

func flipByte(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: flip FILE OFFSET")
	}
	data, err := os.ReadFile(ts.MkAbs(args[0]))
	ts.Check(err)
	at, err := strconv.Atoi(args[1])
	ts.Check(err)
	data[at] ^= 0xff
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), data, 0o666))
}

func sameFiles(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: same FILE FILE")
	}
	if (ts.ReadFile(args[0]) == ts.ReadFile(args[1])) == neg {
		ts.Fatalf("%s and %s: same bytes: %v", args[0], args[1], neg)
	}
}

// library is built when the first script asks for it.
type library struct {
	dir, model string
	once       sync.Once
	err        error
}

func (l *library) copy(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: lib DIR")
	}
	l.once.Do(func() {
		l.err = ts.Exec("rammerc", "compile", l.model, "-q", "--target", "emu", "-o", l.dir)
	})
	ts.Check(l.err)
	ts.Check(os.CopyFS(ts.MkAbs(args[0]), os.DirFS(l.dir)))
}
