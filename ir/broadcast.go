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

// BroadcastShapes combines shapes as numpy does. The result is nil when one of them is of unknown
// rank. Where a constant other than 1 meets a symbol it wins, since a legal model binds the symbol to
// that value or to 1; what becomes of two different symbols is left open (Dim.Broadcast).
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

// mayEqual reports whether the extents are equal for some values of their symbols.
func mayEqual(a, b Dim) bool {
	n, ok := a.Sub(b).Const()
	return !ok || n == 0
}

// mergeDim is the better known one of two extents that must be equal.
func mergeDim(a, b Dim) (Dim, bool) {
	if !mayEqual(a, b) {
		return Dim{}, false
	}
	if _, ok := b.Const(); ok {
		return b, true
	}
	return a, true
}

// textLen is about the length of d's text.
func (d Dim) textLen() int {
	n := 0
	for _, t := range d.t {
		n += len(t.key) + 3
	}
	return n
}
