// Package schedule holds the scheduling policies: which rKernel carries out each rOperator, which vEU
// runs each rTask and when, and which waves form one rProgram (Rammer §3.3, Algorithm 1).
//
// A policy decides in which waves rOperators are taken up; what follows is common to all: candidates
// are selected wave by wave, rTasks go to the vEU that can start them first, waits follow from the
// boxes that rTasks access. To add a policy, write a function and a row of the table below.
package schedule

import (
	"fmt"
	"strings"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/profiler"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/vdevice"
)

// Policy is a way to cut the rOperator graph into waves.
type Policy struct {
	Name, Doc string
	// waves lists every rOperator once. An rOperator comes in a later wave than those it depends on.
	waves func(*planner) [][]int32
}

// Policies lists the policies; the first is the default.
func Policies() []Policy {
	return []Policy{
		{"wavefront", "Rammer's Algorithm 1: all rOperators whose inputs are ready form a wave",
			func(p *planner) [][]int32 { return p.ops.wavefronts() }},
		{"balanced", "as many waves, but rOperators that nobody waits for yet come later, where they lengthen no wave",
			(*planner).balanced},
		{"sequential", "every rOperator is a wave of its own, in the order of the graph",
			func(p *planner) [][]int32 { return p.ops.sequence() }},
	}
}

// Kinds of plan that other packages name.
const (
	PlanAuto     = "auto"
	PlanRProgram = "rprogram"
	PlanWaves    = "waves"
	PlanGraph    = "graph"
	PlanParallel = "parallel"
	PlanBase     = "base"
	PlanMixed    = "mixed"

	PlanCriticalPath = "critical-path"
)

// Plans lists the kinds of plan; the first is the default.
func Plans() []string {
	out := make([]string, len(kinds))
	for i, k := range kinds {
		out[i] = k.name
	}
	return out
}

// PlansFor lists the kinds of plan that the device has what it takes for.
func PlansFor(spec *device.Spec) []string {
	var out []string
	for i := range kinds {
		if kinds[i].suits(spec) {
			out = append(out, kinds[i].name)
		}
	}
	return out
}

// PlanDoc says what a kind of plan is.
func PlanDoc(name string) string {
	for _, k := range kinds {
		if k.name == name {
			return k.doc
		}
	}
	return ""
}

// Options are the user's choices. Empty fields mean the default.
type Options struct {
	Policy string
	Plan   string
}

// Schedule makes a plan for g on spec and places its buffers. The result depends on nothing but the
// arguments. Errors are rOperators none of whose candidates fits the device, and unknown options.
func Schedule(g *roperator.Graph, spec *device.Spec, costs profiler.Costs, opt Options) (*vdevice.Plan, error) {
	plans, err := Proposals(g, spec, costs, opt, 1)
	if err != nil {
		return nil, err
	}
	return plans[0].Plan, nil
}

// plannerFor looks up what opt names.
func plannerFor(g *roperator.Graph, spec *device.Spec, costs profiler.Costs, opt Options) (*planner, *planKind, error) {
	policy, err := findPolicy(opt.Policy)
	if err != nil {
		return nil, nil, err
	}
	kind, err := findPlan(opt.Plan)
	if err != nil {
		return nil, nil, err
	}
	if !kind.suits(spec) {
		return nil, nil, noClusters(spec, kind.cluster)
	}
	p, err := newPlanner(g, spec, costs, policy)
	return p, kind, err
}

func findPolicy(name string) (Policy, error) {
	var names []string
	for _, p := range Policies() {
		if p.Name == name || name == "" {
			return p, nil
		}
		names = append(names, p.Name)
	}
	return Policy{}, unknownOption("policy", name, names)
}

func findPlan(name string) (*planKind, error) {
	for i := range kinds {
		if kinds[i].name == name || name == "" {
			return &kinds[i], nil
		}
	}
	return nil, unknownOption("plan", name, Plans())
}

func unknownOption(what, name string, known []string) error {
	return &diag.Diagnostic{
		ID: "unknown-" + what, Message: fmt.Sprintf("there is no %s called %q", what, name),
		Help: "known are " + strings.Join(known, ", "),
	}
}
