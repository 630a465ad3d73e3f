package conformance

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"

	"github.com/rammerc/rammerc/ir/eval"
	"github.com/rammerc/rammerc/ir/onnx"
)

// RunEval runs the cases with ir/eval on the imported graph.
func RunEval(cases []Case) []Result {
	results := make([]Result, len(cases))
	forEach(len(cases), runtime.GOMAXPROCS(0), func(i int) {
		results[i] = guarded(cases[i], func() Result { return evaluate(cases[i]) })
	})
	return results
}

func evaluate(c Case) Result {
	t, err := read(c)
	if err != nil {
		return failed(c, err)
	}
	m, err := t.load(onnx.Options{})
	if err != nil {
		return t.refused(importing, err)
	}
	for _, dir := range t.sets {
		set, err := t.readSet(dir, m)
		if err != nil {
			if t.traits.outside != "" {
				return Result{Name: c.Name, Status: Skip, Reason: t.traits.outside}
			}
			return failed(c, err)
		}
		got, err := eval.Run(m.Graph, set.in, eval.Options{Workers: 1, Strings: set.strings})
		if err != nil {
			var bad *eval.NodeError
			if t.traits.outside != "" && errors.As(err, &bad) {
				return Result{Name: c.Name, Status: Skip, Reason: t.traits.outside, Detail: err.Error()}
			}
			return failed(c, err)
		}
		if err := t.compare(got, set.want, names(m.Graph.Outputs), nil); err != nil {
			return failed(c, fmt.Errorf("%s: %w", filepath.Base(dir), err))
		}
	}
	return Result{Name: c.Name, Status: Pass, Bound: t.bound()}
}
