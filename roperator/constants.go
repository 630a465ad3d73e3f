package roperator

import "github.com/rammerc/rammerc/rkernels"

// Refs calls visit with every buffer that c's arguments refer to, some more than once.
func (c *Candidate) Refs(visit func(buffer int)) {
	var walk func(v rkernels.ArgValue)
	walk = func(v rkernels.ArgValue) {
		switch v := v.(type) {
		case rkernels.Ref:
			visit(v.Buffer)
		case rkernels.TiledMatrix:
			visit(v.Matrix.Buffer)
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
}

// ConstantBytes is the size of the constant buffers that c's arguments refer to and that are not in seen, and adds their
// IDs to seen.
func (g *Graph) ConstantBytes(c *Candidate, seen map[int]bool) int64 {
	sum := int64(0)
	c.Refs(func(id int) {
		if id < 0 || id >= len(g.Buffers) || g.Buffers[id].Kind != Const || seen[id] {
			return
		}
		seen[id] = true
		sum += g.Buffers[id].Bytes()
	})
	return sum
}
