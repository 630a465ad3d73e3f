package driver

import (
	"path/filepath"
	"sync"

	"github.com/rammerc/rammerc/codegen"
	"github.com/rammerc/rammerc/codegen/abi"
	"github.com/rammerc/rammerc/internal/engine"
	"github.com/rammerc/rammerc/profiler/timing"
	"github.com/rammerc/rammerc/schedule"
	"github.com/rammerc/rammerc/vdevice"
)

// planBench is the timing.Bench of plans.
type planBench struct {
	lab    *laboratory
	plans  []schedule.Proposal
	opt    []codegen.Options // with which each plan will be emitted if it is chosen
	inputs engine.Tensors

	mu     sync.Mutex
	shared map[string]bool // folders whose library has several plans
}

// Emit writes a library with the plans. That of a single plan is, byte for byte, the one that is emitted if the plan is
// chosen, since the code around a plan makes a difference to its time.
func (b *planBench) Emit(dir string, variants []int) error {
	if len(variants) == 1 {
		return codegen.Emit(b.plans[variants[0]].Plan, b.opt[variants[0]], codegen.Dir(dir))
	}
	b.mu.Lock()
	if b.shared == nil {
		b.shared = map[string]bool{}
	}
	b.shared[dir] = true
	b.mu.Unlock()
	plans := make([]*vdevice.Plan, len(variants))
	for k, i := range variants {
		plans[k] = b.plans[i].Plan
	}
	return codegen.EmitVariants(plans, b.opt[variants[0]], codegen.Dir(dir))
}

// name is the prefix of all libraries, which are of one model.
func (b *planBench) name() string { return abi.Identifier(b.opt[0].Name) }

// Build compiles it.
func (b *planBench) Build(dir string) error { return b.lab.build(dir, b.name()) }

// Open opens one of its plans.
func (b *planBench) Open(dir string, variant, position int) (timing.Program, error) {
	opt, name := b.lab.open, b.name()
	opt.Name, opt.Weights = name, filepath.Join(dir, name+".weights")
	if b.shared[dir] {
		opt.Name = codegen.VariantName(name, position)
	}
	l, err := engine.OpenLibrary(filepath.Join(dir, "lib"+name+".so"), opt)
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
