// Package difftest compares engines with each other on random graphs.
//
// Generate makes a valid graph and inputs for it from a seed, with operators from the whole table. Every row of Engines
// then computes the graph's outputs in its own way, or checks what a stage of the compiler makes of the graph. The
// reference is ir/eval on the graph as generated; the limits are those of internal/tolerance. A case with a difference
// is made as small as possible and printed as text. Once it lies in testdata, it is a regression test.
//
// In some cases rounding alone changes a result beyond the limit, for example where equal numbers are compared or
// subtracted. A difference proves nothing then. The method sensitive finds such cases: it computes them again with
// noise of a few units in the last place.
//
// To cover an operator, add a row to growers; to cover an exporter's idiom, add a row to idioms. The package is for
// tests only.
package difftest

import (
	"fmt"
	"runtime/debug"

	"github.com/rammerc/rammerc/graphopt"
	"github.com/rammerc/rammerc/internal/tolerance"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/eval"
	"github.com/rammerc/rammerc/precision"
)

// Case is a graph with inputs.
type Case struct {
	Name   string
	Seed   uint64 // of the random choices that engines make
	Graph  *ir.Graph
	Inputs map[string]*ir.Tensor
	// Wild says that inputs have NaN, infinities or denormals, of which onnxruntime and others compute different
	// things.
	Wild bool
	// Precision is in what values between operators are stored. The graph says so itself, by the types of values; here it
	// counts for how far results may differ.
	Precision precision.Precision

	want   map[string]*ir.Tensor
	values map[*ir.Value]*ir.Tensor // what the values of the outermost graph are in the reference
}

// Want is what ir/eval computes for the case: the reference.
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

// Stored is the case with the values between operators stored in 16 bits: as graphopt leaves it in a precision with such
// storage. The reference is the evaluator on that graph, which rounds the same values as compiled programs do.
func (c *Case) Stored(p precision.Precision) (*Case, error) {
	g := ir.Clone(c.Graph)
	if err := graphopt.Run(g, graphopt.Options{Check: true, Seed: c.Seed, Precision: precision.All(p)}); err != nil {
		return nil, err
	}
	return &Case{Name: c.Name + "-" + p.String(), Seed: c.Seed, Graph: g, Inputs: c.Inputs, Wild: c.Wild,
		Precision: p}, nil
}

// Result is what an engine says of a case: outputs; nothing, if it only checks and found nothing wrong; a reason why it
// cannot say anything; or an error. Every error is a finding.
type Result struct {
	Outputs map[string]*ir.Tensor
	Skip    string
	Err     error
}

// Engine is a row of Engines.
type Engine struct {
	Name string
	Run  func(cases []*Case) []Result
	// Slow engines get only the first cases of a normal test run, and are left out when fuzzing.
	Slow bool
}

// each makes a function for many cases of a function for one case. A panic becomes the error of its case.
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
	Skip    string // why the case cannot be judged
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
		if same(d, c.Precision, res.Outputs[v.Name], want[v.Name]) {
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

// same reports whether a difference is within the limits. Integers are compared as such, because large ones are not
// exact in the float64 of d.
func same(d tolerance.Difference, p precision.Precision, got, want *ir.Tensor) bool {
	if !d.Within(tolerance.LimitIn(p, want.DType)) {
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
