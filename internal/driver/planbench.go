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
	open   *engine.Library // the process of such a library, which goes on with one plan after another
	opened string          // the folder of that
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

// Open opens one of its plans. Plans that share a library share a process, too, which is a few times as fast as a
// process for each. If one of them fails, those behind it get a new process.
func (b *planBench) Open(dir string, variant, position int) (timing.Program, error) {
	p := &openedPlan{bench: b, kind: b.plans[variant].Kind}
	opt, name := b.lab.open, b.name()
	opt.Name, opt.Weights = name, filepath.Join(dir, name+".weights")
	library := filepath.Join(dir, "lib"+name+".so")
	var err error
	if !b.shared[dir] {
		p.Library, err = engine.OpenLibrary(library, opt)
		return p, err
	}
	opt.Name = codegen.VariantName(name, position)
	if b.open != nil && b.opened == dir {
		if err = b.open.Switch(opt.Name); err != nil {
			b.Close()
		}
	} else {
		b.Close()
		b.open, err = engine.OpenLibrary(library, opt)
		b.opened = dir
	}
	if err != nil {
		b.open = nil
		return nil, err
	}
	p.Library, p.shared = b.open, true
	return p, nil
}

// Close ends the process of plans that share a library.
func (b *planBench) Close() {
	if b.open != nil {
		b.open.Close()
	}
	b.open = nil
}

// openedPlan is the timing.Program of a plan.
type openedPlan struct {
	*engine.Library
	bench  *planBench
	kind   string
	shared bool // other plans will have its process
	failed bool
}

// Infer runs the plan on the inputs that all plans get.
func (p *openedPlan) Infer() (timing.Tensors, error) {
	out, err := p.Run(p.bench.inputs)
	p.failed = p.failed || err != nil
	return out, err
}

// Time asks the laboratory's clock.
func (p *openedPlan) Time() (us float64, err error) {
	raw, err := p.Raw(p.bench.inputs)
	if err == nil {
		us, err = p.bench.lab.clock(p.kind, p.Library, raw)
	}
	p.failed = p.failed || err != nil
	return us, err
}

// Close ends the plan's process, unless other plans go on with it.
func (p *openedPlan) Close() error {
	if !p.shared {
		return p.Library.Close()
	}
	if p.failed {
		p.bench.Close()
	}
	return nil
}
