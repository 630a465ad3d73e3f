package vdevice

import (
	"slices"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/schema"
)

// Room is what the blocks of a launch take of the device. A launch that overlaps with the one before it begins early only
// where its blocks find room beside those: then its tables, its arguments and its first weights are there when the other
// launch ends.
//
//	room beside each other   SM 0   launch 1 ──────────▶ │ launch 2 ─────▶
//	                                       launch 2 waits│
//	no room                  SM 0   launch 1 ──────────▶  · starts · launch 2 ─────▶
type Room struct {
	Blocks    int
	Shared    int // bytes of a block
	Registers int // of all threads of a block
}

// NewRoom is the room of so many blocks that need n. alone says that they ask for so much shared memory that no two of
// them fit a multiprocessor.
func NewRoom(spec *device.Spec, n *Needs, blocks int, alone bool) Room {
	r := Room{Blocks: blocks, Shared: n.leastShared(), Registers: n.Registers * n.blockThreads()}
	switch {
	case n.StreamStep > 0 && n.WarpGroups != "":
		r.Shared = spec.SharedBound() // Plan.side
	case n.StreamStep > 0:
		r.Shared = max(r.Shared, spec.SharedBeside(overlapping*max(1, spec.VEUsPerSM))-schema.SharedAlign)
	case alone:
		r.Shared = max(r.Shared, aloneShared(spec))
	}
	return r
}

// aloneShared is Ring.Alone.
func aloneShared(spec *device.Spec) int {
	beside := spec.SharedBeside(max(1, spec.VEUsPerSM) + 1)
	return beside/schema.SharedAlign*schema.SharedAlign + schema.SharedAlign
}

// Beside reports whether all blocks of a launch find room while those of the launch before it run: on multiprocessors that
// have none of them, or beside them.
func (r Room) Beside(spec *device.Spec, before Room) bool {
	if r.Blocks+before.Blocks <= spec.SMs {
		return true
	}
	reserved := spec.Shared - spec.SharedPerVEU // of each block
	n := spec.Sharing(before.Blocks)
	return r.Shared+reserved+n*(before.Shared+reserved) <= spec.Shared &&
		r.Registers+n*before.Registers <= spec.Registers
}

// NoRoomCost is how much later than others a launch begins that overlaps with the one before it but finds no room beside
// it, in ns.
func NoRoomCost(spec *device.Spec, before, r Room) float64 {
	if r.Beside(spec, before) {
		return 0
	}
	return spec.Cost.NoRoom
}

// rooms are those of the program's launches, where it is launched in waves.
func (p *Program) rooms() []Room {
	blocks := p.Blocks()
	out := make([]Room, p.Waves)
	for w, n := range p.launchNeeds() {
		_, alone := slices.BinarySearch(p.Alone, int32(w))
		out[w] = NewRoom(p.Spec, &n, blocks[w], alone)
	}
	return out
}
