// Package graphopt rewrites a graph into an equivalent one that is cheaper to run.
//
// A pass is a row of Passes: a name, a function, and the reason why it is at its place. Run applies the rows in order.
// Constraints lists the orders between passes that matter, and a test checks them. Each pass is in pass_<name>.go; the
// comment of its function says what the pass requires of the graph and what form it leaves. Files attention_*.go,
// count_*.go, decompose_*.go, operands_*.go, algebra_*.go, cell_*.go and narrow_*.go are parts of the passes of that name.
//
// Passes keep the results of the graph, up to the rounding of folded float32 weights. They keep the names of inputs and
// outputs, which are part of the model's interface, and the Origins of the nodes that they replace.
//
// For example, a Conv with constant weights, followed by a BatchNormalization and a Relu, goes through these forms:
//
//	fold-batch-norm   Conv, Mul and Add with constants for each channel, Relu
//	fold-affine       Conv with other weights and a bias, Relu
//	fuse              Fused, whose body has the Conv as its anchor and the Relu as its epilogue
//
// To add a pass, write pass_<name>.go, add a row, and put text files with graphs into testdata/<name>.
package graphopt

import (
	"fmt"
	"math/rand/v2"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/precision"
	"github.com/rammerc/rammerc/rkernels"
)

// Pass is a row of the pass table.
type Pass struct {
	Name string
	// Fn rewrites one graph in place. Run calls it for the graph and for every graph inside it except the bodies of
	// Fused nodes, outermost first. Fn must leave the nodes in topological order. It may leave nodes without users:
	// after a pass that changed something, Run removes these and infers types again.
	Fn  func(c *Context, g *ir.Graph) (changed bool, err error)
	Why string // the reason why the pass is at this place
}

