package graphopt

import (
	"math"

	"github.com/rammerc/rammerc/ir"
)

// bounds returns the constant limits of a Clip, infinite where they are absent. ok is false where one of them is not
// constant or is NaN, or where the lower one is above the upper one.
func bounds(n *ir.Node) (lo, hi float64, ok bool) {
	lo, hi = math.Inf(-1), math.Inf(1)
	if v := n.Input(1); v != nil {
		if lo, ok = scalar(v); !ok {
			return 0, 0, false
		}
	}
	if v := n.Input(2); v != nil {
		if hi, ok = scalar(v); !ok {
			return 0, 0, false
		}
	}
	return lo, hi, lo <= hi
}

// becomeClip makes the visited node Clip(x, lo, hi); infinite bounds are left out.
func (s *sweep) becomeClip(x *ir.Value, lo, hi float64, absorbed *ir.Node) {
	in := []*ir.Value{x, nil, nil}
	for i, b := range []float64{lo, hi} {
		if !math.IsInf(b, 0) {
			in[i+1] = s.constant(s.node.Outputs[0].Name+".bound", filled(x.DType, b))
		}
	}
	for in[len(in)-1] == nil {
		in = in[:len(in)-1]
	}
	s.become("Clip", nil, in, absorbed)
}

// clipNothing drops a Clip without limits. Clip keeps NaN, so this changes nothing.
func clipNothing(s *sweep, n *ir.Node) bool {
	lo, hi, ok := bounds(n)
	return ok && n.Inputs[0].DType.IsFloat() && math.IsInf(lo, -1) && math.IsInf(hi, 1) && s.forward(n.Inputs[0])
}

// clipClip merges two Clips: the inner bounds, clipped by the outer ones, are the bounds of both.
func clipClip(s *sweep, n *ir.Node) bool {
	inner := definedBy(n.Inputs[0], "Clip")
	lo, hi, ok := bounds(n)
	if inner == nil || !ok || !narrowEnough(n.Inputs[0].DType) {
		return false
	}
	a, b, ok := bounds(inner)
	if !ok {
		return false
	}
	s.becomeClip(inner.Inputs[0], min(max(a, lo), hi), min(max(b, lo), hi), inner)
	return true
}

// narrowEnough reports whether float64 holds all values of element type d exactly.
func narrowEnough(d ir.DType) bool { return d != ir.Int64 && d != ir.Uint64 }

// clipRelu merges a Clip with the Relu before it into one Clip.
func clipRelu(s *sweep, n *ir.Node) bool {
	relu := definedBy(n.Inputs[0], "Relu")
	lo, hi, ok := bounds(n)
	if relu == nil || !ok || hi < 0 || !narrowEnough(n.Inputs[0].DType) {
		return false
	}
	s.becomeClip(relu.Inputs[0], max(lo, 0), hi, relu)
	return true
}

// clipToRelu turns a Clip from 0 to ∞ into Relu.
func clipToRelu(s *sweep, n *ir.Node) bool {
	lo, hi, ok := bounds(n)
	if !ok || lo != 0 || !math.IsInf(hi, 1) || !n.Inputs[0].DType.IsSigned() {
		return false
	}
	s.become("Relu", nil, n.Inputs[:1:1])
	return true
}

// afterClip drops a Relu behind a Clip whose lower bound is not negative.
func afterClip(s *sweep, n *ir.Node) bool {
	clip := definedBy(n.Inputs[0], "Clip")
	if clip == nil {
		return false
	}
	lo, _, ok := bounds(clip)
	return ok && lo >= 0 && s.forward(n.Inputs[0])
}
