// Package squeeze lowers squeeze and excitation: channels that are multiplied by scales computed from the means of all
// channels.
//
//	x ─┬─▶ mean of each channel ─▶ Conv 1×1 ─▶ inner ─▶ Conv 1×1 ─▶ gate ─▶ Mul ─▶ out
//	   └──────────────────────────────────────────────────────────────────────▲
//
// It becomes two rOperators. The first makes the means and their product with the first matrix, in parts that are sums
// over some channels and positions. The second adds up the parts and does the rest. So there are two steps that all of
// the device takes part in, where the five operators would be five, three of which have little to do. A depthwise
// convolution that makes x does what the first one would (build.Squeeze).
package squeeze

import (
	"fmt"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/arg"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/elementwise"
	"github.com/rammerc/rammerc/lower/pack"
	"github.com/rammerc/rammerc/lower/tails"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/rkernels/functor"
	"github.com/rammerc/rammerc/roperator"
)

// block is one squeeze and excitation.
type block struct {
	images, channels, positions, units int64

	x, out       roperator.View // [image][channel][position]
	first, last  *ir.Node       // the convolutions, in the body
	w1, w2       roperator.View // [unit][channel] and [channel][unit]
	inner, gate  *functor.Functor
	innerArgs    rkernels.Struct
	gateArgs     rkernels.Struct
	group        *build.Group
	copied       roperator.View // where the result must be copied to if the kernel cannot write it there
	across       int64          // channels of a thread where neighbours in memory are in different channels, else 0
	parts, chunk int64          // of the first rOperator, for each image: rTasks, and positions of one
}

// Excite lowers a Fused node with the anchor SqueezeExcite.
func Excite(b *build.Builder, g *build.Group) error {
	s, err := read(b, g)
	if err != nil {
		return err
	}
	if s.out.Count() == 0 {
		return nil
	}
	var part roperator.View
	if made := b.Squeeze(Source(g)); made != nil && made.Part.Buf != nil {
		part, s.parts = made.Part, made.Parts
	} else {
		part = s.addSqueeze(b)
	}
	s.addExcite(b, part)
	if s.copied.Buf != nil {
		dense, _ := s.out.Reshape(s.copied.Shape)
		elementwise.Copy(b, s.copied, dense)
	}
	return nil
}

// Source is the value of the graph whose channels the group multiplies, nil if the body has another form.
func Source(g *build.Group) *ir.Value {
	for _, n := range g.Node.Attrs["body"].G.Nodes {
		if n.Is("ReduceMean") || n.Is("GlobalAveragePool") {
			return g.Outer(uncast(n.Inputs[0]))
		}
	}
	return nil
}

// Announce asks whoever makes v, the source of the group, for its squeeze.
func Announce(b *build.Builder, g *build.Group, v *ir.Value) {
	for _, n := range g.Node.Attrs["body"].G.Nodes {
		if n.Is("Conv") {
			b.WantSqueeze(v, &build.Squeeze{W: packedFirst(b, filter(b, g.Outer(n.Inputs[1])))})
			return
		}
	}
}

// packedFirst is the first matrix, [unit][channel], as rKernels that squeeze read it: [channel][unit].
func packedFirst(b *build.Builder, w roperator.View) roperator.View {
	return packed(b, w.Permute([]int64{1, 0}), "squeeze")
}

// The channels of an rTask are fixed by how its threads share them, and so are the most positions that one may have.
// Sums of more positions would be less precise.
const (
	squeezed     = 32   // channels of an rTask of the first rOperator
	mostSqueezed = 4096 // positions of one
	warps        = 8
	wide         = 4 // channels that a thread of the second rOperator has where they are neighbours in memory
	// fewestPositions is how many are worth an rTask of their own.
	fewestPositions = 32
)

// excited are the channels of an rTask of the second rOperator, and the most positions of one: a thread has eight, or
// four of several channels.
func (s *block) excited() (channels, positions int64) {
	switch s.across {
	case 0: // a warp has a channel
		return warps, 8 * 32
	case 1: // a lane has one
		return 32, 8 * warps
	}
	return 32, 4 * warps * s.across
}

