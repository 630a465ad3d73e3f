package contraction

import (
	"github.com/rammerc/rammerc/lower/tails"
	"github.com/rammerc/rammerc/roperator"
)

// PositionTiles maps the rTask numbers of tiled convolutions to boxes. An rTask has an image, a part of the sum
// (split), a group, a tile of channels and a tile of positions; position tiles are numbered fastest, images slowest.
type PositionTiles struct {
	Groups, OutC, Positions int64
	Bm, Bn, Tm, Tn          int64
	Splits                  int64
}

// PositionTile is what one rTask computes. I0 numbers images and splits; m0 and m1 are channels of the group, P0 and
// P1 positions.
type PositionTile struct{ I0, Group, m0, m1, P0, P1 int64 }

// Tile is what an rTask computes.
func (at *PositionTiles) Tile(task int) PositionTile {
	i := int64(task)
	n, m, rest := i%at.Tn, i/at.Tn%at.Tm, i/at.Tn/at.Tm
	return PositionTile{
		I0: rest / at.Groups, Group: rest % at.Groups,
		m0: m * at.Bm, m1: min(m*at.Bm+at.Bm, at.OutC), P0: n * at.Bn, P1: min(n*at.Bn+at.Bn, at.Positions),
	}
}

// OutBox is the part of the output that an rTask writes.
func (at *PositionTiles) OutBox(task int, lo, hi []int64) {
	t := at.Tile(task)
	lo[0], hi[0] = t.I0, t.I0+1
	lo[1], hi[1] = t.Group*at.OutC+t.m0, t.Group*at.OutC+t.m1
	lo[2], hi[2] = t.P0, t.P1
}

// TileWork is the work of an rTask that multiplies packed constants, on the left, with a tile of depth values of k.
func TileWork(s TileShape, e Elements, m, n, depth int64, t *tails.Tail, readBytes float64) roperator.Work {
	results := float64(min(s.BM, m) * min(s.BN, n))
	w := s.Multiplications(e, t.Out.DType(), float64(depth), 1)
	w.ConstBytes = float64(e.Left.Size()) * float64(s.BM*depth)
	w.WriteBytes = t.Out.Bytes(results)
	w.ReadBytes = readBytes + results*t.BytesPerElement()
	return w
}
