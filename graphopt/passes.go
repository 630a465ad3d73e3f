// Package graphopt rewrites a graph into an equal one that is cheaper to run.
//
// A pass is a row of Passes: a name, a function and why it is there. Run applies the rows in order;
// what must hold between rows is in Constraints, which a test checks. Each pass lives in
// pass_<name>.go and says what it requires and what it leaves. Passes keep every result (up to the
// rounding of folded float32 weights), every output name, and the Origins of what they replace.
//
// To add a pass, write pass_<name>.go, add a row, and put text files into testdata/<name>.
package graphopt

import (
	"fmt"
	"math/rand/v2"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/ir"
)

// Pass is a row of the pass table.
type Pass struct {
	Name string
	// Fn rewrites one graph in place. Run calls it for the graph and for every graph inside it except
	// the bodies of Fused nodes, outermost first. Nodes may be left without users: Run removes them and
	// infers types again after each pass that changed something. Nodes must be in topological order.
	Fn  func(c *Context, g *ir.Graph) (changed bool, err error)
	Why string
}

// Passes is what Run applies, in order. A pass may appear several times.
var Passes = []Pass{
	{"dead-code", deadCode, "importers leave unused initializers and branches; later passes count uses"},
	{"fold-constants", foldConstants, "exporters compute shapes and scales with nodes; patterns need to see them as constants"},
	{"inline-branches", inlineBranches, "with extents bound, the conditions that exporters write are constants"},
	{"unroll-loops", unrollLoops, "a known number of runs needs no control flow in the program"},
	{"fold-constants", foldConstants, "counters are constants in runs that are written out"},
	{"inline-branches", inlineBranches, "and so are conditions that depend on them"},
	{"unroll-loops", unrollLoops, "and the number of runs of loops inside"},
	{"fold-constants", foldConstants, "what these compute from constants"},
	{"decompose", decompose, "later passes see the products and moves that transforms, grids and windows are made of"},
	{"fold-constants", foldConstants, "what decomposed operators compute from constants"},
	{"remove-identity", removeIdentity, "Identity, Dropout and casts to the same type hide patterns"},
	{"common-subexpressions", commonSubexpressions, "exporters repeat scalar and mask computations for each layer"},
	{"recognize-layer-norm", recognizeLayerNorm, "exporters before opset 17 write LayerNormalization as nine nodes"},
	{"recognize-gelu", recognizeGelu, "exporters before opset 20 write Gelu as five to eight nodes"},
	{"recognize-softmax", recognizeSoftmax, "some exporters write Softmax as exponential, sum and quotient"},
	{"recognize-attention", recognizeAttention, "one unit of work instead of two contractions around a Softmax, before scales are moved"},
	{"recognize-cells", recognizeCells, "a step of a recurrent layer is one product and one unit of work, and its weights can stay where it runs"},
	{"simplify-algebra", simplifyAlgebra, "neutral elements, chains of constants and repeated clamps cost a memory pass each"},
	{"fold-batch-norm", foldBatchNorm, "a BatchNormalization with fixed statistics is an affine map per channel"},
	{"fold-affine", foldAffine, "constant scales and shifts disappear in the weights and bias before them"},
	{"simplify-algebra", simplifyAlgebra, "folding leaves chains of constants"},
	{"fold-constants", foldConstants, "what the passes above made constant"},
	{"expand-recurrent", expandRecurrent, "steps of different layers and directions can run side by side once they are nodes"},
	{"extract-views", extractViews, "operators that only rename elements need no kernel"},
	{"common-subexpressions", commonSubexpressions, "what the passes above made equal"},
	{"hoist-projections", hoistProjections, "one large product is faster than a part of each step of a recurrence"},
	{"sink-views", sinkViews, "a reshape between a contraction and what follows keeps them from fusing"},
	{"extract-views", extractViews, "sunk views meet other views"},
	{"fuse", fuse, "elementwise chains before and after a contraction cost no memory pass of their own"},
	{"concat-in-place", concatInPlace, "producers can write straight into the result of a Concat"},
}

// Constraint says that the first row of Before comes ahead of the first row of After.
type Constraint struct{ Before, After, Why string }

