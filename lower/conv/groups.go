package conv

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/arg"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/contraction"
	"github.com/rammerc/rammerc/lower/pack"
	"github.com/rammerc/rammerc/lower/tails"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/roperator"
)

// Convolutions in groups of few channels through conv_groups.

// groupRooms are the sizes of shared memory, in bytes, for which there are instances of conv_groups. The executor needs
// some beside them.
var groupRooms = []int64{32 << 10, 48 << 10, 64 << 10, 80 << 10, 96 << 10, 112 << 10, 160 << 10, 208 << 10}

// groupRows are about how many rows of the output an rTask of conv_groups may have.
var groupRows = []int64{1, 2, 4, 8, 16}

// mostJoined is how many groups may be joined to one. All products between them are zero, so that so many times as much
// is multiplied as counts.
const mostJoined = 4

// groupTile is what an rTask of conv_groups computes, and where its operands stand in shared memory.
type groupTile struct {
	shape       contraction.TileShape
	joined      int64 // groups that are one here
	rows        int64 // of the output
	height      int64 // of the patch
	width       int64
	channels    int64 // of the input
	pixelUnits  int64 // units from one pixel of the patch to the next
	patch, sums int64 // where they begin, in bytes
	room        int64
}

// groupTiles are the tiles in which conv_groups can carry out the convolution of single images.
func (c *convolution) groupTiles(b *build.Builder) []groupTile {
	if c.groups == 1 || c.transposed || c.gatherRank() != 2 || c.elements.Left != c.elements.Multiplied ||
		!channelsLast(c.x) || !c.alignedChannels() {
		return nil
	}
	var out []groupTile
	for joined := int64(1); joined <= mostJoined; joined++ {
		units := max(contraction.PerLoad(c.x.DType()), contraction.PerLoad(c.elements.Multiplied))
		if c.groups%joined != 0 || joined*c.inC%units != 0 {
			continue
		}
		for _, s := range contraction.GroupedShapes(b.Target(), b.Precision(), c.elements, joined*c.outC,
			c.groups*c.outC, joined*c.inC*c.taps()) {
			out = append(out, c.groupTilesOf(b, s, joined)...)
		}
		if len(out) > 0 {
			break
		}
	}
	return out
}

// alignedChannels reports whether the channels of every pixel of the input begin at a multiple of what is copied at a
// time.
func (c *convolution) alignedChannels() bool {
	per := contraction.PerLoad(c.x.DType())
	ok := c.x.Offset%per == 0
	for _, d := range []int{0, 2, 3, 4} {
		ok = ok && c.x.Stride(d)%per == 0
	}
	return ok
}

// groupTilesOf are tiles of one shape with different numbers of rows.
func (c *convolution) groupTilesOf(b *build.Builder, s contraction.TileShape, joined int64) []groupTile {
	var out []groupTile
	target := b.Target()
	for i, most := range groupRows {
		rows := build.EvenChunk(c.out[1], most)
		t, ok := c.groupTile(s, joined, rows, int64(target.SharedPerTask))
		tasks := c.images * build.CeilDiv(c.out[1], rows) * build.CeilDiv(c.groups*c.outC, s.BN)
		if !ok || i > 0 && (rows == out[len(out)-1].rows || tasks < int64(target.VEUs)) {
			break
		}
		out = append(out, t)
	}
	return out
}

// groupTile places what an rTask of so many rows has in shared memory. The sums of the only tile of an rTask stand
// where its operands stood. ok is false if there is not enough room.
func (c *convolution) groupTile(s contraction.TileShape, joined, rows, most int64) (t groupTile, ok bool) {
	unit := contraction.PerLoad(c.elements.Multiplied)
	t = groupTile{
		shape: s, joined: joined, rows: rows, channels: s.BN / s.GroupColumns() * joined * c.inC,
		height: (rows-1)*c.stride[1] + (c.kernel[1]-1)*c.dilation[1] + 1,
		width:  (c.out[2]-1)*c.stride[2] + (c.kernel[2]-1)*c.dilation[2] + 1,
	}
	t.pixelUnits = t.channels/unit | 1 // odd, so that neighbouring pixels fall on different banks
	lines, offsets := s.BN*(s.BK/unit+1), build.CeilDiv(int64(ir.Int32.Size())*s.BK/unit, unitBytes)
	t.patch = unitBytes * (lines + offsets + 1) // a unit of zeros stands before the patch
	end := t.patch + unitBytes*t.height*t.width*t.pixelUnits
	if rows*c.out[2] > s.BM {
		t.sums = end
	}
	at, _ := slices.BinarySearch(groupRooms, max(end, t.sums+s.SumsBytes()))
	if at == len(groupRooms) || groupRooms[at] > most {
		return t, false
	}
	t.room = groupRooms[at]
	return t, true
}

