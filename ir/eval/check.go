package eval

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// check compares the node with its row of ir.Ops: which inputs there are and their element types, and which attributes
// there are, their kinds and the legal values of strings. The operators themselves check extents and values.
func (c *call) check() {
	op := ir.LookupOp(c.Domain, c.Op)
	if op == nil {
		fail("the operator is not in the table")
	}
	c.checkInputs(op)
	for i := range op.Attrs {
		c.checkAttr(&op.Attrs[i])
	}
}

func (c *call) checkInputs(op *ir.Op) {
	if i := len(c.in); i < op.MinInputs() {
		fail("input %d (%s) is missing", i, op.InputPort(i).Name)
	}
	vars := map[string]ir.DType{}
	for i, t := range c.in {
		p := op.InputPort(i)
		if t == nil {
			if p != nil && !p.Optional && !p.Variadic {
				fail("input %d (%s) is missing", i, p.Name)
			}
			continue
		}
		if p == nil {
			fail("the operator has no input %d", i)
		}
		if t.DType == ir.String || p.Types == nil && t.DType.IsNarrow() ||
			p.Types != nil && !slices.Contains(p.Types, t.DType) {
			fail("input %d (%s): not defined for element type %v", i, p.Name, t.DType)
		}
		if p.Var == "" {
			continue
		}
		if d, seen := vars[p.Var]; seen && d != t.DType {
			fail("input %d (%s) has element type %v, an input before it %v", i, p.Name, t.DType, d)
		}
		vars[p.Var] = t.DType
	}
}

func (c *call) checkAttr(spec *ir.AttrSpec) {
	a, set := c.Attrs[spec.Name]
	switch {
	case !set && spec.Required:
		fail("attribute %s is missing", spec.Name)
	case set && a.Kind != spec.Kind:
		fail("attribute %s is of the wrong kind", spec.Name)
	case set && spec.Values != nil && !slices.Contains(spec.Values, a.S):
		fail("attribute %s: %q, want one of %q", spec.Name, a.S, spec.Values)
	}
}
