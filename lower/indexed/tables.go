package indexed

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/arg"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/tails"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/roperator"
)

// Pad and Resize: the source of an output place is a function of each coordinate by itself, so it comes
// from constant tables, one for each dim that changes.

// sourceTable gives, for each output place along a dim, the source place; -1 is outside.
type sourceTable []int32

// remap copies src to dst through tables by dim; nil entries leave places as they are. fill is what
// stands outside.
type remap struct {
	src, dst roperator.View
	tables   []sourceTable
	fill     roperator.View // one element; Buf is nil when no table has a -1
}

// addTo adds the rOperator.
func (m *remap) addTo(b *build.Builder, kind string) error {
	m.merge()
	rank := len(m.dst.Shape)
	if rank > 8 {
		return fmt.Errorf("its operands' layouts need %d dims, at most 8 are possible", rank)
	}
	args := rkernels.List{}
	bits := int64(0)
	for d, t := range m.tables {
		if t == nil {
			args = append(args, rkernels.Struct{})
			continue
		}
		bits |= 1 << d
		args = append(args, table(b, "places", t).Ref())
	}
	size := float64(m.dst.DType().Size())
	b.Add(kind, build.MoveCandidates(m.dst.Shape, 1, func(t build.Tiling) *roperator.Candidate {
		c := &roperator.Candidate{
			Inst: b.Instance("remap", rank, m.dst.DType()), Tasks: t.Tasks,
			Args: []rkernels.Field{
				{Name: "tiles", Value: t.Args()},
				{Name: "src", Value: arg.Strided(m.src, 1)}, {Name: "dst", Value: arg.Strided(m.dst, 1)},
				{Name: "table", Value: args}, arg.Int("tables", bits),
			},
			Reads:  roperator.AppendRead(nil, m.src, m.sourceBox(t)),
			Writes: []roperator.Access{{View: m.dst, Box: t.Box}},
		}
		if m.fill.Buf != nil {
			c.Args = append(c.Args, arg.Ref("fill", m.fill))
			c.Reads = roperator.AppendRead(c.Reads, m.fill, nil)
		}
		elements := float64(t.Largest())
		c.Work.WriteBytes = elements * size
		c.Work.AddRead(m.src, elements*size)
		return c
	})...)
	return nil
}

// table makes a constant buffer of a table.
func table(b *build.Builder, what string, t sourceTable) roperator.View {
	return b.Packed(b.Group().Node.Name+"."+what, ir.Int32, int64(len(t)), func() []byte {
		out := make([]byte, 0, ir.Int32.Size()*len(t))
		for _, x := range t {
			out = binary.LittleEndian.AppendUint32(out, uint32(x))
		}
		return out
	})
}

// merge joins neighbouring dims without tables that both views step through as through one.
func (m *remap) merge() {
	src := roperator.View{Buf: m.src.Buf, Offset: m.src.Offset}
	dst := roperator.View{Buf: m.dst.Buf, Offset: m.dst.Offset}
	var tables []sourceTable
	for d, t := range m.tables {
		n := m.dst.Shape[d]
		last := len(tables) - 1
		if t == nil && n == 1 {
			continue
		}
		if t == nil && last >= 0 && tables[last] == nil &&
			src.Strides[last] == m.src.Strides[d]*n && dst.Strides[last] == m.dst.Strides[d]*n {
			src.Shape[last] *= n
			dst.Shape[last] *= n
			src.Strides[last], dst.Strides[last] = m.src.Strides[d], m.dst.Strides[d]
			continue
		}
		tables = append(tables, t)
		src.Shape, src.Strides = append(src.Shape, m.src.Shape[d]), append(src.Strides, m.src.Strides[d])
		dst.Shape, dst.Strides = append(dst.Shape, n), append(dst.Strides, m.dst.Strides[d])
	}
	if len(tables) == 0 {
		tables = []sourceTable{nil}
		src.Shape, src.Strides, dst.Shape, dst.Strides = []int64{1}, []int64{1}, []int64{1}, []int64{1}
	}
	m.src, m.dst, m.tables = src, dst, tables
}

// sourceBox is the smallest box that holds the sources of a tile.
func (m *remap) sourceBox(t build.Tiling) func(task int, lo, hi []int64) {
	return func(task int, lo, hi []int64) {
		t.Box(task, lo, hi)
		for d, table := range m.tables {
			if table != nil {
				lo[d], hi[d] = spanOf(table[lo[d]:hi[d]])
			}
		}
	}
}

// spanOf is the range of the places that are not outside.
func spanOf(table []int32) (lo, hi int64) {
	lo, hi = math.MaxInt32, 0
	for _, x := range table {
		if x >= 0 {
			lo, hi = min(lo, int64(x)), max(hi, int64(x)+1)
		}
	}
	return min(lo, hi), hi
}

func Pad(b *build.Builder, g *build.Group) error {
	p, err := tails.NewPlain(b, g)
	if err != nil || p.Empty() {
		return err
	}
	pads, err := build.ConstInts(p.Node, 1, "pads")
	if err != nil {
		return err
	}
	rank := len(p.Out().Shape)
	axes := make([]int64, rank)
	for d := range axes {
		axes[d] = int64(d)
	}
	if p.Node.Input(3) != nil {
		if axes, err = build.ConstInts(p.Node, 3, "axes"); err != nil {
			return err
		}
	}
	mode := p.Node.Str("mode", "constant")
	m := remap{src: p.Ins[0], dst: p.Out(), tables: make([]sourceTable, rank)}
	for i, a := range axes {
		if a < 0 {
			a += int64(rank)
		}
		if before, behind := pads[i], pads[len(axes)+i]; before != 0 || behind != 0 {
			if err := build.CheckTable(m.dst.Shape[a]); err != nil {
				return err
			}
			m.tables[a] = padTable(before, m.src.Shape[a], m.dst.Shape[a], mode)
		}
	}
	if mode == "constant" {
		if p.Has(2) {
			m.fill = p.Ins[2]
		} else {
			m.fill = b.Constant(g.Node.Name+".zero", ir.NewTensor(m.dst.DType()))
		}
	}
	if err := m.addTo(b, g.Kind()); err != nil {
		return err
	}
	return p.Finish(b)
}

// padTable finds the sources along an axis of n elements that becomes size long.
func padTable(before, n, size int64, mode string) sourceTable {
	t := make(sourceTable, size)
	for i := range t {
		t[i] = int32(padSource(int64(i)-before, n, mode))
	}
	return t
}

// padSource folds place i back into n elements.
func padSource(i, n int64, mode string) int64 {
	switch {
	case i >= 0 && i < n:
		return i
	case n == 0 || mode == "constant":
		return -1
	case mode == "edge":
		return min(max(i, 0), n-1)
	case mode == "wrap":
		return ((i % n) + n) % n
	case n == 1:
		return 0
	}
	period := 2 * (n - 1)
	i = ((i % period) + period) % period
	return min(i, period-i)
}
