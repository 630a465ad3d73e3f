package codegen

import (
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/schema"
)

// collectTensorMaps gives each matrix of which copy engines bring boxes a tensor map. The host makes the maps when it
// has made the arena, since they hold addresses; they stand behind the arena.
func (l *layout) collectTensorMaps() {
	l.tensorMapOf = map[rkernels.TiledMatrix]int{}
	for _, u := range l.ops {
		for _, f := range u.cand.Args {
			if m, ok := f.Value.(rkernels.TiledMatrix); ok {
				l.addTensorMap(m)
			}
		}
	}
}

func (l *layout) addTensorMap(m rkernels.TiledMatrix) {
	if _, known := l.tensorMapOf[m]; known {
		return
	}
	n := len(l.tensorMaps)
	l.tensorMapOf[m] = n
	at := l.refBits(l.plan.Graph.Buffers[m.Matrix.Buffer], m.Matrix.Offset)
	first := alignUp(l.plan.ArenaLen, schema.TensorMapBytes)
	l.tensorMaps = append(l.tensorMaps, schema.TiledMatrix{
		At: at, Map: uint64(first + schema.TensorMapBytes*int64(n)),
		RowBytes: uint64(m.RowBytes), Columns: uint32(m.Columns), Rows: uint32(m.Rows),
		BoxRows: uint32(m.BoxRows), ElementBytes: uint32(m.ElementBytes),
	})
}

// tensorMapRows writes what the host makes tensor maps from, and returns the name of the rows. It is empty if there are
// none.
func (s *source) tensorMapRows() schema.Expr {
	if len(s.tensorMaps) == 0 {
		return ""
	}
	s.rows("TiledMatrix", "tensor_maps", len(s.tensorMaps), func(i int) schema.Row { return s.tensorMaps[i] }, nil)
	return "tensor_maps"
}
