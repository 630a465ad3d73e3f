// Package lower turns an optimised ir.Graph into an rOperator graph.
//
// Lower walks the nodes in order and calls, for each, the function that lowerings.go has for its operator. These
// functions are in one package for each family of operators (lower/conv, lower/norm, …). They import each other in
// one direction only:
//
//	lower ─▶ lower/<family> ─▶ contraction, pointwise, gemv ─▶ tails ─▶ elementwise ─▶ build, arg, pack
//
// To add an operator, write its lowering in the package of its family and add a row to the table in lowerings.go.
package lower

import (
	"errors"
	"slices"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/axes"
	"github.com/rammerc/rammerc/lower/attention"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/conv"
	"github.com/rammerc/rammerc/lower/elementwise"
	"github.com/rammerc/rammerc/lower/gemm"
	"github.com/rammerc/rammerc/lower/norm"
	"github.com/rammerc/rammerc/lower/squeeze"
	"github.com/rammerc/rammerc/lower/target"
	"github.com/rammerc/rammerc/precision"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/roperator"
)

// lowerGraph builds the rOperator graph of g for a device, with the rKernels of a catalogue. The dims of g must all be
// constants; they are the largest ones where only a run knows the extents of axes, which x names then. Products of float32
// are made in the precision that p gives to their nodes. Nodes that cannot be lowered are reported all at once.
func lowerGraph(g *ir.Graph, x *axes.Axes, states []State, t target.Target, kernels *rkernels.Catalogue,
	p precision.Choice) (*roperator.Graph, error) {
	b := build.New(g, t, kernels, p, lowerNode)
	if x != nil {
		b.SetAxes(x)
	}
	if err := constantExtents(b, g); err != nil {
		return nil, err
	}
	for _, v := range g.Inputs[:len(g.Inputs)-len(states)] {
		b.AddInput(v)
	}
	b.SetLoops(g)
	parts := concatenated(g)
	for i, v := range g.Outputs {
		out := b.AddOutput(v)
		if k := i - (len(g.Outputs) - len(states)); k >= 0 {
			keepState(b, g.Inputs[len(g.Inputs)-len(states)+k], v, out, states[k])
		} else if !parts[v] {
			b.SendTo(v, out)
		}
	}
	placeConcats(b, g)
	announceSqueezes(b, g)
	gemm.Announce(b, g)
	of := conditions(g)
	b.SetConditions(of)
	attention.Announce(b, g)
	norm.Announce(b, g)
	for _, n := range inOrder(g.Nodes, of) {
		if !b.Paired(n) && !b.Waits(n) {
			lowerNode(b, n)
		}
	}
	copyOutputs(b, g)
	return b.Finish()
}

// constantExtents reports the values whose extents are not constants. If there are any, nothing is lowered.
func constantExtents(b *build.Builder, g *ir.Graph) error {
	for _, v := range g.Inputs {
		b.Extents(v, build.ForBuffer)
	}
	nodes := slices.Clone(g.Nodes)
	for _, n := range g.Nodes {
		if n.IsInternal("Fused") {
			nodes = append(nodes, n.Attrs["body"].G.Nodes...)
		}
	}
	for _, n := range nodes {
		for _, v := range n.Outputs {
			if v != nil {
				b.Extents(v, build.ForBuffer)
			}
		}
	}
	return b.Problems()
}

// concatenated are the values that are written straight into other values. Where one of them is an output of the graph,
// too, the copy is made for the output, since others in the graph wait for what it is a part of.
func concatenated(g *ir.Graph) map[*ir.Value]bool {
	parts := map[*ir.Value]bool{}
	for _, n := range g.Nodes {
		if !n.IsInternal("Concat") {
			continue
		}
		for k, v := range n.Inputs {
			if n.Ints("in_place")[k] != 0 {
				parts[v] = true
			}
		}
	}
	return parts
}

