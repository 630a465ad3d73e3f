// Package guide has the guide, and a test that follows it.
package guide

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/internal/toolchain"
)

// shellBlock is a block of commands in a page. Those that are marked as console are shown and not run.
var shellBlock = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")

// The commands of each page of the guide succeed as they stand, in a folder with the files that the guide speaks of.
func TestGuide(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("compiles several models")
	}
	if _, err := toolchain.FindCxx(""); err != nil {
		t.Skip(err)
	}
	bin := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", bin+"/", "../../cmd/rammerc").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	// The libraries run for less time than optimising them takes.
	fast := filepath.Join(bin, "fast-c++")
	if err := os.WriteFile(fast, []byte("#!/bin/sh\nexec c++ \"$@\" -O0\n"), 0o777); err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob("*.md")
	if err != nil || len(pages) < 13 {
		t.Fatal(pages, err)
	}
	index, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		name := filepath.Base(page)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name != "README.md" && !strings.Contains(string(index), "("+name+")") {
				t.Errorf("README.md does not name the page")
			}
			followGuide(t, page, bin, fast)
		})
	}
}

// needed are tools that pages use beside a C++ compiler.
var needed = map[string][]string{
	"deploy-c.md":      {"cmake", "--version"},
	"deploy-go.md":     {"go", "version"},
	"deploy-python.md": {"python3", "-c", "import numpy, pip"},
	"own-kernels.md":   {"bash", "-c", "${RAMMER_PYTHON:-python3} -c 'import numpy, tree_sitter_cuda'"},
	"triton.md":        {"bash", "-c", "cmake --version && python3 --version"},
}

func followGuide(t *testing.T, page, bin, cxx string) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if tool := needed[filepath.Base(page)]; tool != nil {
		if out, err := exec.Command(tool[0], tool[1:]...).CombinedOutput(); err != nil {
			t.Skipf("%v: %v %s", tool, err, out)
		}
	}
	dir := t.TempDir()
	for to, from := range map[string]string{
		"model.onnx": "digits_branchy.onnx", "model_dyn.onnx": "digits_branchy_dyn.onnx",
		"images.npz": "digits_test.npz",
		"logits.npy": "digits_branchy_logits.npy", "decoder.onnx": "decoders/gpt2.onnx",
	} {
		copyTo(t, filepath.Join(dir, to), filepath.Join("../../testdata/models", from))
	}
	copyTo(t, filepath.Join(dir, "custom.onnx"), "../../testdata/custom/row_softmax.onnx")
	var script strings.Builder
	for _, block := range shellBlock.FindAllStringSubmatch(string(text), -1) {
		script.WriteString(block[1])
	}
	source, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("bash", "-euo", "pipefail", "-c", script.String())
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "GOFLAGS=-mod=mod", "GOWORK=off",
		"RAMMERC_SRC="+source, "CXX="+cxx)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func copyTo(t *testing.T, to, from string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
}
