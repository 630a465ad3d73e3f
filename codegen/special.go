package codegen

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/schema"
	"github.com/rammerc/rammerc/vdevice"
)

// addSpecials lays out the special programs of a general one: programs for parts of its ranges. They compute what it
// computes, but their plans are made for smaller extents: with other tiles, other splits, fewer launches. In the library
// a special program is a further set of tables, arguments and rows over the same rKernel instances and, where packings
// agree, the same constants. A run takes the first one, from the smallest on, whose ranges have the extents of the run,
// or else the general one.
//
// The program of a prompt (Options.Prompt) is kept in the same way, but it comes before the others and does not replace
// them.
func (l *layout) addSpecials() error {
	program := []*layout{l}
	plans := slices.Clone(l.opt.Specials)
	if l.opt.Prompt != nil {
		plans = append(plans, l.opt.Prompt)
	}
	for i, plan := range plans {
		opt := l.opt
		opt.Name, opt.Specials, opt.Prompt = fmt.Sprintf("%s_special_%d", l.opt.Name, i), nil, nil
		p, err := beginLayout(plan, opt, l.sources)
		if err != nil {
			return err
		}
		p.part, p.owner, p.prompt = true, l, plan == l.opt.Prompt
		l.specials = append(l.specials, p)
		program = append(program, p)
	}
	l.shareConstants()
	shareArena(program)
	shared := &layout{plan: &vdevice.Plan{Spec: l.plan.Spec}, opt: l.opt, sources: l.sources, parts: program,
		specials: l.specials, constAt: map[int]int64{}}
	shared.instances, shared.functors = distinctInstances(program), distinctFunctors(program)
	shared.live = sizesOf(program)
	shared.useKernels(program)
	for _, p := range program {
		if err := p.finish(program); err != nil {
			return err
		}
	}
	shared.countOps()
	at := l.tableBytes
	for _, p := range l.specials {
		p.packed, p.packedAt = packTables(p.tables()), at
		at += int64(len(p.packed))
	}
	l.shared, l.kernels, l.rings = shared, shared.kernels, shared.rings
	return nil
}

// shareArena makes room for one arena of all programs, of which a context runs one at a time: their tensor maps stand
// behind the largest of them, each program's behind those of the others.
func shareArena(program []*layout) {
	at := int64(0)
	for _, p := range program {
		at = max(at, alignUp(p.plan.ArenaLen, schema.TensorMapBytes))
	}
	for _, p := range program {
		moved := uint64(at - alignUp(p.plan.ArenaLen, schema.TensorMapBytes))
		for i := range p.tensorMaps {
			if m := &p.tensorMaps[i]; m.Map>>schema.SpaceShift == schema.ArenaSpace {
				m.Map += moved
			}
		}
		at += schema.TensorMapBytes * int64(len(p.tensorMaps))
	}
}

// tables are the program tables of all segments.
func (l *layout) tables() []byte {
	var b []byte
	for _, s := range l.segments {
		b = append(b, s.data...)
	}
	return b
}

// fileTables is how many bytes of tables the weights file has: those of the program, and the packed ones of special
// programs behind them.
func (l *layout) fileTables() int64 {
	n := l.tableBytes
	for _, p := range l.specials {
		n += int64(len(p.packed))
	}
	return n
}

// shareConstants gives the constants of special programs their places in the weights file. Those that hold the same
// bytes as others stand there once: their packings agree where the same rKernel instances were chosen.
func (l *layout) shareConstants() {
	type key struct {
		bytes int64
		hash  [sha256.Size]byte
	}
	places := map[key]int64{}
	keyOf := func(b *roperator.Buffer) key { return key{b.Bytes(), sha256.Sum256(b.Data())} }
	for _, b := range l.consts {
		places[keyOf(b)] = l.constAt[b.ID]
	}
	for _, p := range l.specials {
		for _, b := range p.consts {
			k := keyOf(b)
			at, ok := places[k]
			if !ok {
				at = l.weightBytes
				places[k] = at
				l.consts = append(l.consts, b)
				l.weightBytes = alignUp(at+b.Bytes(), schema.ConstantAlign)
			}
			p.constAt[b.ID] = at
		}
		p.consts = nil
	}
	for _, p := range l.specials {
		p.weightBytes = l.weightBytes
	}
}

// SpecialPlan is what NAME.plan.json says of a special program.
type SpecialPlan struct {
	Dims      string  `json:"dims"` // the extents that it takes: "seq=1..64"
	Plan      string  `json:"plan"` // the file that says of it what NAME.plan.json says of the general program
	Launches  int     `json:"launches"`
	Predicted float64 `json:"predicted_us,omitempty"`
	Arena     int64   `json:"arena_bytes"`
	Tables    int64   `json:"tables_bytes"` // on the device
	Packed    int64   `json:"packed_bytes"` // in the weights file
}

func (l *layout) describeSpecials() []SpecialPlan {
	var out []SpecialPlan
	for _, p := range l.replacing() {
		out = append(out, p.describeSpecial())
	}
	return out
}

func (l *layout) describeSpecial() SpecialPlan {
	return SpecialPlan{l.extentsText(), l.planFile(), l.plan.Stats().Launches, l.predictedUS(), l.plan.ArenaLen,
		l.tableBytes, int64(len(l.packed))}
}

// beside reports whether the library has other programs beside its general one.
func (o *Options) beside() bool { return len(o.Specials) > 0 || o.Prompt != nil }

// replacing are the special programs, which run instead of the general one.
func (l *layout) replacing() []*layout { return l.specials[:len(l.opt.Specials)] }

// promptLayout is that of the program of the prompt; nil without one.
func (l *layout) promptLayout() *layout {
	if l.opt.Prompt == nil {
		return nil
	}
	return l.specials[len(l.specials)-1]
}

// describePrompt is what NAME.plan.json says of the program of the prompt.
func (l *layout) describePrompt() *SpecialPlan {
	p := l.promptLayout()
	if p == nil {
		return nil
	}
	d := p.describeSpecial()
	return &d
}

// SpecialPlans is the folder of the special programs' plans in a library directory.
const SpecialPlans = "specials"

// planFile is where the plan of a special program stands.
func (l *layout) planFile() string { return SpecialPlans + "/" + l.opt.Name + ".plan.json" }
