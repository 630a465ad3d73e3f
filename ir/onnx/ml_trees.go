package onnx

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// forest holds decision trees as matrices, which is the faster form of small ones; walk is the other. Each tree compares features with thresholds, all of them at once; a leaf is
// reached if all comparisons on the way to it went its way. Of the ways to a leaf let M be 1 where the comparison must
// hold, -1 where it must not, and 0 for comparisons elsewhere. The results D of the comparisons, 1 or 0, reach the leaf
// exactly if D·M is the number of those that must hold:
//
//	    x0 ≤ 3               way to b: not x0 ≤ 3, x1 ≤ 5      M = (-1, 1), D·M = 1
//	a            x1 ≤ 5      way to c: not x0 ≤ 3, not x1 ≤ 5  M = (-1, -1), D·M = 0
//	          b          c
//
// Trees are padded to the same numbers of comparisons and leaves, so that one product serves all of them.
type forest struct {
	w                             *rewriting
	trees, nodes, leaves, targets int64
	feature                       []int64   // [trees][nodes]
	threshold                     []float32 // [trees][nodes]
	mode                          []string  // [trees][nodes]
	missingTrue                   []bool    // [trees][nodes]: NaN counts as a comparison that holds
	ways                          []float32 // [trees][nodes][leaves]
	held                          []float32 // [trees][leaves]: how many comparisons must hold
	values                        []float32 // [trees][leaves][targets]
}

// treeNode is a node of a tree as the attributes describe it.
type treeNode struct {
	feature           int64
	value             float64
	mode              string
	whenTrue, whenNot int64
	missingTrue       bool
	weights           map[int64]float64 // by target, of a leaf
}

// mostTreeElements bounds the lists of a forest, and mostMatrixElements the matrices, beyond which trees are walked.
const (
	mostTreeElements   = 1 << 26
	mostMatrixElements = 1 << 25
)

// grove is a forest in one of its two forms. results are the numbers of the leaves that the rows of the input reach,
// [trees][rows][targets].
type grove interface{ results() *ir.Value }

// readForest reads the attributes of a tree ensemble; prefix is that of the weights' attributes. It reports what is
// wrong and returns nil then.
func readForest(c *rewriting, prefix string, targets int64) grove {
	if targets < 1 || targets > 1<<20 {
		c.refuse("bad-attribute", "attribute n_targets", "", "%d targets are not possible", targets)
		return nil
	}
	trees, order, roots := c.readTrees(prefix, targets)
	if !c.refused && len(order) == 0 {
		c.refuse("bad-attribute", "attribute nodes_treeids", "", "there are no trees")
	}
	if c.refused {
		return nil
	}
	return plantForest(c, trees, order, roots, targets)
}

// plantForest makes a forest of trees, in the order in which they are listed.
func plantForest(c *rewriting, trees map[int64]map[int64]*treeNode, order []int64, roots map[int64]int64,
	targets int64) grove {
	f := &forest{w: c, trees: int64(len(order)), nodes: 1, leaves: 1, targets: targets}
	for _, id := range order {
		inner := int64(0)
		for _, n := range trees[id] {
			if n.mode != "LEAF" {
				inner++
			}
		}
		f.nodes, f.leaves = max(f.nodes, inner), max(f.leaves, int64(len(trees[id]))-inner)
	}
	if f.trees*f.nodes*f.leaves > mostMatrixElements || f.trees*f.leaves*targets > mostMatrixElements {
		return newWalk(c, trees, order, roots, targets)
	}
	f.feature, f.threshold = make([]int64, f.trees*f.nodes), make([]float32, f.trees*f.nodes)
	f.mode, f.missingTrue = make([]string, f.trees*f.nodes), make([]bool, f.trees*f.nodes)
	f.ways, f.held = make([]float32, f.trees*f.nodes*f.leaves), make([]float32, f.trees*f.leaves)
	f.values = make([]float32, f.trees*f.leaves*targets)
	for i := range f.held {
		f.held[i] = float32(f.nodes + 1) // leaves of the padding are never reached
	}
	for t, id := range order {
		p := &planter{forest: f, tree: trees[id], at: int64(t)}
		p.plant(roots[id], nil, 0)
		if p.bad {
			c.refuse("bad-attribute", "attribute nodes_nodeids", "", "tree %d is no tree", id)
			return nil
		}
	}
	return f
}

