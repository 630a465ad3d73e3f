package onnx

import (
	"math"

	"github.com/rammerc/rammerc/ir"
)

// treeModes are the comparisons of TreeEnsemble by their number. The last two have no form of their own: "is not" is
// "is" the other way round, and "is one of" a chain of "is".
var treeModes = []string{"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "BRANCH_MEMBER"}

// treeAggregates and treeTransforms are what the attributes of TreeEnsemble number.
var (
	treeAggregates = []string{"ReduceMean", "ReduceSum", "ReduceMin", "ReduceMax"}
	treeTransforms = []string{"NONE", "SOFTMAX", "LOGISTIC"}
)

// ensemble reads the attributes of TreeEnsemble into the nodes that the other tree operators have.
type ensemble struct {
	w                                          *rewriting
	feature, yes, no, yesLeaf, noLeaf, missing []int64
	split, weight                              []float64
	mode                                       []int64
	target                                     []int64
	members                                    [][]float64 // of each node that asks whether a number is one of these
	tree                                       map[int64]*treeNode
	nodes                                      int // of all trees
	bad                                        bool
}

// treeEnsemble is the operator of opset 5 of ai.onnx.ml: trees whose leaves are in lists of their own.
func treeEnsemble(c *rewriting) {
	if !c.arity(1, 1) {
		return
	}
	d, ok := c.dtypeOf(c.n.Input(0))
	if !ok {
		return
	}
	how, kind := c.takeInt("aggregate_function", 1), c.takeInt("post_transform", 0)
	targets, roots := c.takeInt("n_targets", 1), c.takeInts("tree_roots")
	e := &ensemble{w: c, feature: c.takeInts("nodes_featureids"), yes: c.takeInts("nodes_truenodeids"),
		no: c.takeInts("nodes_falsenodeids"), yesLeaf: c.takeInts("nodes_trueleafs"),
		noLeaf: c.takeInts("nodes_falseleafs"), missing: c.takeInts("nodes_missing_value_tracks_true"),
		target: c.takeInts("leaf_targetids"), split: c.takeNumbers("nodes_splits"), weight: c.takeNumbers("leaf_weights")}
	c.takeNumbers("nodes_hitrates")
	e.readModes(c.takeNumbers("membership_values"))
	switch {
	case how < 0 || how >= int64(len(treeAggregates)) || kind < 0 || kind >= int64(len(treeTransforms)):
		c.refuse("unsupported-op", "attribute aggregate_function", "", "the function is not supported")
	case targets < 1 || targets > 1<<20 || len(roots) == 0:
		c.refuse("bad-attribute", "attribute tree_roots", "", "%d trees of %d targets are not possible", len(roots), targets)
	case !e.consistent(targets):
		c.refuse("bad-attribute", "attribute nodes_featureids", "", "the lists of nodes or leaves do not fit each other")
	}
	if c.refused {
		return
	}
	trees, order, starts := map[int64]map[int64]*treeNode{}, make([]int64, len(roots)), map[int64]int64{}
	for t, r := range roots {
		e.tree = map[int64]*treeNode{}
		order[t], starts[int64(t)] = int64(t), e.add(r, false, 0)
		trees[int64(t)] = e.tree
	}
	if e.bad {
		c.refuse("bad-attribute", "attribute tree_roots", "", "the nodes are no trees, or too many")
		return
	}
	f := plantForest(c, trees, order, starts, targets)
	if c.refused {
		return
	}
	y := c.emit(treeAggregates[how], ir.Attrs{"keepdims": ir.IntAttr(0)}, f.results(), c.ints("axes", 0))
	c.finish(c.cast(c.transformed(y, treeTransforms[kind]), d))
}

// takeNumbers removes an attribute that is a tensor of numbers, and returns them.
func (c *rewriting) takeNumbers(name string) []float64 {
	a, ok := c.take(name, ir.AttrTensor)
	if !ok {
		return nil
	}
	var out []float64
	switch s := a.T.Data.(type) {
	case []float64:
		return s
	case []float32:
		return widen(s)
	case []uint8:
		for _, x := range s {
			out = append(out, float64(x))
		}
	}
	return out
}

// readModes reads the comparisons, and the sets of those that ask for one of several numbers: they stand one behind the
// other, with NaN behind each.
func (e *ensemble) readModes(members []float64) {
	for _, m := range e.w.takeNumbers("nodes_modes") {
		e.mode = append(e.mode, int64(m))
		var set []float64
		if m == float64(len(treeModes)-1) {
			for len(members) > 0 && !math.IsNaN(members[0]) {
				set, members = append(set, members[0]), members[1:]
			}
			members = members[min(1, len(members)):]
		}
		e.members = append(e.members, set)
	}
}

// consistent reports whether the lists have the same lengths, and numbers that are possible.
func (e *ensemble) consistent(targets int64) bool {
	n := len(e.feature)
	for _, list := range []int{len(e.yes), len(e.no), len(e.yesLeaf), len(e.noLeaf), len(e.split), len(e.mode)} {
		if list != n {
			return false
		}
	}
	for i := range n {
		if e.mode[i] < 0 || e.mode[i] >= int64(len(treeModes)) || e.feature[i] < 0 {
			return false
		}
	}
	for _, t := range e.target {
		if t < 0 || t >= targets {
			return false
		}
	}
	return len(e.target) == len(e.weight)
}

// add adds node or leaf i, and those below it, and returns its number in the tree.
func (e *ensemble) add(i int64, leaf bool, depth int) int64 {
	e.nodes++
	most := len(e.feature)
	if leaf {
		most = len(e.target)
	}
	if e.bad = e.bad || i < 0 || i >= int64(most) || depth > deepestWalk || e.nodes > mostTreeElements>>6; e.bad {
		return 0
	}
	if leaf {
		return e.put(&treeNode{mode: "LEAF", weights: map[int64]float64{e.target[i]: e.weight[i]}})
	}
	n := &treeNode{feature: e.feature[i], value: e.split[i], mode: treeModes[e.mode[i]]}
	n.missingTrue = int(i) < len(e.missing) && e.missing[i] != 0
	below := func(list, leaves []int64) int64 { return e.add(list[i], leaves[i] != 0, depth+1) }
	switch n.mode {
	case "BRANCH_MEMBER":
		return e.chain(n, e.members[i], func() int64 { return below(e.yes, e.yesLeaf) }, below(e.no, e.noLeaf))
	case "BRANCH_NEQ":
		n.mode, n.missingTrue = "BRANCH_EQ", false // NaN is not any number
		n.whenTrue, n.whenNot = below(e.no, e.noLeaf), below(e.yes, e.yesLeaf)
	default:
		n.whenTrue, n.whenNot = below(e.yes, e.yesLeaf), below(e.no, e.noLeaf)
	}
	return e.put(n)
}

// chain asks for one number of a set after the other; each of them leads to nodes of its own.
func (e *ensemble) chain(n *treeNode, set []float64, found func() int64, no int64) int64 {
	for _, x := range set {
		is := *n
		is.mode, is.value, is.whenTrue, is.whenNot = "BRANCH_EQ", x, found(), no
		no = e.put(&is)
	}
	return no
}

func (e *ensemble) put(n *treeNode) int64 {
	id := int64(len(e.tree))
	e.tree[id] = n
	return id
}