// placeConcats decides where values are written that become parts of other values. The inputs that a rammer.Concat
// marks in_place are written straight into slices of its result; the input of a dense view is written where the
// result of the view has to be, and so is the input of a view that is dense in the order in which its input is stored.
// It walks from the end of the graph to its beginning, so that a value inside of several concatenations finds the
// outermost one decided.
func placeConcats(b *build.Builder, g *ir.Graph) {
	for i := len(g.Nodes) - 1; i >= 0; i-- {
		n := g.Nodes[i]
		switch {
		case n.IsInternal("Concat"):
			placeParts(b, n)
		case isDenseView(b, n):
			home, ok := b.Home(n.Outputs[0])
			if !ok {
				continue
			}
			if v, ok := home.Reshape(b.Extents(n.Inputs[0], build.ForBuffer)); ok {
				b.SendTo(n.Inputs[0], v)
			}
		case n.IsInternal("View"):
			placeOrdered(b, n)
		}
	}
}

// placeOrdered lets the input of a View be written where its result has to be, if the View shows all elements in the
// order in which the input is stored. An example is an image, stored with its channels innermost, that is transposed to
// a result of the graph whose last dim are channels.
func placeOrdered(b *build.Builder, n *ir.Node) {
	home, ok := b.Home(n.Outputs[0])
	dims := b.Extents(n.Inputs[0], build.ForBuffer)
	if !ok || !home.Strided().IsDense() || ir.Count(home.Shape) != ir.Count(dims) {
		return
	}
	stored := roperator.InOrder(home.Buf, dims, n.Inputs[0].Order)
	if shown, ok := ir.ViewOf(n).Compose(stored.Strided()); ok && shown.Offset == 0 && shown.IsDense() {
		stored.Offset = home.Offset
		b.SendTo(n.Inputs[0], stored)
	}
}

// placeParts lets the inputs of a concatenation that are marked be written into its result.
func placeParts(b *build.Builder, n *ir.Node) {
	out, ok := b.Home(n.Outputs[0])
	if !ok {
		out = b.Store(n.Outputs[0])
		b.SendTo(n.Outputs[0], out)
	}
	axis := n.Int("axis", 0)
	if axis < 0 {
		axis += int64(len(out.Shape))
	}
	at := int64(0)
	for k, v := range n.Inputs {
		part := out.Slice(int(axis), at, b.Extents(v, build.ForBuffer)[axis])
		at += part.Shape[axis]
		if n.Ints("in_place")[k] != 0 {
			b.SendTo(v, part)
		}
	}
}

// isDenseView reports whether n shows all elements of its input in the same order.
func isDenseView(b *build.Builder, n *ir.Node) bool {
	switch {
	case n.Domain == "" && (n.Op == "Reshape" || n.Op == "Flatten" || n.Op == "Squeeze" || n.Op == "Unsqueeze"):
		return true
	case n.IsInternal("View"):
		v := ir.ViewOf(n)
		return v.Offset == 0 && v.IsDense() && ir.Count(v.Shape) == ir.Count(b.Extents(n.Inputs[0], build.ForBuffer))
	}
	return false
}

// copyOutputs copies to the output buffers what was not written there: outputs that are views of other values, inputs
// or constants, and values that are two outputs at once.
func copyOutputs(b *build.Builder, g *ir.Graph) {
	for i, v := range g.Outputs {
		buf := b.OutputBuffer(i)
		if v.Const != nil {
			b.Bind(v, b.In(v))
		}
		src, ok := b.Known(v)
		if !ok || src.Buf == buf {
			continue // not lowered because of an error, or in place
		}
		node := &ir.Node{Op: "Identity", Name: v.Name, Outputs: []*ir.Value{v}}
		if v.Def != nil {
			node.Origins = v.Def.Origins
		}
		b.Enter(&build.Group{Node: node})
		elementwise.Copy(b, roperator.Contiguous(buf, src.Shape), src)
	}
}

// announceSqueezes asks for the squeezes of values that squeeze and excitation alone uses.
func announceSqueezes(b *build.Builder, g *ir.Graph) {
	uses := ir.Uses(g)
	for _, n := range g.Nodes {
		grp, err := build.NewGroup(n)
		if err != nil || grp.Compound != "SqueezeExcite" {
			continue
		}
		b.Enter(grp)
		if v := squeeze.Source(grp); v != nil && len(uses[v]) == 1 {
			squeeze.Announce(b, grp, v)
		}
	}
}

