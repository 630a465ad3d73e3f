package programs

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/codegen"
	"github.com/rammerc/rammerc/internal/stencil"
	"github.com/rammerc/rammerc/internal/toolchain"
	"github.com/rammerc/rammerc/vdevice"
)

// bundleMain runs all models in order: the input of each comes from stdin, its output goes to stdout.
const bundleMain = `#include "two.cu"
#include <cstdio>
int main(int, char** argv) {
  std::vector<std::unique_ptr<rt::Context<Program>>> open;  // at once: they share no weights
  for (int i = 0; i < model_count; ++i) {
    const rt::Model& m = *models[i];
    std::vector<char> in(m.inputs[0].bytes), out(m.outputs[0].bytes);
    if (std::fread(in.data(), 1, in.size(), stdin) != in.size()) return 1;
    const std::string weights = std::string(argv[1]) + "/" + m.weights_file;
    rt::Options options;
    options.weights_path = weights.c_str();
    open.emplace_back(new rt::Context<Program>(m, options));
    const void* from[] = {in.data()};
    void* to[] = {out.data()};
    open.back()->run(from, to, true);
    std::fwrite(out.data(), 1, out.size(), stdout);
  }
}
`

// TestBundle runs two models of different sizes, which share their rKernel instances, from one program.
func TestBundle(t *testing.T) {
	stencils := []*stencil.Model{stencil.New(t, 4, 3, 32), stencil.New(t, 2, 5, 32)}
	plans := []*vdevice.Plan{stencils[0].Plan, stencils[1].Plan}
	opt := codegen.Options{Name: "two", Version: "test", Kernels: stencil.Kernels()}
	dir := t.TempDir()
	if err := codegen.EmitBundle(plans, opt, codegen.Dir(dir)); err != nil {
		t.Fatal(err)
	}
	again := codegen.Memory{}
	if err := codegen.EmitBundle(plans, opt, again); err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(filepath.Join(dir, "two.cu"))
	if err != nil || !bytes.Equal(source, again["two.cu"]) {
		t.Errorf("emitted twice, the source differs (%v)", err)
	}
	for _, want := range []string{ // even stages run on 64 threads, odd ones on 128
		"2 models in one program, with 2 distinct rKernel instances", ", of 5 rOperators", ", of 3 rOperators",
	} {
		if !strings.Contains(string(source), want) {
			t.Errorf("the source does not say: %s", want)
		}
	}
	var in, want []byte
	for _, s := range stencils {
		x := stencil.Input(s.VEUs * s.Tile)
		in = append(in, stencil.Bytes(x)...)
		want = append(want, stencil.Bytes(s.Expect(x))...)
	}
	cxx, err := toolchain.FindCxx("")
	if err != nil {
		t.Skip(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "main.cc"), []byte(bundleMain), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := cxx.BuildProgram(t.Context(), dir, "main", []string{"main.cc"}, "-O1", "-w"); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(dir, "main"), dir)
	cmd.Stdin = bytes.NewReader(in)
	got, err := cmd.Output()
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes (%v) that differ from the expected %d", len(got), err, len(want))
	}
}
