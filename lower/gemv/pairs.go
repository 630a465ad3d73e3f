package gemv

import (
	"github.com/rammerc/rammerc/lower/arg"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/contraction"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/roperator"
)

// pairs is how many matrices p multiplies its rows by: 1 or 2.
func pairs(p *contraction.Product) int64 {
	if p.Second.Buf != nil {
		return 2
	}
	return 1
}

// wholePairs is how many of all groups an rTask has, if there are so many rTasks: at most `most`, and whole pairs.
func wholePairs(all, tasks, most, pairs int64) int64 {
	return min(build.CeilDiv(build.CeilDiv(all, tasks), pairs), most/pairs) * pairs
}

// turn is where column j of matrix number `which` stands among the columns of all matrices, whose groups of so many
// columns take turns.
func turn(j, which, pairs, columns int64) int64 {
	return (j/columns*pairs+which)*columns + j%columns
}

// joinedUnit is of how many values those are a multiple for which an rTask has room that joins its input.
const joinedUnit = 1 << 10

// joined is for how many values of its input p needs room, because it joins them; 0 if it does not.
func joined(p *contraction.Product) int64 {
	if p.Parts == nil {
		return 0
	}
	return build.CeilDiv(p.K, joinedUnit) * joinedUnit
}

// joinedArgs is the argument that says how the input of p is joined.
func joinedArgs(p *contraction.Product) rkernels.Struct {
	q := p.Parts
	if q == nil {
		return rkernels.Struct{}
	}
	row := q.View.Stride(0)
	return rkernels.Struct{
		arg.Ref("part", q.View), arg.Int("step", row*(p.K/q.Columns)), arg.Int("splits", q.Splits),
		arg.Div("columns", q.Columns), arg.Int("row", row), arg.Int("nan_to_zero", q.NaNToZero),
	}
}

// stored is p's input as it stands in memory: A, or its parts.
func stored(p *contraction.Product) roperator.View {
	if p.Parts == nil {
		return p.A
	}
	return p.Parts.View
}

// readsOf are the reads of p's factors.
func readsOf(p *contraction.Product, at *contraction.ProductTiles) []roperator.Access {
	if p.Parts == nil {
		return at.Reads(p.A, p.B)
	}
	return roperator.AppendRead(nil, p.Parts.View, nil)
}

// inputBytes is how many bytes of its input an rTask reads.
func inputBytes(p *contraction.Product) float64 {
	v := stored(p)
	if p.Parts == nil {
		return v.Bytes(float64(p.M * p.K))
	}
	return v.Bytes(float64(v.Count()))
}
