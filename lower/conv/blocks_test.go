package conv

import (
	"testing"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/contraction"
)

// TestPlacesOfBlocks: each weight has a place of its own, which is the sum of what the channel and k add.
func TestPlacesOfBlocks(t *testing.T) {
	for _, s := range blockShapes {
		for _, multiplied := range []ir.DType{ir.Float16, ir.Float32} {
			for _, unit := range []int64{4, 8} {
				if multiplied == ir.Float32 && unit == 8 { // float32 comes from images of float32
					continue
				}
				e := contraction.Elements{Multiplied: multiplied}
				b := blockTile{blockRuns: blockRuns{unit: unit}, bm: s[0], bn: s[1], wn: s[2], steps: 3}
				channels, depth := 2*b.bn, b.steps*unitsPerStep*unit
				seen := make([]bool, channels*depth)
				for channel := range channels {
					for k := range depth {
						at := b.place(e, channel, k)
						if at != b.place(e, channel, 0)+b.place(e, 0, k) || at >= int64(len(seen)) || seen[at] {
							t.Fatalf("tile %v, %v in units of %d: value %d of channel %d at %d", s, multiplied, unit, k, channel, at)
						}
						seen[at] = true
					}
				}
			}
		}
	}
}

// TestGroupsOfBlocks: the warps of an rTask share its tile evenly.
func TestGroupsOfBlocks(t *testing.T) {
	for _, s := range blockShapes {
		b := blockTile{bm: s[0], bn: s[1], wn: s[2]}
		if s[1]%s[2] != 0 || s[2]%8 != 0 || b.groups()*(s[0]/16)*(s[1]/s[2]) != build.CeilDiv(blockThreads, 32) {
			t.Errorf("tile %v has %d groups", s, b.groups())
		}
	}
}