// addSqueeze adds the first rOperator, and returns the parts that it makes, as [image][part][unit].
func (s *block) addSqueeze(b *build.Builder) roperator.View {
	blocks := build.CeilDiv(s.channels, squeezed)
	chunks := s.chunks(b, squeezed, mostSqueezed)
	s.parts, s.chunk = blocks*chunks, build.CeilDiv(s.positions, chunks)
	units := build.FullQuads(s.units)
	part := b.Temp("squeezed", ir.Float32, []int64{s.images, s.parts, units})
	w := packedFirst(b, s.w1)
	tiles := tiling{s, squeezed, s.chunk}
	per := min(squeezed, s.channels)
	elements := float64(per * s.chunk)
	b.Add(s.group.Kind()+" (squeeze)", &roperator.Candidate{
		Inst: b.Instance("squeeze", s.across > 0, s.x.DType()), Tasks: int(s.images * s.parts),
		Args: []rkernels.Field{
			arg.Ref("x", s.x), arg.Ref("w", w), arg.Ref("out", part),
			arg.Int("channels", s.channels), arg.Int("positions", s.positions), arg.Int("units", units),
			arg.Int("chunk", s.chunk), arg.Div("blocks", blocks), arg.Div("chunks", chunks),
			arg.Int("step_n", s.x.Stride(0)), arg.Int("step_c", s.x.Stride(1)), arg.Int("step_p", s.x.Stride(2)),
		},
		Reads: roperator.AppendRead(nil, s.x, tiles.box),
		Writes: []roperator.Access{{View: part, Box: func(task int, lo, hi []int64) {
			lo[0], lo[1], lo[2] = int64(task)/s.parts, int64(task)%s.parts, 0
			hi[0], hi[1], hi[2] = lo[0]+1, lo[1]+1, units
		}}},
		Work: roperator.Work{
			Flops: elements + 2*float64(per*units), ConstBytes: w.Bytes(float64(per * units)),
			ReadBytes: s.x.Bytes(elements), WriteBytes: part.Bytes(float64(units)),
		},
	})
	return part
}

// addExcite adds the second rOperator.
func (s *block) addExcite(b *build.Builder, part roperator.View) {
	w := packed(b, s.w2, "excite")
	per, most := s.excited()
	chunks := s.chunks(b, per, most)
	chunk := build.CeilDiv(s.positions, chunks)
	blocks := build.CeilDiv(s.channels, per)
	tiles := tiling{s, per, chunk}
	units := build.FullQuads(s.units)
	elements, sums := float64(min(per, s.channels)*chunk), float64(s.parts*units)
	b.Add(s.group.Kind(), &roperator.Candidate{
		Inst:  b.Instance("excite", s.across, s.x.DType(), s.out.DType(), s.inner, s.gate),
		Tasks: int(s.images * blocks * chunks),
		Args: []rkernels.Field{
			arg.Ref("x", s.x), arg.Ref("w", w), arg.Ref("part", part), arg.Ref("out", s.out),
			arg.Int("channels", s.channels), arg.Int("positions", s.positions), arg.Int("parts", s.parts),
			arg.Int("units", s.units), arg.Int("chunk", chunk), arg.Div("blocks", blocks), arg.Div("chunks", chunks),
			arg.Div("quads", units/4),
			arg.Int("step_n", s.x.Stride(0)), arg.Int("step_c", s.x.Stride(1)), arg.Int("step_p", s.x.Stride(2)),
			arg.Int("out_n", s.out.Stride(0)), arg.Int("out_c", s.out.Stride(1)), arg.Int("out_p", s.out.Stride(2)),
			{Name: "inner", Value: s.innerArgs}, {Name: "gate", Value: s.gateArgs},
		},
		Reads: roperator.AppendRead(roperator.AppendRead(nil, s.x, tiles.box), part, func(task int, lo, hi []int64) {
			lo[0], lo[1], lo[2] = int64(task)/(blocks*chunks), 0, 0
			hi[0], hi[1], hi[2] = lo[0]+1, s.parts, units
		}),
		Writes: []roperator.Access{{View: s.out, Box: tiles.box}},
		Work: roperator.Work{
			Flops:      elements + sums + 2*float64(per*units),
			ConstBytes: w.Bytes(float64(per * units)),
			ReadBytes:  s.x.Bytes(elements) + part.Bytes(sums), WriteBytes: s.out.Bytes(elements),
		},
	})
}

// chunks is into how many chunks positions are cut, so that there is about one rTask for each vEU.
func (s *block) chunks(b *build.Builder, per, most int64) int64 {
	want := max(1, int64(b.Target().VEUs)/(s.images*build.CeilDiv(s.channels, per)))
	want = min(want, build.CeilDiv(s.positions, fewestPositions))
	want = max(want, build.CeilDiv(s.positions, most))
	return build.CeilDiv(s.positions, build.CeilDiv(s.positions, want))
}

// tiling cuts [image][channel][position] into rTasks of so many channels and positions; chunks of positions count
// fastest.
type tiling struct {
	s          *block
	per, chunk int64
}

func (t tiling) box(task int, lo, hi []int64) {
	chunks, blocks := build.CeilDiv(t.s.positions, t.chunk), build.CeilDiv(t.s.channels, t.per)
	k := int64(task)
	lo[0], lo[1], lo[2] = k/chunks/blocks, k/chunks%blocks*t.per, k%chunks*t.chunk
	hi[0], hi[1], hi[2] = lo[0]+1, min(lo[1]+t.per, t.s.channels), min(lo[2]+t.chunk, t.s.positions)
}