// readTrees reads nodes by tree and id. order lists the trees in the order of their first nodes, which are their roots.
func (c *rewriting) readTrees(prefix string, targets int64) (trees map[int64]map[int64]*treeNode, order []int64,
	roots map[int64]int64) {
	tree, node := c.takeInts("nodes_treeids"), c.takeInts("nodes_nodeids")
	feature, value := c.takeInts("nodes_featureids"), c.takeFloats("nodes_values")
	yes, no := c.takeInts("nodes_truenodeids"), c.takeInts("nodes_falsenodeids")
	missing := c.takeInts("nodes_missing_value_tracks_true")
	c.takeFloats("nodes_hitrates")
	modes, _ := c.take("nodes_modes", ir.AttrStrings)
	trees, roots = map[int64]map[int64]*treeNode{}, map[int64]int64{}
	for _, n := range []int{len(node), len(feature), len(value), len(yes), len(no), len(modes.Strs)} {
		if n != len(tree) {
			c.refuse("bad-attribute", "attribute nodes_treeids", "", "the lists of nodes have different lengths")
			return nil, nil, nil
		}
	}
	for i, t := range tree {
		if trees[t] == nil {
			trees[t], roots[t] = map[int64]*treeNode{}, node[i]
			order = append(order, t)
		}
		n := &treeNode{feature: feature[i], value: value[i], mode: modes.Strs[i], whenTrue: yes[i], whenNot: no[i],
			weights: map[int64]float64{}}
		n.missingTrue = i < len(missing) && missing[i] != 0
		if n.mode != "LEAF" && comparisons[n.mode] == "" {
			c.refuse("unsupported-op", "attribute nodes_modes", "", "the comparison %q is not supported", n.mode)
		}
		trees[t][node[i]] = n
	}
	c.readWeights(prefix, targets, trees)
	return trees, order, roots
}

// readWeights gives leaves their numbers.
func (c *rewriting) readWeights(prefix string, targets int64, trees map[int64]map[int64]*treeNode) {
	tree, node := c.takeInts(prefix+"_treeids"), c.takeInts(prefix+"_nodeids")
	target, weight := c.takeInts(prefix+"_ids"), c.takeFloats(prefix+"_weights")
	for i := range tree {
		if i >= len(node) || i >= len(target) || i >= len(weight) || target[i] < 0 || target[i] >= targets {
			c.refuse("bad-attribute", "attribute "+prefix+"_ids", "", "the lists of weights do not fit each other")
			return
		}
		if n := trees[tree[i]][node[i]]; n != nil {
			n.weights[target[i]] += weight[i]
		}
	}
}

// comparisons are the operators of nodes: x ∘ value.
var comparisons = map[string]string{
	"BRANCH_LEQ": "LessOrEqual", "BRANCH_LT": "Less", "BRANCH_GTE": "GreaterOrEqual", "BRANCH_GT": "Greater",
	"BRANCH_EQ": "Equal",
}

// planter writes one tree into the matrices of a forest.
type planter struct {
	*forest
	tree          map[int64]*treeNode
	at            int64
	inner, leaves int64 // how many have been written
	bad           bool
}

// step is a comparison on the way to a node, and whether it must hold.
type step struct {
	node int64
	hold bool
}

// plant writes the node id, to which a way leads, and those below it.
func (p *planter) plant(id int64, way []step, depth int) {
	n := p.tree[id]
	if n == nil || depth > len(p.tree) || p.bad {
		p.bad = true
		return
	}
	if n.mode != "LEAF" {
		k := p.inner
		if p.inner++; k >= p.nodes {
			p.bad = true
			return
		}
		i := p.at*p.nodes + k
		p.feature[i], p.threshold[i], p.mode[i], p.missingTrue[i] = n.feature, float32(n.value), n.mode, n.missingTrue
		p.plant(n.whenTrue, append(slices.Clone(way), step{k, true}), depth+1)
		p.plant(n.whenNot, append(slices.Clone(way), step{k, false}), depth+1)
		return
	}
	leaf := p.leaves
	if p.leaves++; leaf >= p.forest.leaves {
		p.bad = true
		return
	}
	held := float32(0)
	for _, s := range way {
		sign := float32(-1)
		if s.hold {
			sign = 1
			held++
		}
		p.ways[(p.at*p.nodes+s.node)*p.forest.leaves+leaf] = sign
	}
	p.held[p.at*p.forest.leaves+leaf] = held
	for target, w := range n.weights {
		p.values[(p.at*p.forest.leaves+leaf)*p.targets+target] = float32(w)
	}
}

// results are the numbers of the leaves that the rows of x reach, [trees][rows][targets].
func (f *forest) results() *ir.Value {
	x := f.w.emit("Gather", axisAttr(1), f.w.floatInput(), f.w.ints("features", f.feature...))
	holds := f.w.cast(f.compared(x), ir.Float32)
	holds = f.w.transpose(f.w.reshape(holds, -1, f.trees, f.nodes), 1, 0, 2)
	matrix := func(name string, data []float32, dims ...int64) *ir.Value {
		return f.w.constant(name, ir.FromSlice(ir.Float32, data, dims...))
	}
	sums := f.w.emit("MatMul", nil, holds, matrix("ways", f.ways, f.trees, f.nodes, f.leaves))
	reached := f.w.emit("Equal", nil, sums, matrix("held", f.held, f.trees, 1, f.leaves))
	return f.w.emit("MatMul", nil, f.w.cast(reached, ir.Float32), matrix("values", f.values, f.trees, f.leaves, f.targets))
}