// Passes is what Run applies, in order. A pass may appear several times.
var Passes = []Pass{
	{"dead-code", deadCode, "importers leave unused initializers and branches; later passes count uses"},
	{"recognize-integers", recognizeIntegers, "folding would make floats of integers, and the next pass of their weights"},
	{"recognize-quantized", recognizeQuantized, "folding would make floats of quantised weights"},
	{"fold-constants", foldConstants, "exporters compute shapes and scales with nodes; patterns need to see them as constants"},
	{"inline-branches", inlineBranches, "when extents are bound, the conditions that exporters write are constants"},
	{"read-operands", readOperands, "what a run reads in operands is not for other passes; they need shapes that are known"},
	{"paste-masks", pasteMasks, "the masks of all boxes are a product, however many boxes a run finds"},
	{RepeatSteps, repeatSteps, "what is written out next are the steps of one period, however many there are"},
	{"unroll-loops", unrollLoops, "a loop with a known number of iterations needs no control flow in the program"},
	{"fold-constants", foldConstants, "in an unrolled loop the counter is a constant, and so is what follows from it"},
	{"inline-branches", inlineBranches, "conditions inside unrolled loops have become constants"},
	{"unroll-loops", unrollLoops, "loops inside unrolled loops have a known number of iterations now"},
	{"fold-constants", foldConstants, "the counters of these inner loops are constants, too"},
	{"select-branches", selectBranches, "conditions that are left are what a run computes"},
	{"count-extents", countExtents, "what a run finds gets names; other passes need extents that are numbers"},
	{"fold-constants", foldConstants, "the extents that exporters compute with are numbers now"},
	{"select-branches", selectBranches, "the extents of more branches are numbers now"},
	{"decompose", decompose, "later passes optimise the products and gathers of which transforms, grids and windows are made"},
	{"fold-constants", foldConstants, "decomposed operators compute with constants, such as matrices and indices"},
	{"remove-identity", removeIdentity, "Identity, Dropout and casts to the same type hide patterns"},
	{"common-subexpressions", commonSubexpressions, "exporters repeat scalar and mask computations for each layer"},
	{"recognize-layer-norm", recognizeLayerNorm, "exporters before opset 17 write LayerNormalization as nine nodes"},
	{"recognize-rms-norm", recognizeRMSNorm, "no exporter writes RMSNormalization as one node before opset 23"},
	{"recognize-gelu", recognizeGelu, "exporters before opset 20 write Gelu as five to eight nodes"},
	{"recognize-softmax", recognizeSoftmax, "some exporters write Softmax as exponential, sum and quotient"},
	{"recognize-attention", recognizeAttention, "attention is one unit of work instead of two contractions around a Softmax"},
	{"recognize-cells", recognizeCells, "a step of a recurrent layer is one unit of work, whose weights can stay on a vEU"},
	{"simplify-algebra", simplifyAlgebra, "neutral elements, chains of constants and repeated clamps cost a memory pass each"},
	{"fold-batch-norm", foldBatchNorm, "a BatchNormalization with fixed statistics is an affine map per channel"},
	{"fold-affine", foldAffine, "constant scales and shifts disappear in the weights and bias before them"},
	{"simplify-algebra", simplifyAlgebra, "folding leaves chains of constants"},
	{"fold-constants", foldConstants, "the passes above have made more values constant"},
	{AbsorbNorms, absorbNorms, "factors before and behind normalisations have been folded into their scales"},
	{"join-products", joinProducts, "the products that share rows are known, and so are constant weights"},
	{"quantize-weights", quantizeWeights, "scales that were folded into weights need no operator of their own"},
	{"fuse-cached-attention", fuseCachedAttention, "what appends keys and values, and turns them, needs no operators of its own"},
	{"split-rotary", splitRotary, "the pieces of the embedding are views, once nothing concatenates them before they are added"},
	{"expand-recurrent", expandRecurrent, "steps of different layers and directions can run side by side once they are nodes"},
	{"open-cells", openCells, "cells without constant weights have no kernel"},
	{"extract-views", extractViews, "operators that only rearrange elements need no kernel"},
	{"common-subexpressions", commonSubexpressions, "the passes above have made more nodes equal"},
	{"hoist-projections", hoistProjections, "one large product is faster than a small one in each step of a recurrence"},
	{"sink-views", sinkViews, "a reshape between a contraction and an elementwise operator keeps them from fusing"},
	{"sink-transposes", sinkTransposes, "so does a transpose"},
	{"extract-views", extractViews, "a view that was moved may follow another view now"},
	{"gather-rows", gatherRows, "views of views, and the concatenations of views, would be copies"},
	{"fuse-gather-norm", fuseGatherNorm, "its sum is not to become the epilogue of another group"},
	{"fuse-quantized-norm", fuseQuantizedNorm, "its rows have several users, so that fuse would store and load them between"},
	{"fuse-dynamic-quantization", fuseDynamicQuantization, "its operators on single numbers would be launches of their own"},
	{"fuse-squeeze-excite", fuseSqueezeExcite, "its convolutions are not to become groups of their own"},
	{"split-dequantized", splitDequantized, "a value with several users would be stored as it is, and not in 8 bits"},
	{"fuse", fuse, "elementwise chains before and after a contraction then need no memory pass of their own"},
	{NarrowStorage, narrowStorage, "it is known now what is stored, and what stays in the registers of one kernel"},
	{"nest-concats", nestConcats, "values that are equal have become one, so that parts of Concats are known to be the same"},
	{"concat-in-place", concatInPlace, "producers can write directly into the result of a Concat"},
	{StoreChannelsLast, storeChannelsLast, "the operators between which values are stored are known"},
	{"flatten-as-stored", flattenAsStored, "it is known how values are stored"},
}

// AbsorbNorms is the pass to leave out for devices whose products normalise no rows.
const AbsorbNorms = "absorb-norms"

// RepeatSteps is the pass that makes loops of long recurrences.
const RepeatSteps = "repeat-steps"

// NarrowStorage names the pass that stores values in 16 bits.
const NarrowStorage = "narrow-storage"

