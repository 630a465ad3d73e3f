package codegen

import (
	"testing"

	"github.com/rammerc/rammerc/schema"
	"github.com/rammerc/rammerc/vdevice"
)

// Programs of one arena keep their tensor maps apart from each other, and behind all arenas; maps of the caller's tensors
// stay where they are.
func TestShareArena(t *testing.T) {
	const caller = uint64(9) << schema.SpaceShift
	var program []*layout
	for _, p := range []struct {
		arena int64
		maps  int
	}{{1000, 2}, {5000, 0}, {256, 3}} {
		l := &layout{plan: &vdevice.Plan{ArenaLen: p.arena}}
		first := uint64(alignUp(p.arena, schema.TensorMapBytes))
		for i := range p.maps {
			l.tensorMaps = append(l.tensorMaps, schema.TiledMatrix{Map: first + schema.TensorMapBytes*uint64(i)})
		}
		l.tensorMaps = append(l.tensorMaps, schema.TiledMatrix{Map: caller})
		program = append(program, l)
	}
	shareArena(program)
	seen := map[uint64]bool{}
	for _, l := range program {
		for i, m := range l.tensorMaps {
			if i == len(l.tensorMaps)-1 {
				if m.Map != caller {
					t.Errorf("the map of a caller's tensor has moved to %#x", m.Map)
				}
				continue
			}
			if m.Map < 5000 || m.Map%schema.TensorMapBytes != 0 || seen[m.Map] {
				t.Errorf("a map is at %d", m.Map)
			}
			seen[m.Map] = true
		}
	}
}