// packed is a constant matrix, dense in the order of its view, with zeros that fill the last four columns.
func packed(b *build.Builder, v roperator.View, order string) roperator.View {
	rows, cols := v.Shape[0], v.Shape[1]
	pitch := build.FullQuads(cols)
	p := b.Packed(fmt.Sprintf("%s.%s", v.Buf.Name, order), ir.Float32, rows*pitch, func() []byte {
		p := pack.New(v, rows*pitch, ir.Float32)
		p.Put(v.Offset, 0, pack.NewAxis(rows, func(i int64) (int64, int64) { return i * v.Strides[0], i * pitch }),
			pack.NewAxis(cols, func(j int64) (int64, int64) { return j * v.Strides[1], j }))
		return p.Bytes()
	}, v)
	return roperator.Contiguous(p.Buf, []int64{rows, pitch})
}

// read finds the parts of the fused body, and brings x and the result to three dims.
func read(b *build.Builder, g *build.Group) (*block, error) {
	s := &block{group: g}
	body := g.Node.Attrs["body"].G
	var source *ir.Value
	for _, n := range body.Nodes {
		switch {
		case n.Is("Conv") && s.first == nil:
			s.first = n
		case n.Is("Conv"):
			s.last = n
		case n.Is("ReduceMean"), n.Is("GlobalAveragePool"):
			source = n.Inputs[0]
		}
	}
	out := uncast(body.Outputs[0])
	if source == nil || s.last == nil || out.Def == nil || !out.Def.Is("Mul") {
		return nil, fmt.Errorf("the fused body is not that of squeeze and excitation")
	}
	scales := out.Def.Inputs[0]
	if scales == source {
		scales = out.Def.Inputs[1]
	}
	s.w1, s.w2 = filter(b, g.Outer(s.first.Inputs[1])), filter(b, g.Outer(s.last.Inputs[1]))
	s.inner, s.innerArgs = s.activation(b, s.first, s.last.Inputs[0])
	s.gate, s.gateArgs = s.activation(b, s.last, scales)
	s.placeData(b, b.In(g.Outer(uncast(source))))
	s.images, s.channels, s.positions, s.units = s.x.Shape[0], s.x.Shape[1], s.x.Shape[2], s.w1.Shape[0]
	return s, nil
}

// uncast is what v is a cast of, where channels are stored in other types than the body computes in; else v.
func uncast(v *ir.Value) *ir.Value {
	if v.Def != nil && v.Def.Is("Cast") {
		return v.Def.Inputs[0]
	}
	return v
}

// filter is a constant 1×1 filter as [output channel][input channel].
func filter(b *build.Builder, v *ir.Value) roperator.View {
	w, _ := b.In(v).Collapse(1)
	return w
}

// activation is what the result of a convolution goes through, its bias included, up to the value v.
func (s *block) activation(b *build.Builder, conv *ir.Node, v *ir.Value) (*functor.Functor, rkernels.Struct) {
	e := functor.Leaf(ir.Float32, 0)
	var operands []roperator.View
	if bias := conv.Input(2); bias != nil {
		operands = append(operands, roperator.InsertDim(roperator.InsertDim(b.In(s.group.Outer(bias)), 0), 2))
		e = functor.Apply("Add", e, functor.Leaf(ir.Float32, 1))
	}
	read := functor.NewReader(conv.Outputs[0])
	return tails.Epilogue(ir.Float32, functor.Graft(read.Expr(v), []*functor.Expr{e}), operands)
}

// placeData shows x and the result as [image][channel][position]. If their strides do not allow that, a dense copy
// stands in for them.
func (s *block) placeData(b *build.Builder, x roperator.View) {
	cuts := [2]int{1, 2}
	s.x = tails.InputCube(b, x, cuts)
	out := b.Out(s.group.Outputs[0])
	var ok bool
	if s.out, ok = out.Collapse(1, 2); !ok {
		s.copied = out
		s.out, _ = b.Temp("excited", out.DType(), out.Shape).Collapse(1, 2)
	}
	if build.Abs(s.x.Stride(1)) < build.Abs(s.x.Stride(2)) && s.x.Shape[1] > 8 {
		s.across = 1
		if inRuns(s.x) && inRuns(s.out) {
			s.across = wide
		}
	}
}

// inRuns reports whether the channels of v, [image][channel][position], come in aligned runs of as many as a thread has.
func inRuns(v roperator.View) bool {
	return v.Stride(1) == 1 && v.Shape[1]%wide == 0 && v.Offset%wide == 0 && v.Stride(0)%wide == 0 &&
		v.Stride(2)%wide == 0
}