// StoreChannelsLast is the pass to leave out where nobody lowers the graph, such as for references.
const StoreChannelsLast = "store-channels-last"

// revealing are the passes that may make more shapes known than inference alone, and so bring mistakes of the model to
// light. After them, what inference reports are errors of the model; after any other pass it is a bug of the pass.
var revealing = map[string]bool{"fold-constants": true, "inline-branches": true, "unroll-loops": true}

// Constraint says that the first row of the pass Before must come before the first row of the pass After.
type Constraint struct{ Before, After, Why string }

// Constraints are the orders between passes that matter.
var Constraints = []Constraint{
	{"dead-code", "recognize-attention", "single-use checks must not count dead users"},
	{"fold-constants", "inline-branches", "conditions must be constants"},
	{"fold-constants", "unroll-loops", "numbers of runs must be constants"},
	{"fold-constants", "paste-masks", "it looks for the corners that the loop takes"},
	{"paste-masks", "unroll-loops", "it looks for a Loop"},
	{"fold-constants", "read-operands", "operands that are constants say more than declarations"},
	{"read-operands", "unroll-loops", "the number of runs of a loop may follow from what it collects"},
	{"read-operands", "count-extents", "shapes that are declared need no names"},
	{"fold-constants", RepeatSteps, "numbers of steps must be constants"},
	{RepeatSteps, "unroll-loops", "a loop that is divided is not written out whole"},
	{RepeatSteps, "expand-recurrent", "neither is a recurrent operator"},
	{"unroll-loops", "decompose", "operators in a loop's body are to be decomposed, too"},
	{"unroll-loops", "select-branches", "the conditions of some runs are constants"},
	{"select-branches", "count-extents", "what branches find is to have a place of its own"},
	{"unroll-loops", "count-extents", "what loops find has a place of its own in each run"},
	{"count-extents", "decompose", "shapes must be constants"},
	{"fold-constants", "decompose", "lengths, axes and shapes must be constants"},
	{"decompose", "common-subexpressions", "equal matrices and indices of several nodes become one"},
	{"inline-branches", "common-subexpressions", "nodes of a branch merge with those around it"},
	{"fold-constants", "recognize-layer-norm", "epsilon, axes and exponents must be constants"},
	{"fold-constants", "recognize-gelu", "the factors must be constants"},
	{"remove-identity", "recognize-layer-norm", "a cast inside the pattern hides it"},
	{"recognize-layer-norm", "recognize-rms-norm", "the latter matches a part of the former"},
	{"recognize-softmax", "recognize-attention", "attention is recognised around Softmax"},
	{"recognize-gelu", "simplify-algebra", "simplification merges Gelu's constant factors"},
	{"recognize-attention", "simplify-algebra", "simplification merges the scales of q and k"},
	{"fold-constants", "recognize-cells", "weights, biases and windows of gates must be constants"},
	{"common-subexpressions", "recognize-cells", "steps of one layer are known by their weights being one constant"},
	{"recognize-cells", "simplify-algebra", "simplification rearranges sums, products and 1 - z"},
	{"recognize-cells", "fold-affine", "folding changes the weights of single steps"},
	{"recognize-attention", "extract-views", "attention is recognised by its Transpose nodes"},
	{"recognize-integers", "recognize-quantized", "products of two factors of 8 bits are not for kernels that take one"},
	{"recognize-integers", "fold-constants", "factors must not be dequantised yet"},
	{"recognize-quantized", "fold-constants", "weights must not be dequantised yet"},
	{"fold-affine", "quantize-weights", "factors fold into float weights"},
	{"quantize-weights", "fuse", "the product gets the prologue and epilogue"},
	{"fold-affine", "fuse", "what folds into weights needs no epilogue"},
	{"recognize-cells", "hoist-projections", "the products of recognised cells are hoisted, too"},
	{"recognize-attention", "fuse-cached-attention", "it looks for Attention"},
	{"fuse-cached-attention", "split-rotary", "it looks for the nodes of rotary embeddings"},
	{"fuse-cached-attention", "extract-views", "it looks for Slice, Concat and Reshape nodes"},
	{"fold-constants", "split-rotary", "the bounds of slices must be constants"},
	{"split-rotary", "extract-views", "it looks for Slice and Concat nodes"},
	{"recognize-layer-norm", AbsorbNorms, "neither are means and variances"},
	{"recognize-rms-norm", AbsorbNorms, "it looks for RMSNormalization"},
	{AbsorbNorms, "join-products", "products of the same normalised rows are joined"},
	{AbsorbNorms, "quantize-weights", "scales fold into float weights"},
	{"join-products", "quantize-weights", "float weights are joined"},
	{"join-products", "extract-views", "it looks for Reshape and the like behind products"},
	{"expand-recurrent", "hoist-projections", "it looks for cells"},
	{"expand-recurrent", "open-cells", "it looks for cells"},
	{"open-cells", "extract-views", "parts of weights are views"},
	{"extract-views", "hoist-projections", "the steps of a sequence are recognised as views of it"},
	{"hoist-projections", "fuse", "the hoisted product may get a prologue and an epilogue"},
	{"expand-recurrent", "extract-views", "the cells' slices become views of views"},
	{"extract-views", "sink-views", "sinking looks for View nodes"},
	{"sink-views", "fuse", "fusion joins a node only with its direct users"},
	{"split-dequantized", "fuse", "what makes a value is joined with its only user"},
	{"fuse", NarrowStorage, "values inside a fused group are never stored, so they stay float32"},
	{"fuse", "concat-in-place", "a value inside a fused group is never stored, so it cannot be stored in a Concat"},
	{"sink-views", "gather-rows", "a view that is moved is no part of a chain any more"},
	{"gather-rows", "fuse-gather-norm", "it looks for Gather"},
	{"fuse-gather-norm", "fuse", "the sum of a group must not be in another one"},
	{"fuse-gather-norm", "fuse-quantized-norm", "rows are gathered rather than quantised, where both could be"},
	{"sink-views", "fuse-quantized-norm", "a view between rows and their quantisation hides it"},
	{"fuse-dynamic-quantization", "fuse", "its operators must not be in groups of their own"},
	{"fuse-quantized-norm", "fuse", "the quantisation must not be a group of its own"},
	{"gather-rows", "concat-in-place", "its parts are to be gathered, not copied"},
	{"sink-views", "fuse-squeeze-excite", "a view inside of the pattern hides it"},
	{"fold-affine", "fuse-squeeze-excite", "biases must be inputs of the convolutions"},
	{"fuse-squeeze-excite", "fuse", "the operators of the pattern must not be in groups of their own"},
	{"extract-views", "sink-transposes", "sinking looks for View nodes"},
	{"sink-transposes", "fuse", "fusion joins a node only with its direct users"},
	{"fuse", StoreChannelsLast, "values inside a fused group are never stored"},
	{"nest-concats", "concat-in-place", "a value is written into one Concat, and seen through others"},
	{"concat-in-place", StoreChannelsLast, "parts of one value have one order"},
	{StoreChannelsLast, "flatten-as-stored", "it looks for orders of values"},
	{"fold-batch-norm", "fold-affine", "the scale and shift of a BatchNormalization fold into weights as any other"},
}