// compared are the results of all comparisons, [rows][trees·nodes].
func (f *forest) compared(x *ir.Value) *ir.Value {
	limits := f.w.float32s("thresholds", f.threshold)
	var all *ir.Value
	for _, mode := range slices.Sorted(sortedOf(f.mode)) {
		holds := f.w.emit(comparisons[mode], nil, x, limits)
		if all == nil {
			all = holds
			continue
		}
		mine := make([]bool, len(f.mode))
		for i, m := range f.mode {
			mine[i] = m == mode
		}
		all = f.w.emit("Where", nil, f.w.constant("mode", ir.FromSlice(ir.Bool, mine, int64(len(mine)))), holds, all)
	}
	if all == nil { // no tree has a comparison
		all = f.w.emit("LessOrEqual", nil, x, limits)
	}
	if slices.Contains(f.missingTrue, true) {
		tracked := f.w.constant("tracked", ir.FromSlice(ir.Bool, f.missingTrue, int64(len(f.missingTrue))))
		all = f.w.emit("Or", nil, all, f.w.emit("And", nil, f.w.emit("IsNaN", nil, x), tracked))
	}
	return all
}

// sortedOf yields the different names in a list; "" of the padding is none.
func sortedOf(list []string) func(yield func(string) bool) {
	seen := map[string]bool{"": true}
	return func(yield func(string) bool) {
		for _, s := range list {
			if !seen[s] {
				seen[s] = true
				if !yield(s) {
					return
				}
			}
		}
	}
}

// withBase adds the attribute base_values.
func (c *rewriting) withBase(y *ir.Value, base []float64) *ir.Value {
	if len(base) == 0 {
		return y
	}
	return c.emit("Add", nil, y, c.floats("base", base...))
}

// treeRegressor adds up, or combines otherwise, what the trees say.
func treeRegressor(c *rewriting) {
	if !c.arity(1, 1) {
		return
	}
	kind, base := c.postTransform(), c.takeFloats("base_values")
	how := c.takeString("aggregate_function", "SUM", "SUM", "AVERAGE", "MIN", "MAX")
	f := readForest(c, "target", c.takeInt("n_targets", 1))
	if c.refused {
		return
	}
	reduce := map[string]string{"SUM": "ReduceSum", "AVERAGE": "ReduceMean", "MIN": "ReduceMin", "MAX": "ReduceMax"}
	y := c.emit(reduce[how], ir.Attrs{"keepdims": ir.IntAttr(0)}, f.results(), c.ints("axes", 0))
	c.finish(c.transformed(c.withBase(y, base), kind))
}

// treeClassifier gives the label of the largest sum, and the sums. Where there are two labels and the trees say something
// of one alone, that is the score s of the second label, and decides. If the trees say it of the first label, that one
// gets 1 - s if scores are probabilities, else -s; this is how ONNX Runtime reads such models.
func treeClassifier(c *rewriting) {
	if !c.arity(1, 1) {
		return
	}
	kind, base := c.postTransform(), c.takeFloats("base_values")
	labels := c.takeLabels("classlabels_int64s", "classlabels_strings")
	ids, weights := c.n.Attrs["class_ids"].Ints, c.n.Attrs["class_weights"].Floats
	if c.refused || len(ids) == 0 {
		c.refuse("bad-attribute", "attribute class_ids", "", "there are no labels or no weights")
		return
	}
	f := readForest(c, "class", labels.Len())
	if c.refused {
		return
	}
	y := c.emit("ReduceSum", ir.Attrs{"keepdims": ir.IntAttr(0)}, f.results(), c.ints("axes", 0))
	one := !slices.ContainsFunc(ids, func(id int64) bool { return id != ids[0] })
	if labels.Len() != 2 || !one {
		y = c.withBase(y, base)
		c.finish(c.labelled(y, labels), c.transformed(y, kind))
		return
	}
	s := c.slice(y, 1, ids[0], ids[0]+1)
	if len(base) > 0 {
		s = c.withBase(s, base[len(base)-1:])
	}
	positive := !slices.ContainsFunc(weights, func(w float64) bool { return w < 0 })
	bound := 0.0
	if positive {
		bound = 0.5
	}
	above := c.cast(c.squeeze(c.emit("Greater", nil, s, c.number("bound", bound, ir.Float32)), 1), ir.Int64)
	label := c.emit("Gather", axisAttr(0), c.constant("labels", labels), above)
	if ids[0] == 1 { // then the first label has scores of its own, which are all 0
		c.finish(label, c.transformed(c.concat(1, c.slice(y, 1, 0, 1), s), kind))
		return
	}
	p := s
	if kind == "LOGISTIC" {
		p = c.emit("Sigmoid", nil, s)
	}
	first := c.emit("Neg", nil, p)
	if positive || kind == "LOGISTIC" {
		first = c.emit("Sub", nil, c.number("one", 1, ir.Float32), p)
	}
	c.finish(label, c.concat(1, first, p))
}
