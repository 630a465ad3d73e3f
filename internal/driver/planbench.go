package driver

import (
	"path/filepath"

	"github.com/rammerc/rammerc/codegen"
	"github.com/rammerc/rammerc/internal/engine"
	"github.com/rammerc/rammerc/profiler/timing"
	"github.com/rammerc/rammerc/schedule"
	"github.com/rammerc/rammerc/vdevice"
)

// planBench is the timing.Bench of plans.
type planBench struct {
	lab    *laboratory
	plans  []schedule.Proposal
	model  string // file name of the model
	inputs engine.Tensors
}

// triedName is the name of every library that is built to be timed.
const triedName = "tried"

// Emit writes a library with several of the plans.
func (b *planBench) Emit(dir string, variants []int) error {
	plans := make([]*vdevice.Plan, len(variants))
	for k, i := range variants {
		plans[k] = b.plans[i].Plan
	}
	opt := codegen.Options{Name: triedName, Version: Version().Version, Model: b.model}
	return codegen.EmitVariants(plans, opt, codegen.Dir(dir))
}

// Build compiles it.
func (b *planBench) Build(dir string) error { return b.lab.build(dir, triedName) }

// Open opens one of its plans.
func (b *planBench) Open(dir string, variant, position int) (timing.Program, error) {
	opt := b.lab.open
	opt.Name, opt.Weights = codegen.VariantName(triedName, position), filepath.Join(dir, triedName+".weights")
	l, err := engine.OpenLibrary(filepath.Join(dir, "lib"+triedName+".so"), opt)
	if err != nil {
		return nil, err
	}
	return &openedPlan{l, b, b.plans[variant].Kind}, nil
}

// openedPlan is the timing.Program of a plan.
type openedPlan struct {
	*engine.Library
	bench *planBench
	kind  string
}

// Infer runs the plan on the inputs that all plans get.
func (p *openedPlan) Infer() (timing.Tensors, error) { return p.Run(p.bench.inputs) }

// Time asks the laboratory's clock.
func (p *openedPlan) Time() (us float64, err error) {
	raw, err := p.Raw(p.bench.inputs)
	if err != nil {
		return 0, err
	}
	return p.bench.lab.clock(p.kind, p.Library, raw)
}
