// Package difftest compares the engines with each other on random graphs.
//
// Generate grows a valid graph and inputs for it from a seed, over the whole operator table. Every row
// of Engines then computes the graph's outputs its own way, or checks what a stage made of the graph;
// ir/eval on the graph as generated is the reference and internal/tolerance's table the limit. A
// difference is shrunk and printed as text, which is a regression test once it lies in testdata.
//
// Results that rounding alone changes beyond the limit (a comparison that ties, a difference of equal
// numbers) prove nothing: sensitive says so by computing again with noise of a few units in the last
// place. The package is for tests only.
//
// To cover an operator, add a row to growers; to cover an exporter's idiom, add one to idioms.
package difftest

import (
	"fmt"
	"runtime/debug"

	"github.com/rammerc/rammerc/internal/tolerance"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/eval"
)

// Case is a graph with inputs.
type Case struct {
	Name   string
	Seed   uint64 // of what engines shuffle
	Graph  *ir.Graph
	Inputs map[string]*ir.Tensor
	// Wild inputs have NaN, infinities or denormals, about which runtimes differ.
	Wild bool

	want   map[string]*ir.Tensor
	values map[*ir.Value]*ir.Tensor // all values of the outermost graph
}

// Want is what ir/eval makes of the case.
func (c *Case) Want() (map[string]*ir.Tensor, error) {
	if c.want != nil {
		return c.want, nil
	}
	values := map[*ir.Value]*ir.Tensor{}
	want, err := eval.Run(c.Graph, c.Inputs, eval.Options{
		Workers: 1, MaxBytes: maxEvalBytes, Observe: func(v *ir.Value, t *ir.Tensor) { values[v] = t },
	})
	if err != nil {
		return nil, err
	}
	for _, v := range c.Graph.Inputs {
		values[v] = c.Inputs[v.Name]
	}
	for _, v := range c.Graph.Consts {
		values[v] = v.Const
	}
	c.want, c.values = want, values
	return want, nil
}

const maxEvalBytes = 1 << 26

// evaluate runs g on the case's inputs.
func (c *Case) evaluate(g *ir.Graph) (map[string]*ir.Tensor, error) {
	return eval.Run(g, c.Inputs, eval.Options{Workers: 1, MaxBytes: maxEvalBytes})
}

// Result is what an engine makes of a case: outputs, nothing (for engines that only check), a reason
// why it has no answer, or an error. Any error is a finding.
type Result struct {
	Outputs map[string]*ir.Tensor
	Skip    string
	Err     error
}

// Engine is a row of Engines.
type Engine struct {
	Name string
	Run  func(cases []*Case) []Result
	// Slow engines take the first cases of a normal test run only, and are not fuzzed.
	Slow bool
}

// each makes an engine of a function for one case. A panic is an error of the case.
func each(f func(c *Case) Result) func([]*Case) []Result {
	return func(cases []*Case) []Result {
		res := make([]Result, len(cases))
		for i, c := range cases {
			res[i] = guarded(c, f)
		}
		return res
	}
}

func guarded(c *Case, f func(c *Case) Result) (res Result) {
	defer func() {
		if p := recover(); p != nil {
			res = Result{Err: fmt.Errorf("panic: %v\n%s", p, debug.Stack())}
		}
	}()
	return f(c)
}

// Verdict is the judgement of a result.
type Verdict struct {
	Skip    string // no judgement: why
	Failure error
}

// Judge compares a result with the reference.
func Judge(c *Case, res Result) Verdict {
	if res.Err != nil || res.Skip != "" {
		return Verdict{Skip: res.Skip, Failure: res.Err}
	}
	want, err := c.Want()
	if err != nil {
		return Verdict{Failure: fmt.Errorf("ir/eval: %w", err)}
	}
	if res.Outputs == nil {
		return Verdict{}
	}
	for _, v := range c.Graph.Outputs {
		d := tolerance.Compare(v.Name, res.Outputs[v.Name], want[v.Name])
		if same(d, res.Outputs[v.Name], want[v.Name]) {
			continue
		}
		if d.Problem == "" && c.sensitive(v.Name, d) {
			return Verdict{Skip: "rounding alone changes an output"}
		}
		return Verdict{Failure: fmt.Errorf("output %s: %+v\n got %s\nwant %s", v.Name, d,
			brief(res.Outputs[v.Name]), brief(want[v.Name]))}
	}
	return Verdict{}
}

// same applies the table; integers are compared whole, which float64 cannot do.
func same(d tolerance.Difference, got, want *ir.Tensor) bool {
	if !d.Within(tolerance.LimitFor(want.DType)) {
		return false
	}
	return want.DType.IsFloat() || string(got.LittleEndian()) == string(want.LittleEndian())
}

func brief(t *ir.Tensor) string {
	if t == nil {
		return "nothing"
	}
	s := fmt.Sprintf("%v%v", t.DType, t.Dims)
	for i := range min(t.Len(), 24) {
		s += fmt.Sprintf(" %g", tolerance.At(t, i))
	}
	return s
}
