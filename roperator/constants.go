package roperator

import "github.com/rammerc/rammerc/rkernels"

// ConstantBytes is the size of the constant buffers that c's arguments refer to and that are not in seen, and adds their
// IDs to seen.
func (g *Graph) ConstantBytes(c *Candidate, seen map[int]bool) int64 {
	sum := int64(0)
	var walk func(v rkernels.ArgValue)
	walk = func(v rkernels.ArgValue) {
		switch v := v.(type) {
		case rkernels.Ref:
			if v.Buffer < 0 || v.Buffer >= len(g.Buffers) || seen[v.Buffer] {
				return
			}
			if b := g.Buffers[v.Buffer]; b.Kind == Const {
				seen[v.Buffer] = true
				sum += b.Bytes()
			}
		case rkernels.List:
			for _, x := range v {
				walk(x)
			}
		case rkernels.Struct:
			for _, x := range v {
				walk(x.Value)
			}
		}
	}
	for _, f := range c.Args {
		walk(f.Value)
	}
	return sum
}