// Options tune Run; the zero value is what the compiler uses.
type Options struct {
	// FoldLimit is how many bytes the constants that a node is folded to may have, in addition to the size of the
	// node's inputs; 0 means DefaultFoldLimit.
	FoldLimit int64
	// Disable names passes to leave out.
	Disable []string
	// After is called after every pass with the graph as the pass left it: for dumps.
	After func(step Step) error
	// Check verifies the graph after every pass. Before every pass it puts the nodes into another topological order,
	// which depends on Seed, so that no pass comes to depend on the order. Run panics if the graph is invalid, because
	// that is a bug of a pass.
	Check bool
	Seed  uint64
	// Precision says for each node in which type it is to store values, and weights. The zero value leaves all types as
	// they are.
	Precision precision.Choice
	// ConvolvesOnTensorCores reports whether convolutions that are not depthwise multiply on tensor cores in a
	// precision. Those that do not are faster on images in row-major order. nil means that all do.
	ConvolvesOnTensorCores func(p precision.Precision) bool
	// NormalisesRows reports whether products of many rows, not only of few, divide these by what they are normalised by, in
	// a precision. nil means that none do.
	NormalisesRows func(p precision.Precision) bool
	// Weights is the form in which the weights of products of few rows are to be stored, of WeightBits; "" leaves them.
	Weights string
	// Extent says which extent the results of a counted operator have, of whose symbol most is a bound: that bound, or
	// another number to see what depends on it. Where it is nil, operators that find elements stay as they are.
	Extent func(symbol string, most int64) int64
	// Kernels says what fuses with what; nil means the built-in rKernels.
	Kernels *rkernels.Catalogue
}

