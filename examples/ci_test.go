package examples

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/rammerc/rammerc/internal/toolchain"
)

// The steps of examples/ci/latency.yml run as they stand, in a repository whose model has and has not changed. What is
// allowed is so much that the emulator's times cannot fail.
func TestLatencyWorkflow(t *testing.T) {
	t.Parallel()
	if _, err := toolchain.FindCxx(""); err != nil {
		t.Skip(err)
	}
	data, err := os.ReadFile("ci/latency.yml")
	if err != nil {
		t.Fatal(err)
	}
	var workflow struct {
		Jobs map[string]struct {
			Steps []struct{ Name, Run string }
		}
	}
	if err := yaml.Unmarshal(data, &workflow); err != nil {
		t.Fatal(err)
	}
	model, err := filepath.Abs("../testdata/models/digits_branchy.onnx")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	bin := filepath.Join(dir, "bin")
	if out, err := exec.Command("go", "build", "-o", bin+"/", "../cmd/rammerc").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	sh := func(script string) (string, error) {
		cmd := exec.Command("bash", "-eo", "pipefail", "-c", script) // as GitHub's runner calls it
		cmd.Dir = filepath.Join(dir, "work")
		cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "GITHUB_BASE_REF=main", "MAX_REGRESS=100000%")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if err := os.Mkdir(filepath.Join(dir, "work"), 0o777); err != nil {
		t.Fatal(err)
	}
	if out, err := sh(`git init -q . && cp "` + model + `" model.onnx && git add model.onnx
		git -c user.name=x -c user.email=x@example.org commit -qm model
		git update-ref refs/remotes/origin/main HEAD`); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	steps := 0
	for _, s := range workflow.Jobs["latency"].Steps {
		if s.Run == "" {
			continue
		}
		steps++
		if out, err := sh(s.Run); err != nil {
			t.Fatalf("%s: %v\n%s", s.Name, err, out)
		}
	}
	latency, err := os.ReadFile(filepath.Join(dir, "work", "latency.json"))
	if steps != 4 || err != nil || !strings.Contains(string(latency), `"paired": true`) {
		t.Errorf("%d steps ran, %v; latency.json:\n%s", steps, err, latency)
	}
}
