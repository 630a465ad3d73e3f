package roperator

import "github.com/rammerc/rammerc/ir"

// plainGroup is a group for kernels that take no functors: prologues have been carried out, and the epilogue
// follows as a map of its own.
type plainGroup struct {
	group *Group
	node  *ir.Node
	ins   []View // of the anchor's inputs after their prologues; Buf is nil where absent
	outs  []View // where the kernel writes; Buf is nil for outputs nobody asked for
}

func (b *Builder) newPlain(g *Group) (*plainGroup, error) {
	p := &plainGroup{group: g, node: g.Anchor}
	for i, v := range g.Inputs {
		if v == nil {
			p.ins = append(p.ins, View{})
			continue
		}
		in, err := b.mapped(g.Prologue[i], v)
		if err != nil {
			return nil, err
		}
		p.ins = append(p.ins, in)
	}
	if g.Epilogue != nil {
		result := g.Anchor.Outputs[0]
		p.outs = []View{b.Temp("plain", result.DType, result.Shape.MustConsts())}
		return p, nil
	}
	for _, v := range g.Outputs {
		if v == nil {
			p.outs = append(p.outs, View{})
			continue
		}
		p.outs = append(p.outs, b.Out(v))
	}
	return p, nil
}

// has reports whether input i is there.
func (p *plainGroup) has(i int) bool { return i < len(p.ins) && p.ins[i].Buf != nil }

// out is the view of output 0, which the kernel must fill.
func (p *plainGroup) out() View { return p.outs[0] }

// empty reports that there is nothing to compute.
func (p *plainGroup) empty() bool { return p.outs[0].Count() == 0 }

// finish adds the epilogue.
func (p *plainGroup) finish(b *Builder) error {
	g := p.group
	if g.Epilogue == nil {
		return nil
	}
	leaves := []View{p.outs[0]}
	for _, v := range g.Extra {
		leaves = append(leaves, b.In(v))
	}
	return b.addMap(mapSpec{kind: g.Kind(), outs: []View{b.Out(g.Outputs[0])}, roots: []*Expr{g.Epilogue}, leaves: leaves})
}

// written is a view that a kernel fills in another shape than v's: v itself where strides allow, else a
// dense stand-in, which done copies to v.
func (b *Builder) written(v View, shape []int64) (w View, done func()) {
	if w, ok := v.Reshape(shape); ok {
		return w, func() {}
	}
	t := b.Temp("dense", v.DType(), v.Shape)
	w, _ = t.Reshape(shape)
	return w, func() { b.Copy(v, t) }
}

// reshaped shows v, or a dense copy, in another shape.
func (b *Builder) reshaped(v View, shape []int64) View {
	w, ok := v.Reshape(shape)
	if !ok {
		w, _ = b.Contiguous(v).Reshape(shape)
	}
	return w
}

// moveCandidates offers tilings of an iteration space of about as many elements as targets for maps.
func moveCandidates(dims []int64, unit int64, make func(t tiling) *Candidate) []*Candidate {
	var out []*Candidate
	scaled := append([]int64{}, dims...)
	if last := len(dims) - 1; last >= 0 {
		scaled[last] /= unit
	}
	for _, target := range mapTargets(ir.Count(dims)) {
		t := newTiling(scaled, max(target/unit, 1))
		t.unit = unit
		if len(out) > 0 && t.tasks == out[len(out)-1].Tasks {
			break
		}
		out = append(out, make(t))
	}
	return out
}

// addReadBytes counts bytes that an rTask reads from v.
func (w *Work) addReadBytes(v View, bytes float64) {
	if v.Buf.Kind == Const {
		w.ConstBytes += bytes
		return
	}
	w.ReadBytes += bytes
}