// Constraints are the orders between passes that matter.
var Constraints = []Constraint{
	{"dead-code", "recognize-attention", "single-use checks must not count dead users"},
	{"fold-constants", "inline-branches", "conditions must be constants"},
	{"fold-constants", "unroll-loops", "numbers of runs must be constants"},
	{"unroll-loops", "decompose", "operators in a loop's body are decomposed, too"},
	{"fold-constants", "decompose", "lengths, axes and shapes must be constants"},
	{"decompose", "common-subexpressions", "equal matrices and indices of several nodes become one"},
	{"inline-branches", "common-subexpressions", "nodes of a branch merge with those around it"},
	{"fold-constants", "recognize-layer-norm", "epsilon, axes and exponents must be constants"},
	{"fold-constants", "recognize-gelu", "the factors must be constants"},
	{"remove-identity", "recognize-layer-norm", "a cast inside the pattern hides it"},
	{"recognize-softmax", "recognize-attention", "attention is recognised around Softmax"},
	{"recognize-gelu", "simplify-algebra", "simplification merges Gelu's constant factors"},
	{"recognize-attention", "simplify-algebra", "simplification merges the scales of q and k"},
	{"fold-constants", "recognize-cells", "weights, biases and windows of gates must be constants"},
	{"common-subexpressions", "recognize-cells", "steps of one layer are known by their weights being one constant"},
	{"recognize-cells", "simplify-algebra", "simplification rearranges sums, products and 1 - z"},
	{"recognize-cells", "fold-affine", "folding changes the weights of single steps"},
	{"recognize-attention", "extract-views", "attention is recognised by its Transpose nodes"},
	{"fold-affine", "fuse", "what folds into weights needs no epilogue"},
	{"recognize-cells", "hoist-projections", "written out steps are layers, too"},
	{"expand-recurrent", "hoist-projections", "it looks at cells"},
	{"extract-views", "hoist-projections", "the steps of a sequence are known by being views of it"},
	{"hoist-projections", "fuse", "the product is a contraction like any other"},
	{"expand-recurrent", "extract-views", "the cells' slices become views of views"},
	{"extract-views", "sink-views", "sinking looks for View nodes"},
	{"sink-views", "fuse", "fusion looks at direct users only"},
	{"fuse", "concat-in-place", "a value inside a fused group has no place of its own"},
	{"fold-batch-norm", "fold-affine", "the scale and shift of a BatchNormalization fold into weights as any other"},
}

// Options tune Run; the zero value is what the compiler uses.
type Options struct {
	// FoldLimit is the most bytes a constant made by folding may have beyond the constants it is made
	// of; 0 means DefaultFoldLimit.
	FoldLimit int64
	// Disable names passes to leave out.
	Disable []string
	// After is called after every pass with the graph as the pass left it: for dumps.
	After func(step Step) error
	// Check verifies the graph after every pass and shuffles its nodes before, by Seed, so that no
	// pass comes to depend on their order. A violation is a bug: Run panics.
	Check bool
	Seed  uint64
}

// DefaultFoldLimit keeps Expand, Tile and ConstantOfShape from growing the weights.
const DefaultFoldLimit = 1 << 20

// Step tells Options.After which pass has just run.
type Step struct {
	Index   int // in Passes
	Pass    *Pass
	Graph   *ir.Graph
	Changed bool
}

// Run applies all passes to g in place. g must be verified.
func Run(g *ir.Graph, opts Options) error { return runPasses(g, Passes, opts) }

// runPasses is Run with a table of its own, for tests of single passes.
func runPasses(g *ir.Graph, passes []Pass, opts Options) error {
	off, err := disabled(opts.Disable, passes)
	if err != nil {
		return err
	}
	c := newContext(g, opts)
	if err := ir.InferShapes(g).Err(); err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(opts.Seed, 0))
	for i := range passes {
		p := &passes[i]
		if off[p.Name] {
			continue
		}
		if opts.Check {
			shuffle(g, random)
		}
		changed, err := c.apply(p)
		if err != nil {
			return fmt.Errorf("pass %s: %w", p.Name, err)
		}
		if opts.After != nil {
			if err := opts.After(Step{i, p, g, changed}); err != nil {
				return err
			}
		}
		if opts.Check {
			if err := ir.Verify(g); err != nil {
				panic(fmt.Sprintf("BUG: pass %s left an invalid graph: %v", p.Name, err))
			}
		}
	}
	return nil
}

func disabled(names []string, passes []Pass) (map[string]bool, error) {
	off, known, diags := map[string]bool{}, map[string]bool{}, diag.List{}
	for _, p := range passes {
		known[p.Name] = true
	}
	for _, name := range names {
		if !known[name] {
			diags.Add(&diag.Diagnostic{ID: "unknown-pass", Message: fmt.Sprintf("there is no pass %q to disable", name)})
		}
		off[name] = true
	}
	return off, diags.Err()
}

// apply runs p on every graph, then removes what it left unused and infers types again.
func (c *Context) apply(p *Pass) (bool, error) {
	changed := false
	for queue := []*ir.Graph{c.Root}; len(queue) > 0; queue = queue[1:] {
		ch, err := p.Fn(c, queue[0])
		if err != nil {
			return changed, err
		}
		changed = changed || ch
		queue = append(queue, innerGraphs(queue[0])...) // those that are left
	}
	if !changed {
		return false, nil
	}
	removeDead(c.Root)
	if err := ir.InferShapes(c.Root).Err(); err != nil {
		panic(fmt.Sprintf("BUG: pass %s left a graph that has no types: %v", p.Name, err))
	}
	return true, nil
}

// innerGraphs lists the graphs directly inside g, without the bodies of Fused nodes.
func innerGraphs(g *ir.Graph) []*ir.Graph {
	var list []*ir.Graph
	for _, n := range g.Nodes {
		if !n.IsInternal("Fused") {
			list = append(list, n.Subgraphs()...)
		}
	}
	return list
}

// shuffle puts the nodes of every graph into another topological order.
func shuffle(g *ir.Graph, random *rand.Rand) {
	ir.EachGraph(g, func(g *ir.Graph) {
		rank := random.Perm(len(g.Nodes))
		if err := ir.TopoSortBy(g, func(i int) int { return rank[i] }); err != nil {
			panic("BUG: " + err.Error())
		}
	})
}
