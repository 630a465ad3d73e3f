package codegen

import (
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/schema"
)

// collectTensorMaps gives each matrix of which copy engines bring boxes a tensor map. The host makes the maps, since
// they hold addresses: those of matrices in the arena and of constants when it has made the arena, behind which they
// stand, and those of the caller's matrices for each inference.
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
	l.tensorMapOf[m] = len(l.tensorMaps)
	buf := l.plan.Graph.Buffers[m.Matrix.Buffer]
	ref := uint64(alignUp(l.plan.ArenaLen, schema.TensorMapBytes) + schema.TensorMapBytes*int64(len(l.tensorMaps)))
	if buf.Kind != roperator.Arena && buf.Kind != roperator.Const {
		ref = uint64(l.mapSpace())<<schema.SpaceShift | uint64(schema.TensorMapBytes*l.callerMaps)
		l.callerMaps++
	}
	l.tensorMaps = append(l.tensorMaps, tensorMapRow(m, l.refBits(buf, m.Matrix.Offset), ref))
}

// tensorMapRow is the row of a matrix, or of images, and its tensor map.
func tensorMapRow(m rkernels.TiledMatrix, at, ref uint64) schema.TiledMatrix {
	row := schema.TiledMatrix{
		At: at, Map: ref,
		RowBytes: uint64(m.RowBytes), Columns: uint32(m.Columns), Rows: uint32(m.Rows),
		BoxRows: uint32(m.BoxRows), ElementBytes: uint32(m.ElementBytes),
	}
	if m.Plain {
		row.Plain = 1
	}
	if i := m.Images; i.Count > 0 {
		row.Rows, row.Width, row.Height = uint32(i.Count), uint32(i.Width), uint32(i.Height)
		row.LineBytes, row.ImageBytes = uint64(i.LineBytes), uint64(i.Bytes)
		row.FirstX, row.FirstY = uint32(i.First[0]), uint32(i.First[1])
		row.PositionsW, row.PositionsH = uint32(i.Positions[0]), uint32(i.Positions[1])
		row.StrideX, row.StrideY = uint32(i.Stride[0]), uint32(i.Stride[1])
	}
	return row
}

// mapSpace is the address space of tensor maps in the parameter of launches: the one behind those of ports.
func (l *layout) mapSpace() int { return schema.FirstPortSpace + len(l.inputs) + len(l.outputs) }

// mostCallerMaps is how many tensor maps the parameter of launches has, of the program that needs most.
func (l *layout) mostCallerMaps() int {
	n := l.callerMaps
	for _, p := range l.parts {
		n = max(n, p.mostCallerMaps())
	}
	return n
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
