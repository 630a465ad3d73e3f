package roperator

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
