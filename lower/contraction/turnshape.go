package contraction

import (
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/target"
	"github.com/rammerc/rammerc/precision"
)

// TurnShape is a tile of warp groups that take turns at tiles, of which an rTask has Tall below and Wide beside each
// other.
type TurnShape struct {
	TileShape
	Tall, Wide int64

	slower float64 // than with the best number of stages
}

// turnStages are how many stages the ring has for tiles of so many columns. Most are as fast with four as with five or
// six, and leave other rOperators' weights more room. With `slower` they take so much longer.
var turnStages = []struct {
	columns, stages int64
	slower          float64
}{{128, 5, 1}, {128, 4, 1.03}, {64, 5, 1}}

// How many tiles an rTask has at least. With two the groups work one after the other. Products have strips for that,
// which are faster by a fifth; convolutions are faster by up to a third than with other tiles.
const (
	leastTurns       = 3
	leastTurnsOfConv = 2
)

// Turning is an M×N product with a constant on the right, of which the copy engine can bring both operands, or a
// convolution as one. RowBytes are those of the left operand that make up a row, without what several rows share.
type Turning struct {
	Elements Elements
	M, N     int64
	RowBytes float64
	Conv     bool
}

// Turns are the shapes of warp groups that take turns: with as many tiles for each rTask as leave the target's vEUs the
// fewest. There are none where that are few.
func (p Turning) Turns(t *target.Target, precision precision.Precision) []TurnShape {
	e := p.Elements
	if len(GroupShapes(t, precision, e, p.M, p.N, true)) == 0 || !Boxable(e) || e.Multiplied == ir.Int8 ||
		e == Float32s && precision.Products() != 1 {
		return nil
	}
	least := int64(leastTurns)
	if p.Conv {
		least = leastTurnsOfConv
	}
	var out []TurnShape
	for _, r := range turnStages {
		if p.N < r.columns && r.columns > 64 || r.columns <= 64 && !p.Conv {
			continue
		}
		s := TurnShape{
			TileShape: TileShape{128, r.columns, 32, 64, r.columns, 1, r.stages, 1, ir.Float32, true, false, 0},
			slower:    r.slower,
		}
		s.BK, s.multiplied = s.BK*groupRatio(e.Multiplied), e.Multiplied
		if s.share(p, t); s.Tall*s.Wide >= least {
			out = append(out, s)
		}
	}
	return out
}

// share finds how many tiles an rTask has, of so many below and beside each other, so that the vEUs have as few as can
// be. Of several ways the one with the widest rTasks is taken, which read the same rows for one tile after another, as
// long as half of L2 holds the rows of all vEUs. Else it is the one with the fewest rows and columns of rTasks: then
// most of them read the same operands at a time.
func (s *TurnShape) share(p Turning, t *target.Target) {
	tm, tn, veus := build.CeilDiv(p.M, s.BM), build.CeilDiv(p.N, s.BN), int64(t.VEUs)
	least, lines, held := tm*tn+1, int64(0), false
	for wide := int64(1); wide <= tn; wide++ {
		across := build.CeilDiv(tn, wide)
		if across > veus {
			continue
		}
		tall := build.CeilDiv(tm, veus/across)
		down := build.CeilDiv(tm, tall)
		holds := t.L2Bytes == 0 || 2*float64(down*s.BM)*p.RowBytes <= float64(t.L2Bytes)
		n := across + down
		better := tall*wide < least || tall*wide == least && (holds || !held && n < lines)
		if better {
			least, lines, held, s.Tall, s.Wide = tall*wide, n, holds, tall, wide
		}
	}
}

// Box is the part of an m×n result that an rTask computes. Those beside each other are numbered fastest, of which there
// are Columns in a row.
func (s TurnShape) Box(task int, m, n int64) (m0, m1, n0, n1 int64) {
	columns := s.Columns(n)
	m0, n0 = int64(task)/columns*s.Tall*s.BM, int64(task)%columns*s.Wide*s.BN
	return m0, min(m0+s.Tall*s.BM, m), n0, min(n0+s.Wide*s.BN, n)
}

// Columns is how many rTasks there are beside each other for n columns.
func (s TurnShape) Columns(n int64) int64 { return build.CeilDiv(build.CeilDiv(n, s.BN), s.Wide) }

// Tasks is how many rTasks an m×n result takes.
func (s TurnShape) Tasks(m, n int64) int { return int(build.CeilDiv(m, s.Tall*s.BM) * s.Columns(n)) }

// Params are the template arguments of conv_turns and gemm_turns.
func (s TurnShape) Params(functors ...any) []any {
	return append([]any{s.BN, s.st, s.products, s.multiplied}, functors...)
}

// What turns cost, in cycles of a multiprocessor, as single operators took on an H200: a stage, and more for each column
// of it.
const (
	turnStage  = 355
	turnColumn = 2.06
	turnDrain  = 110 // bytes of sums that leave in a cycle
)

// Flops is what an rTask costs whose tiles have so many stages, in tf32 products of mma.sync: of the sums of all tiles
// those of the last one leave while nothing is multiplied.
func (s TurnShape) Flops(stages int64) float64 {
	drain := float64(s.BM*s.BN) * float64(s.multiplied.Size()) / turnDrain
	return cycleFlops * (float64(s.Tall*s.Wide*stages)*(turnStage+turnColumn*float64(s.BN))*s.slower + drain)
}
