// Package budget chooses in which precision each node of a model computes: the fastest ones with which the errors of all
// outputs stay inside a budget. An error is the relative L2 distance from what ir/eval computes of the imported model.
//
// The unit of choice is what one ONNX node, or several that passes join, have become in the optimised graph. The search
// takes four steps:
//
//	times    what each unit takes in each precision, from graphs that are lowered in one precision throughout
//	errors   what each unit alone adds to the outputs' errors: ir/eval runs what follows the unit with rounded numbers
//	choice   units get faster precisions, the one that saves most time for its squared error first
//	check    ir/eval runs the whole model in the precisions chosen; if it is off by more, the choice is made again for
//	         a smaller budget
//
// One precision throughout is among the choices, too: where neighbours differ, less is stored in 16 bits than the times of
// single units promise. The choice whose rOperators take least is the result.
//
// Errors of units are independent, so that their squares add up: this is the prediction, which the check corrects.
// Everything runs on the CPU. What engines lose by adding up in float32 is not part of the errors; it is there in every
// precision, and is about 1e-7 to 1e-6.
package budget

import (
	"github.com/rammerc/rammerc/graphopt"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/eval"
	"github.com/rammerc/rammerc/precision"
)

// Exact is the largest error that products of precision.FP32 may have beside those of IEEE float32. A smaller budget
// leaves nothing to choose: everything is computed in precision.Strict.
const Exact = 2e-6

// Search is a model, what its errors are measured with, and the budget.
type Search struct {
	Graph   *ir.Graph               // as imported; it is not changed
	Samples []map[string]*ir.Tensor // inputs of the model, one map for each inference; the first is used most
	Budget  float64
	// Passes are the options with which graphopt makes the compiled graph of a choice.
	Passes func(precision.Choice) graphopt.Options
	// Times says what the rOperators take if the model is compiled in the precisions of a choice.
	Times func(precision.Choice) ([]OpTime, error)
	// Progress is called with how many evaluations are done, and how many are planned; these may become more.
	Progress func(done, total int)

	want []map[string]*ir.Tensor // what the imported model computes of the samples
	done int                     // evaluations so far
	plan int                     // evaluations in all, as far as they are known
}

// OpTime is the modelled or measured time of an rOperator, with the ONNX nodes that it carries out.
type OpTime struct {
	Origins []ir.Origin
	NS      float64
}

// Result is what was chosen.
type Result struct {
	Budget float64          `json:"budget"`
	Choice precision.Choice `json:"-"`
	// Program is the precision of most units, and Units what was chosen for each, the slowest in float32 first.
	Program string       `json:"precision"`
	Units   []UnitChoice `json:"units"`
	Outputs []Output     `json:"outputs"`
	// Predicted and Checked are the largest errors of the outputs: the root of the sum of the units' squared errors, and
	// what the whole model is off by in ir/eval.
	Predicted float64 `json:"predicted_error"`
	Checked   float64 `json:"checked_error"`
	// TimeUS is the sum of the times of all rOperators of the model in the precisions chosen, and ExactUS in float32.
	TimeUS      float64 `json:"time_us"`
	ExactUS     float64 `json:"exact_time_us"`
	Samples     int     `json:"samples"`
	Evaluations int     `json:"evaluations"`
	Checks      int     `json:"checks"` // how often the whole was checked
	// Alternatives are the other choices that were checked and are inside the budget. By the times of single rOperators
	// they are slower; as whole programs they need not be.
	Alternatives []*Result `json:"-"`
}

// UnitChoice is what was chosen for one unit.
type UnitChoice struct {
	Nodes     []string `json:"nodes"` // ONNX nodes
	Op        string   `json:"op"`    // operator of the first
	Precision string   `json:"precision"`
	TimeUS    float64  `json:"time_us"`
	SavedUS   float64  `json:"saved_us"` // against float32
	Error     float64  `json:"error"`    // that it adds alone, of the output where that is largest
}

// Output has the errors of an output.
type Output struct {
	Name      string  `json:"name"`
	Predicted float64 `json:"predicted_error"`
	Checked   float64 `json:"checked_error"`
}

// Run searches.
func (s *Search) Run() (*Result, error) {
	for _, in := range s.Samples {
		want, err := eval.Run(s.Graph, in, eval.Options{})
		if err != nil {
			return nil, err
		}
		s.want = append(s.want, want)
	}
	if s.Budget < Exact {
		return s.strict()
	}
	p, err := s.prepare()
	if err != nil {
		return nil, err
	}
	if err := s.measureErrors(p); err != nil {
		return nil, err
	}
	return s.choose(p)
}

// strict is the result of a budget that leaves nothing to choose.
func (s *Search) strict() (*Result, error) {
	choice := precision.All(precision.Strict)
	s.plan = len(s.Samples)
	errors, err := s.check(choice)
	if err != nil {
		return nil, err
	}
	r := &Result{Budget: s.Budget, Choice: choice, Program: choice.Program.String(), Units: []UnitChoice{},
		Samples: len(s.Samples), Evaluations: s.done, Checks: 1}
	for i, v := range s.Graph.Outputs {
		r.Outputs = append(r.Outputs, Output{v.Name, 0, finite(errors[i])})
		r.Checked = max(r.Checked, finite(errors[i]))
	}
	return r, nil
}

func (s *Search) evaluated() {
	s.done++
	s.plan = max(s.plan, s.done)
	s.Progress(s.done, s.plan)
}
