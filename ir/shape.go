package ir

import (
	"strings"
)

// Consts returns the extents; ok is false when the rank is unknown or an extent is not constant.
func (s Shape) Consts() ([]int64, bool) {
	if s == nil {
		return nil, false
	}
	out := make([]int64, len(s))
	for i, d := range s {
		n, ok := d.Const()
		if !ok {
			return nil, false
		}
		out[i] = n
	}
	return out, true
}

// MustConsts is Consts for stages that run after all dims are bound. It panics if an extent is not constant.
func (s Shape) MustConsts() []int64 {
	c, ok := s.Consts()
	if !ok {
		panic("BUG: shape " + s.String() + " is not constant")
	}
	return c
}

// Equal reports equal rank and extents; two unknown shapes are equal.
func (s Shape) Equal(o Shape) bool {
	if (s == nil) != (o == nil) || len(s) != len(o) {
		return false
	}
	for i := range s {
		if !s[i].Equal(o[i]) {
			return false
		}
	}
	return true
}

// String prints "[1,3,224,224]", "[batch,10]", "[]" for a scalar, "?" for an unknown rank.
func (s Shape) String() string {
	if s == nil {
		return "?"
	}
	parts := make([]string, len(s))
	for i, d := range s {
		parts[i] = d.String()
	}
	return "[" + strings.Join(parts, ",") + "]"
}

// Dims turns constants into a Shape.
func Dims(n ...int64) Shape {
	s := make(Shape, len(n))
	for i, v := range n {
		s[i] = D(v)
	}
	return s
}
