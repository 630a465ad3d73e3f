package eval_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/tolerance"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/eval"
	"github.com/rammerc/rammerc/ir/onnx"
)

// TestConformance runs ONNX's backend node tests: every folder below RAMMER_ONNX_TESTS that holds a
// model.onnx and test_data_set_* folders. Models that the importer refuses because they use operators,
// element types or value kinds outside the operator table are skipped, and counted by reason.
func TestConformance(t *testing.T) {
	root := os.Getenv("RAMMER_ONNX_TESTS")
	if root == "" {
		t.Skip("RAMMER_ONNX_TESTS does not name the folder of ONNX's backend tests")
	}
	var models []string
	err := filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
		if filepath.Base(path) == "model.onnx" {
			models = append(models, path)
		}
		return err
	})
	if err != nil || len(models) == 0 {
		t.Fatalf("no models below %s: %v", root, err)
	}
	skipped := map[string]int{}
	passed := 0
	for _, path := range models {
		name := filepath.Base(filepath.Dir(path))
		t.Run(name, func(t *testing.T) {
			reason, err := conform(path)
			switch {
			case err != nil && refused[name] != "":
				skipped[refused[name]]++
				t.Skip(refused[name], err)
			case err != nil:
				t.Error(err)
			case refused[name] != "":
				t.Errorf("passes now, although it is listed as refused: %s", refused[name])
			case reason != "":
				skipped[reason]++
				t.Skip(reason)
			default:
				passed++
			}
		})
	}
	var lines []string
	for reason, n := range skipped {
		lines = append(lines, fmt.Sprintf("%4d skipped: %s", n, reason))
	}
	sort.Strings(lines)
	t.Logf("%d passed\n%s", passed, strings.Join(lines, "\n"))
}

// refused lists models of known operators that are rightly refused, and why.
var refused = map[string]string{
	"test_affine_grid_3d_expanded":               deadSplit,
	"test_affine_grid_3d_align_corners_expanded": deadSplit,

	"test_bernoulli": ownNumbers, "test_bernoulli_expanded": ownNumbers, "test_bernoulli_double": ownNumbers,
	"test_bernoulli_double_expanded": ownNumbers, "test_bernoulli_seed": ownNumbers,
	"test_bernoulli_seed_expanded": ownNumbers,
}

const ownNumbers = "the expected numbers are random draws of another generator"

const deadSplit = "a branch that is never taken splits 5 elements into 4 equal pieces"

// conform runs a model on all its data sets. It returns a reason for skipping when the importer
// refuses the model with located errors.
func conform(path string) (skip string, err error) {
	m, err := onnx.Load(path, onnx.Options{})
	if err != nil {
		if reason := refusal(diag.All(err)); reason != "" {
			return reason, nil
		}
		return "", err
	}
	sets, err := filepath.Glob(filepath.Join(filepath.Dir(path), "test_data_set_*"))
	if err != nil || len(sets) == 0 {
		return "", fmt.Errorf("no data sets: %v", err)
	}
	for _, set := range sets {
		if err := runSet(m.Graph, set); err != nil {
			return "", fmt.Errorf("%s: %w", filepath.Base(set), err)
		}
	}
	return "", nil
}

// outside lists the ids of errors that mean "outside the operator table".
var outside = map[string]bool{
	"unsupported-op": true, "unsupported-dtype": true, "unsupported-opset": true, "training-mode": true,
}

// refusal is the id of the first error when all errors lie outside the operator table, "" otherwise.
// One operator outside the table can make others look wrong, so it stands for the whole model.
func refusal(items []*diag.Diagnostic) string {
	first := ""
	for _, d := range items {
		switch {
		case d.Severity != diag.Error:
		case d.ID == "unsupported-op":
			return d.ID
		case !outside[d.ID] && d.DType != ir.String.String():
			return ""
		case first == "":
			first = d.ID
		}
	}
	return first
}

func runSet(g *ir.Graph, set string) error {
	in, err := readTensors(set, "input", g.Inputs)
	if err != nil {
		return err
	}
	want, err := readTensors(set, "output", g.Outputs)
	if err != nil {
		return err
	}
	got, err := eval.Run(g, in)
	if err != nil {
		return err
	}
	var errs []error
	for _, v := range g.Outputs {
		limit := tolerance.Limit{Abs: 1e-7, L2: 1e-3} // what ONNX's own runner grants
		if want[v.Name].DType == ir.Float16 || want[v.Name].DType == ir.BFloat16 {
			limit = tolerance.LimitFor(want[v.Name].DType)
		}
		d := tolerance.Compare(v.Name, got[v.Name], want[v.Name])
		if !d.Within(limit) {
			errs = append(errs, fmt.Errorf("output %s: %+v", v.Name, d))
		}
	}
	return errors.Join(errs...)
}

// readTensors reads input_0.pb, … in the order of values.
func readTensors(set, kind string, values []*ir.Value) (map[string]*ir.Tensor, error) {
	out := map[string]*ir.Tensor{}
	for i, v := range values {
		data, err := os.ReadFile(filepath.Join(set, fmt.Sprintf("%s_%d.pb", kind, i)))
		if err != nil {
			return nil, err
		}
		_, t, err := onnx.ReadTensorPB(data)
		if err != nil {
			return nil, err
		}
		out[v.Name] = t
	}
	return out, nil
}
