package lower

import (
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/build"
)

// reason says why there is no lowering for an operator. Passes replace some of these operators where they can.
type reason struct {
	why  string
	bind bool // constants in place of inputs would help
}

// onStrings is why operators that make new strings have no compiled form.
const onStrings = "strings are made and read by the evaluator only"

// reasons has the operators about which more can be said than that they have no compiled form.
var reasons = map[string]reason{
	"AffineGrid":        {"its size must be constant at compile time", true},
	"Col2Im":            {"its shapes must be constant at compile time", true},
	"DFT":               {"its length and axis must be constant at compile time, and its matrix have at most 2^26 elements", true},
	"Det":               {"matrices have at most 6 rows in compiled form", false},
	"If":                {"its condition is computed, and results of its branches have extents without a bound", true},
	"Loop":              {"how often it runs needs a bound, its runs have at most 16384 nodes together, and if its condition is computed it has no scan outputs", true},
	"MaxRoiPool":        {"only the evaluator has it", false},
	"NonMaxSuppression": {"how many boxes it could find does not follow from the model", false},
	"NonZero":           {"how many elements it could find does not follow from the model", false},
	"STFT":              {"its step and length must be constant at compile time, and its matrix have at most 2^26 elements", true},
	"Scan":              {"its runs have at most 16384 nodes together in compiled form", false},
	"RegexFullMatch":    {onStrings, false},
	"StringConcat":      {onStrings, false},
	"StringNormalizer":  {onStrings, false},
	"StringSplit":       {onStrings, false},
	"Unique":            {"its slices have at most 64 elements in compiled form, and its input no extents of a run", false},
}

// reportMissing reports a node whose operator has no lowering.
func reportMissing(b *build.Builder, n *ir.Node, op string) {
	d := ir.NodeDiag(n, "unsupported-op", "operator "+op+" has no compiled form")
	if r, ok := reasons[op]; ok {
		d.Message += ": " + r.why
		if r.bind {
			d.Help = b.BindHelp(n.Inputs...)
		}
	}
	b.Report(d)
}
