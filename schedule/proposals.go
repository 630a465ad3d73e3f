package schedule

import (
	"bytes"
	"slices"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/profiler"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/vdevice"
)

// Proposal is a plan that may turn out to be the fastest.
type Proposal struct {
	Kind     string
	Plan     *vdevice.Plan
	Modelled float64 // ns
}

// unlikely is how many times longer than the first plan another may take by the model to be measured. Of plans of one
// graph the model has underrated some twice as much as others.
const unlikely = 1.6

// Proposals makes up to most different plans to measure, the most different kinds first. The first is what Schedule
// makes; for a kind of plan other than PlanAuto it is the only one. Errors are Schedule's.
func Proposals(g *roperator.Graph, spec *device.Spec, costs profiler.Costs, opt Options, most int) ([]Proposal, error) {
	p, kind, err := plannerFor(g, spec, costs, opt)
	if err != nil {
		return nil, err
	}
	first := p.laidOut(p.plan(kind))
	out := []Proposal{{Kind: kind.name, Plan: first, Modelled: p.time(first)}}
	if kind.name != PlanAuto || most <= 1 {
		return out, nil
	}
	texts := [][]byte{vdevice.FormatPlan(first)}
	for _, v := range toTry(spec) {
		if len(out) >= most {
			break
		}
		if v.wide && !p.branches() {
			continue
		}
		plan := p.laidOut(p.plan(&v))
		text := vdevice.FormatPlan(plan)
		k := slices.IndexFunc(texts, func(t []byte) bool { return bytes.Equal(t, text) })
		modelled := p.time(plan)
		switch {
		case k < 0 && modelled <= unlikely*out[0].Modelled:
			texts = append(texts, text)
			out = append(out, Proposal{Kind: v.name, Plan: plan, Modelled: modelled})
		case k == 0 && out[0].Kind == PlanAuto:
			out[0].Kind = v.name
		}
	}
	return out, nil
}

// KindsToTry names the kinds of plans to measure on a device, in the order in which they are tried.
func KindsToTry(spec *device.Spec) []string {
	var names []string
	for _, k := range toTry(spec) {
		names = append(names, k.name)
	}
	return names
}

// toTry lists the kinds of plans to measure on a device, in the order in which they are tried.
func toTry(spec *device.Spec) []planKind {
	var out []planKind
	for _, k := range kinds {
		if k.try > 0 && k.suits(spec) {
			out = append(out, k)
		}
	}
	slices.SortFunc(out, func(a, b planKind) int { return a.try - b.try })
	return out
}