// lowerNode finds the lowering of a node and calls it.
func lowerNode(b *build.Builder, n *ir.Node) {
	grp, err := build.NewGroup(n)
	if err != nil {
		b.Report(ir.NodeDiag(n, "unsupported-op", err.Error()))
		return
	}
	b.Enter(grp)
	key := [2]string{n.Domain, n.Op}
	if grp.Anchor != nil {
		key = [2]string{grp.Anchor.Domain, grp.Anchor.Op}
	}
	low := findLowering(key[0], key[1], grp.Anchor == nil)
	if grp.Compound != "" {
		low = compounds[grp.Compound]
	}
	if low == nil {
		reportMissing(b, n, key[1])
		return
	}
	reportError(b, n, low(b, grp))
}

// reportError reports what the lowering of n refuses, and how to make an input constant if that would help.
func reportError(b *build.Builder, n *ir.Node, err error) {
	var missing *build.NotConstant
	switch {
	case errors.As(err, &missing):
		d := ir.NodeDiag(n, "not-constant", err.Error())
		d.Help = b.BindHelp(missing.Node.Input(missing.Input))
		if g := b.Group(); g != nil && missing.Node == g.Anchor {
			d.Help = b.BindHelp(g.Inputs[missing.Input]) // outside of a fused body
		}
		b.Report(d)
	case err != nil:
		b.Report(ir.NodeDiag(n, "unsupported-op", err.Error()))
	}
}

// NormalisesInProducts reports whether products of few rows normalise these on the way, on a device.
func NormalisesInProducts(spec *device.Spec) bool {
	return gemm.Normalises(target.Of(spec))
}

// NormalisesRows reports whether products of many rows can normalise these on the way, on a device and in a precision.
func NormalisesRows(spec *device.Spec, p precision.Precision) bool {
	t := target.Of(spec)
	return gemm.NormalisesRows(&t, p)
}

// ConvolvesOnTensorCores reports whether convolutions that are not depthwise multiply on tensor cores in the precision.
// Their kernels are faster where images are stored with their channels innermost.
func ConvolvesOnTensorCores(p precision.Precision) bool { return conv.OnTensorCores(p) }

// BindHelp says which inputs of the model, fixed when it is compiled, make values constant; see build.BindHelp.
func BindHelp(g *ir.Graph, values ...*ir.Value) string { return build.BindHelp(g, values...) }

// State says of an input and an output of a graph that a program keeps the latter as the former of its next run. States are
// the last inputs and outputs of the graph, in the order of the list.
type State struct {
	// Axes are those of the input where Grows, the extent that grows by each run, is the name of a range; else both have the
	// same shape, and Grows is "".
	Axis     int
	Grows    string
	Next     ir.Dim // what the extent becomes
	Capacity int64
	Repeats  bool // see roperator.State
}

// keepState gives input and output one place, which is that of an output of the program. What grows is written there in
// place; anything else is copied there when it is no longer read.
func keepState(b *build.Builder, input, output *ir.Value, at roperator.View, s State) {
	b.KeepState(input, at, s.Axis, s.Grows, s.Next)
	b.LatestState().Repeats = s.Repeats
	if s.Grows != "" || s.Repeats {
		b.SendTo(output, at)
	}
}

// General lowers g for the device that spec describes, with the built-in rKernels. Only a run knows the extents of axes
// that x names; x may be nil if there are none.
func General(g *ir.Graph, x *axes.Axes, spec *device.Spec, p precision.Choice) (*roperator.Graph, error) {
	kernels, err := rkernels.BuiltIn()
	if err != nil {
		return nil, err
	}
	return Stateful(g, x, nil, spec, kernels, p)
}

// Stateful is General for a program that keeps states, with the rKernels of a catalogue.
func Stateful(g *ir.Graph, x *axes.Axes, states []State, spec *device.Spec, kernels *rkernels.Catalogue,
	p precision.Choice) (*roperator.Graph, error) {
	return lowerGraph(g, x, states, target.Of(spec), kernels, p)
}
