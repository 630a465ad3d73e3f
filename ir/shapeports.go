package ir

import "slices"

// ShapePorts are the inputs of operators that determine the shape of a result, which axes it is computed along, or which
// of several bodies runs. The compiler must know their values.
var ShapePorts = map[string][]int{
	"AffineGrid":      {1},
	"BlackmanWindow":  {0},
	"CenterCropPad":   {1},
	"Col2Im":          {1, 2},
	"ConstantOfShape": {0},
	"CumProd":         {1},
	"CumSum":          {1},
	"DFT":             {1, 2},
	"Dropout":         {1, 2},
	"Expand":          {1},
	"HammingWindow":   {0},
	"HannWindow":      {0},
	"If":              {0},
	"Loop":            {0, 1},
	"MaxUnpool":       {2},
	"MelWeightMatrix": {0, 1, 2, 3, 4},
	"OneHot":          {1},
	"Pad":             {1, 3},
	"Range":           {0, 1, 2},
	"ReduceL1":        {1},
	"ReduceL2":        {1},
	"ReduceLogSum":    {1},
	"ReduceLogSumExp": {1},
	"ReduceMax":       {1},
	"ReduceMean":      {1},
	"ReduceMin":       {1},
	"ReduceProd":      {1},
	"ReduceSum":       {1},
	"ReduceSumSquare": {1},
	"Reshape":         {1},
	"Resize":          {1, 2, 3},
	"STFT":            {1, 3},
	"Slice":           {1, 2, 3, 4},
	"Split":           {1},
	"Squeeze":         {1},
	"Tile":            {1},
	"TopK":            {1},
	"Trilu":           {1},
	"Unsqueeze":       {1},
	"Upsample":        {1},
}

// IsData reports whether an output of g depends on the elements of its input v in another way than through shapes and
// conditions.
func IsData(g *Graph, v *Value) bool {
	reached := map[*Value]bool{v: true}
	spread := func(n *Node) {
		for _, out := range n.Outputs {
			reached[out] = true
		}
	}
	var walk func(g *Graph) bool
	walk = func(g *Graph) bool { // whether a node of g reads data
		any := false
		for _, n := range g.Nodes {
			reads := false
			for i, in := range n.Inputs {
				reads = reads || in != nil && reached[in] && !slices.Contains(ShapePorts[n.Op], i)
			}
			for _, inner := range n.Subgraphs() {
				reads = walk(inner) || slices.ContainsFunc(inner.Outputs, func(v *Value) bool { return reached[v] }) || reads
			}
			if reads && !n.Is("Shape") && !n.Is("Size") {
				spread(n)
				any = true
			}
		}
		return any
	}
	walk(g)
	return slices.ContainsFunc(g.Outputs, func(out *Value) bool { return reached[out] })
}