// DefaultFoldLimit, in bytes, keeps the folding of Expand, Tile and ConstantOfShape from making the weights file large.
// The masks of shifted windows in image networks, broadcast to all heads, are below it.
const DefaultFoldLimit = 2 << 20

// Step tells Options.After which pass has just run.
type Step struct {
	Index   int // in Passes
	Pass    *Pass
	Graph   *ir.Graph
	Changed bool
}

// Run applies all passes to g in place. g must be valid (ir.Verify). The error names a pass that Options.Disable does
// not know, or is that of a pass or of Options.After.
func Run(g *ir.Graph, opts Options) error { return runPasses(g, Passes, opts) }

// runPasses is Run with a table of its own, for tests of single passes.
func runPasses(g *ir.Graph, passes []Pass, opts Options) error {
	off, err := disabled(opts.Disable, passes)
	if err != nil {
		return err
	}
	kernels := opts.Kernels
	if kernels == nil {
		if kernels, err = rkernels.BuiltIn(); err != nil {
			return err
		}
	}
	c := newContext(g, opts, kernels)
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

// disabled returns the names as a set, or an error with those that are no passes.
func disabled(names []string, passes []Pass) (map[string]bool, error) {
	off, known, diags := map[string]bool{}, map[string]bool{}, diag.List{}
	for _, p := range passes {
		known[p.Name] = true
	}
	for _, name := range names {
		if !known[name] {
			diags.Add(&diag.Diagnostic{ID: "unknown-pass",
				Message: fmt.Sprintf("there is no pass %q to disable", name)})
		}
		off[name] = true
	}
	return off, diags.Err()
}

// apply runs p on every graph. If something changed it then removes dead code and infers types again.
func (c *Context) apply(p *Pass) (bool, error) {
	changed := false
	c.forget()
	for queue := []*ir.Graph{c.Root}; len(queue) > 0; queue = queue[1:] {
		ch, err := p.Fn(c, queue[0])
		if ch || err != nil {
			c.forget()
		}
		if err != nil {
			return changed, err
		}
		changed = changed || ch
		queue = append(queue, innerGraphs(queue[0])...) // after the pass, which may have removed some of them
	}
	if !changed {
		return false, nil
	}
	removeDead(c.Root)
	err := ir.InferShapes(c.Root).Err()
	if err != nil && !revealing[p.Name] {
		panic(fmt.Sprintf("BUG: pass %s left a graph that has no types: %v", p.Name, err))
	}
	return true, err
}

// innerGraphs lists the graphs directly inside g, without the bodies of Fused nodes and without branches that have no
// types.
func innerGraphs(g *ir.Graph) []*ir.Graph {
	var list []*ir.Graph
	for _, n := range g.Nodes {
		if n.IsInternal("Fused") {
			continue
		}
		for _, inner := range n.Subgraphs() {
			if !inner.Untyped {
				list = append(list, inner)
			}
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
