package roperator

import "github.com/rammerc/rammerc/ir"

// Lowering adds the rOperators that carry out a group. An error says what is not supported and names
// the port or attribute; the builder adds the node.
type Lowering func(b *Builder, g *Group) error

type loweringRow struct {
	domain, op string
	lower      Lowering
}

// findLowering returns the row for an operator, or the map lowering for elementwise groups.
func findLowering(domain, op string, isMap bool) Lowering {
	if isMap {
		return lowerMap
	}
	for _, table := range lowerings {
		for _, r := range table {
			if r.domain == domain && r.op == op {
				return r.lower
			}
		}
	}
	return nil
}

// lowerings lists the tables of all families.
var lowerings = [][]loweringRow{
	viewLowerings,
	reduceLowerings,
	normLowerings,
	poolLowerings,
	indexedLowerings,
	samplingLowerings,
	sourceLowerings,
	gemmLowerings,
	convLowerings,
	recurrentLowerings,
	attentionLowerings,
}

// Supported reports whether an operator has a compiled form; elementwise operators all have.
func Supported(domain, op string) bool { return findLowering(domain, op, false) != nil }

// reason says why nodes of an operator are left that the passes otherwise replace.
type reason struct {
	why  string
	bind bool // constants in place of inputs would help
}

var reasons = map[string]reason{
	"AffineGrid":        {"its size must be constant at compile time", true},
	"Col2Im":            {"its shapes must be constant at compile time", true},
	"DFT":               {"its length and axis must be constant at compile time, and its matrix have at most 2^26 elements", true},
	"Det":               {"matrices have at most 6 rows in compiled form", false},
	"If":                {"its condition must be constant at compile time", true},
	"Loop":              {"how often it runs must be constant at compile time, and its runs have at most 16384 nodes together", true},
	"MaxRoiPool":        {"only the evaluator has it", false},
	"NonMaxSuppression": {"how many boxes it finds depends on data", false},
	"NonZero":           {"how many elements it finds depends on data", false},
	"STFT":              {"its step and length must be constant at compile time, and its matrix have at most 2^26 elements", true},
	"Scan":              {"its runs have at most 16384 nodes together in compiled form", false},
	"Unique":            {"how many elements it finds depends on data", false},
}

// reportMissing reports a node whose operator has no lowering.
func (b *Builder) reportMissing(n *ir.Node, op string) {
	d := nodeDiag(n, "unsupported-op", "operator "+op+" has no compiled form")
	if r, ok := reasons[op]; ok {
		d.Message += ": " + r.why
		if r.bind {
			d.Help = BindHelp(n.Inputs...)
		}
	}
	b.diags.Add(d)
}
