package roperator

// lowerMap lowers elementwise groups: generated expression trees over broadcast operands.
func lowerMap(b *Builder, g *Group) error { panic("BUG: being written") }

// Copy adds an rOperator that copies src into dst, views of equal shape and element type.
func (b *Builder) Copy(dst, src View) { panic("BUG: being written") }
