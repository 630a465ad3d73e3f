package ir

import "fmt"

// NormalizeAxis resolves an axis that may count from the end; ok is false outside [-rank, rank).
func NormalizeAxis(axis int64, rank int) (a int, ok bool) {
	if axis < int64(-rank) || axis >= int64(rank) {
		return 0, false
	}
	if axis < 0 {
		axis += int64(rank)
	}
	return int(axis), true
}

// BroadcastShapes combines shapes by ONNX's multidirectional broadcasting, which is numpy's: shapes are aligned at
// their last axes, and an extent of 1 is stretched. It returns an error if two extents do not fit, and nil if one of
// the shapes has an unknown rank. Where a symbol is combined with a constant other than 1, the result is the constant:
// a legal model binds the symbol to that value or to 1. Two different symbols give an expression (Dim.Broadcast).
func BroadcastShapes(shapes ...Shape) (Shape, error) {
	rank := 0
	for _, s := range shapes {
		if s == nil {
			return nil, nil
		}
		rank = max(rank, len(s))
	}
	out := make(Shape, rank)
	for i := range out {
		out[i] = D(1)
	}
	for _, s := range shapes {
		for i, d := range s {
			at := rank - len(s) + i
			b, ok := broadcastDim(out[at], d)
			if !ok {
				return nil, fmt.Errorf("the shapes %v do not broadcast", shapes)
			}
			out[at] = b
		}
	}
	return out, nil
}

// broadcastDim is the common extent of two axes that are broadcast together; ok is false for different constants other
// than 1.
func broadcastDim(a, b Dim) (Dim, bool) {
	m, aConst := a.Const()
	n, bConst := b.Const()
	switch {
	case aConst && m == 1 || a.Equal(b):
		return b, true
	case bConst && n == 1:
		return a, true
	case aConst && bConst:
		return Dim{}, false
	case aConst:
		return a, true
	case bConst:
		return b, true
	}
	return a.Broadcast(b), true
}

// mayEqual reports whether the extents may be equal, as far as is known: it is false only if they differ by a constant
// other than 0.
func mayEqual(a, b Dim) bool {
	n, ok := a.Sub(b).Const()
	return !ok || n == 0
}

// mergeDim is the one extent of two that must be equal, preferably the constant; ok is false if they cannot be equal.
func mergeDim(a, b Dim) (Dim, bool) {
	if !mayEqual(a, b) {
		return Dim{}, false
	}
	if _, ok := b.Const(); ok {
		return b, true
	}
	return a, true
}

// textLen estimates the length of d's text without printing it.
func (d Dim) textLen() int {
	n := 0
	for _, t := range d.t {
		n += len(t.key) + 3
	}
	return n
}