// packGroups packs W as lines of k for conv_groups: k is (tap, channel), where channels are those of the groups that
// are joined. Lines have zeros for the channels of other groups than their own.
func packGroups(b *build.Builder, c *convolution, t *groupTile) roperator.View {
	w, s := c.w, t.shape
	lines := build.CeilDiv(c.groups*c.outC, s.BN) * s.BN
	elems := lines * s.BK
	name := w.Buf.Name + ".groups" + s.PackedSuffix()
	return b.Packed(name, c.elements.Left, s.PackedElements(elems), func() []byte {
		pk := pack.New(w, elems, c.elements.Left)
		for g := range c.groups {
			rows := pack.NewAxis(c.outC, func(m int64) (int64, int64) {
				return m * w.Strides[1], s.PackedPlace(s.BN, 1, g*c.outC+m, 0)
			})
			cols := pack.NewAxis(c.inC*c.taps(), func(i int64) (int64, int64) {
				ch, tap := i/c.taps(), i%c.taps()
				d, h, x := c.tap(tap)
				return ch*w.Strides[2] + d*w.Strides[3] + h*w.Strides[4] + x*w.Strides[5],
					(tap*t.joined+g%t.joined)*c.inC + ch
			})
			pk.Put(w.Offset+g*w.Strides[0], 0, rows, cols)
		}
		return s.FinishPacked(pk.Bytes(), s.BN)
	}, w)
}

// groupCandidate computes the convolution c of single images. In the result all images may be one.
func (c *convolution) groupCandidate(b *build.Builder, p groupTile, t *tails.Tail, merged bool) *roperator.Candidate {
	s := p.shape
	w := packGroups(b, c, &p)
	pro, proArgs := tails.Prologue(c.x.DType(), c.prologue)
	channels := c.groups * c.outC
	tr, tn := build.CeilDiv(c.out[1], p.rows), build.CeilDiv(channels, s.BN)
	positions := int64(0)
	if merged {
		positions = c.positions()
	}
	tile := func(task int) (image, r0, r1, n int64) {
		i := int64(task)
		r := i / tn % tr
		return i / tn / tr, r * p.rows, min((r+1)*p.rows, c.out[1]), i % tn
	}
	outBox := func(task int, lo, hi []int64) {
		image, r0, r1, n := tile(task)
		lo[0], hi[0] = image, image+1
		lo[1], hi[1] = r0*c.out[2], r1*c.out[2]
		if merged {
			lo[0], lo[1], hi[0], hi[1] = 0, lo[1]+image*positions, 1, hi[1]+image*positions
		}
		lo[2], hi[2] = n*s.BN, min((n+1)*s.BN, channels)
	}
	readBox := func(task int, lo, hi []int64) {
		image, r0, r1, n := tile(task)
		lo[0], hi[0] = image, image+1
		lo[1], hi[1] = n*p.channels, min((n+1)*p.channels, c.groups*c.inC)
		c.spatialBox(r0*c.out[2], r1*c.out[2], lo[2:], hi[2:])
		lo[4], hi[4] = 0, c.in[2]
	}
	unit := contraction.PerLoad(c.elements.Multiplied)
	groupUnits := p.joined * c.inC / unit
	args := []rkernels.Field{
		arg.Ref("x", c.x), arg.Ref("w", w), s.ScaleRef(w), {Name: "out", Value: arg.Operand3(t.Out)},
		arg.Int("out_channels", channels), arg.Int("in_channels", c.groups*c.inC),
		arg.Div("tiles_r", tr), arg.Div("tiles_n", tn), arg.Int("rows", p.rows),
		arg.Int("image_positions", positions), arg.Int("patch_rows", p.height), arg.Div("patch_columns", p.width),
		arg.Div("channels", p.channels/contraction.PerLoad(c.x.DType())), arg.Div("group_units", groupUnits),
		arg.Int("pixel_units", p.pixelUnits), arg.Div("filter_w", c.kernel[2]),
		arg.Int("dilation_h", c.dilation[1]), arg.Int("dilation_w", c.dilation[2]),
		arg.Int("units", c.taps()*groupUnits), arg.Div("depth", s.BK/unit),
		arg.Int("patch", p.patch), arg.Int("sums", p.sums),
		{Name: "win", Value: c.window()}, {Name: "epi", Value: t.Args}, {Name: "pro", Value: proArgs},
	}
	return &roperator.Candidate{
		Inst:  b.Instance("conv_groups", s.PatchParams([]any{p.room}, c.x.DType(), t.Functor, pro)...),
		Tasks: int(c.images * tr * tn), Args: args,
		Reads:  append(roperator.AppendRead(nil, c.x, readBox), t.Reads(outBox)...),
		Writes: []roperator.Access{{View: t.Out, Box: outBox}},
		Work:   c.windowWork(s, t, w, min(p.rows, c.out[1])*c.out[2], min(s.BN, channels), readBox),
	}
}
