package ir

// InputsBehind lists the graph inputs from which values are computed, each once, in the order of first use. For a node
// with a body, these are also the inputs behind the values that the body captures from the graph around it.
func InputsBehind(values ...*Value) []*Value {
	var out []*Value
	seen := map[*Value]bool{}
	stack := []*Value{}
	push := func(list []*Value) {
		for i := len(list) - 1; i >= 0; i-- {
			if v := list[i]; v != nil && v.Const == nil && !seen[v] {
				stack = append(stack, v)
			}
		}
	}
	push(values)
	for len(stack) > 0 {
		v := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if seen[v] {
			continue
		}
		seen[v] = true
		if v.Def == nil {
			out = append(out, v)
			continue
		}
		for _, g := range v.Def.Subgraphs() {
			push(Captured(g))
		}
		push(v.Def.Inputs)
	}
	return out
}
