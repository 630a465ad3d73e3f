package ir

// repeats checks the loops of a graph: each RepeatBegin has one RepeatEnd, both agree about the loop, and only the
// RepeatEnd gives values of the body to what follows.
func (v *verifier) repeats(g *Graph) {
	begins := map[*Node]bool{}
	for _, n := range g.Nodes {
		if n != nil && n.IsInternal("RepeatBegin") {
			begins[n] = true
		}
	}
	if len(begins) == 0 {
		return
	}
	users := map[*Node][]*Node{}
	for _, n := range g.Nodes {
		for _, x := range n.Inputs {
			if x != nil && x.Def != nil {
				users[x.Def] = append(users[x.Def], n)
			}
		}
	}
	results := map[*Value]bool{}
	for _, x := range g.Outputs {
		results[x] = true
	}
	for _, r := range Repeats(g) {
		if !begins[r.Begin] {
			v.report("bad-graph", r.End, "input 0", "it is not the number of the turn of a loop that has no other end")
			continue
		}
		delete(begins, r.Begin)
		for _, name := range []string{"loop", "trips", "carried"} {
			if a, b := r.Begin.Int(name, 0), r.End.Int(name, 0); a != b {
				v.report("bad-graph", r.End, name, "the loop begins with %d and ends with %d", a, b)
			}
		}
		v.repeatTypes(&r)
		v.staysInside(&r, users, results)
	}
	for _, n := range g.Nodes {
		if begins[n] {
			v.report("bad-graph", n, "", "the loop has no end")
		}
	}
}

// repeatTypes checks that a turn leaves to the next one what that one takes.
func (v *verifier) repeatTypes(r *Repeat) {
	for i := range int(r.End.Int("carried", 0)) {
		a, b := r.Begin.Input(i), r.End.Input(i+1)
		if a != nil && b != nil && (a.DType != b.DType || !a.Shape.Equal(b.Shape)) {
			v.report("bad-graph", r.End, "", "carried value %d is %s before a turn and %s behind it", i,
				typeText(a.DType, a.Shape), typeText(b.DType, b.Shape))
		}
	}
}

// staysInside checks that values of the body have no users behind the loop.
func (v *verifier) staysInside(r *Repeat, users map[*Node][]*Node, results map[*Value]bool) {
	inside := map[*Node]bool{r.Begin: true, r.End: true}
	for _, n := range r.Body {
		inside[n] = true
	}
	for n := range inside {
		if n == r.End {
			continue
		}
		for _, u := range users[n] {
			if !inside[u] && len(users[u]) > 0 {
				v.report("bad-graph", u, "", "it uses a value of a turn of the loop that ends with %s", definer(r.End))
			}
		}
		for _, x := range n.Outputs {
			if results[x] {
				v.report("bad-graph", n, "", "a value of a turn of a loop is a result of the graph")
			}
		}
	}
}
