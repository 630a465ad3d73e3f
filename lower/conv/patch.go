package conv

import (
	"fmt"
	"slices"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/arg"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/contraction"
	"github.com/rammerc/rammerc/lower/tails"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/rkernels/functor"
	"github.com/rammerc/rammerc/roperator"
)

// Convolutions of images with few channels through conv_patch: the first one of a network.

// patchRooms are the sizes of shared memory, in bytes, for which there are instances of conv_patch. The executor needs
// some beside them.
var patchRooms = []int64{32 << 10, 48 << 10, 64 << 10, 80 << 10, 112 << 10, 160 << 10, 208 << 10}

// patchRows are the numbers of output rows that an rTask of conv_patch may have.
var patchRows = []int64{1, 2, 4, 8}

// unitBytes is the size of a unit of a patch, which has the channels of one or two pixels.
const unitBytes = 16

// patchUnits is how conv_patch divides images and filters into units.
type patchUnits struct {
	elements, pixels int64 // of a unit
	phases           int64 // units from a window to the next one in a row
	filter           int64 // units of a row of the filter
	plane            int64 // units of one phase of a row of the patch
}

// patchUnitsOf is how the convolution is divided. ok is false if it is none for conv_patch.
func (c *convolution) patchUnitsOf(multiplied ir.DType) (u patchUnits, ok bool) {
	if c.transposed || c.groups != 1 || c.gatherRank() != 2 || c.dilation[1] != 1 || c.dilation[2] != 1 {
		return u, false
	}
	u.elements, u.pixels = unitBytes/int64(multiplied.Size()), 1
	if c.inC > u.elements {
		return u, false
	}
	if half := u.elements / 2; u.elements == 8 && c.inC <= half && c.stride[2]%2 == 0 {
		u.pixels = 2
	}
	u.phases, u.filter = c.stride[2]/u.pixels, build.CeilDiv(c.kernel[2], u.pixels)
	u.plane = c.out[2] + (u.filter-1)/u.phases
	// Where there are several phases, threads write neighbouring units to different ones. Then eight of them should
	// fall on all banks.
	const banks = 8
	if spread := banks / u.phases; u.phases > 1 && u.phases < banks {
		u.plane += (spread - u.plane%banks + banks) % banks
	}
	return u, true
}

// patchTile is what an rTask of conv_patch computes, and where its operands stand in shared memory.
type patchTile struct {
	shape       contraction.TileShape
	units       patchUnits
	rows        int64 // of the output
	height      int64 // of the patch
	patch, sums int64 // where they begin, in bytes
	copied      patchCopy
	room        int64
}

// patchCopy is how rows of the image come to shared memory as they are, if they do: where they begin there, in bytes,
// the first column, and how many times 16 bytes a row has.
type patchCopy struct{ rows, at, first, loads int64 }

// patchRowsOf is how rows of the image are copied for a patch with such units. There are none to copy where they are
// not made of 16 aligned bytes, or a prologue must not see what is outside of the image.
func (c *convolution) patchRowsOf(u patchUnits) (p patchCopy) {
	per := contraction.PerLoad(c.x.DType())
	ok := c.prologue == nil && c.x.Strides[4] == 1 && c.in[2]%per == 0 && c.x.Offset%per == 0
	for _, d := range []int{0, 1, 3} {
		ok = ok && c.x.Stride(d)%per == 0
	}
	if !ok || functor.RealType(c.x.DType()) != ir.Float32 {
		return p
	}
	p.rows, p.first = 1, floorDiv(-c.pad[2], per)*per
	end := (u.phases*(c.out[2]-1)+u.filter)*u.pixels - c.pad[2]
	p.loads = build.CeilDiv(end-p.first, per)
	return p
}

// patchTiles are the tiles in which conv_patch can carry out the convolution of single images.
func (c *convolution) patchTiles(b *build.Builder) []patchTile {
	u, ok := c.patchUnitsOf(c.elements.Multiplied)
	if !ok || c.wholeRuns() {
		return nil
	}
	target := b.Target()
	runs := c.kernel[1] * u.filter
	var out []patchTile
	for _, s := range contraction.PatchShapes(target, b.Precision(), c.elements, c.positions(), c.outC, runs*u.elements) {
		for i, rows := range patchRows {
			t, ok := c.patchTile(s, u, rows, int64(target.SharedPerTask))
			tasks := c.images * build.CeilDiv(c.out[1], rows) * build.CeilDiv(c.outC, s.BN)
			if !ok || i > 0 && (rows > c.out[1] || tasks < int64(target.VEUs)) {
				break
			}
			out = append(out, t)
		}
	}
	return out
}

// patchTile places what an rTask of so many rows has in shared memory. The sums of the only tile of an rTask stand
// where its operands stood. ok is false if there is not enough room.
func (c *convolution) patchTile(s contraction.TileShape, u patchUnits, rows, most int64) (t patchTile, ok bool) {
	t = patchTile{shape: s, units: u, rows: rows, height: (rows-1)*c.stride[1] + c.kernel[1]}
	lines := s.BN * (s.BK/u.elements + 1)
	offsets := build.CeilDiv(int64(ir.Int32.Size())*s.BK/u.elements, unitBytes)
	t.patch = unitBytes * (lines + offsets + 1) // a unit of zeros stands before the patch
	end := t.patch + unitBytes*t.height*u.phases*u.plane
	t.copied = c.patchRowsOf(u)
	t.copied.at = end
	end += unitBytes * t.copied.rows * c.inC * t.height * t.copied.loads
	if rows*c.out[2] > s.BM {
		t.sums = end
	}
	at, _ := slices.BinarySearch(patchRooms, max(end, t.sums+s.SumsBytes()))
	if at == len(patchRooms) || patchRooms[at] > most {
		return t, false
	}
	t.room = patchRooms[at]
	return t, true
}

// packPatchFilter packs W as lines of k, which is (filter row, unit, pixel of the unit, channel).
func packPatchFilter(b *build.Builder, c *convolution, t *patchTile) roperator.View {
	u := t.units
	return packLines(b, c, t.shape, t.shape.BN, 1, fmt.Sprintf("patch%d", u.pixels), func(channel, tap int64) int64 {
		_, row, column := c.tap(tap)
		return (row*u.filter+column/u.pixels)*u.elements + column%u.pixels*(u.elements/u.pixels) + channel
	})
}

// patchCandidate computes the convolution c of single images. In the result all images may be one.
func (c *convolution) patchCandidate(b *build.Builder, p patchTile, t *tails.Tail, merged bool) *roperator.Candidate {
	s, u := p.shape, p.units
	w := packPatchFilter(b, c, &p)
	pro, proArgs := tails.Prologue(c.x.DType(), c.prologue)
	tr, tn := build.CeilDiv(c.out[1], p.rows), build.CeilDiv(c.outC, s.BN)
	positions := int64(0)
	if merged {
		positions = c.positions()
	}
	tile := func(task int) (image, r0, r1, n int64) {
		i := int64(task)
		image, n = i/tr/tn, i/tr%tn
		return image, i % tr * p.rows, min((i%tr+1)*p.rows, c.out[1]), n
	}
	outBox := func(task int, lo, hi []int64) {
		image, r0, r1, n := tile(task)
		lo[0], lo[1] = image, r0*c.out[2]
		hi[0], hi[1] = image+1, r1*c.out[2]
		if merged {
			lo[0], lo[1], hi[0], hi[1] = 0, lo[1]+image*positions, 1, hi[1]+image*positions
		}
		lo[2], hi[2] = n*s.BN, min((n+1)*s.BN, c.outC)
	}
	readBox := func(task int, lo, hi []int64) {
		image, r0, r1, _ := tile(task)
		lo[0], hi[0], lo[1], hi[1] = image, image+1, 0, c.inC
		c.spatialBox(r0*c.out[2], r1*c.out[2], lo[2:], hi[2:])
		lo[4], hi[4] = 0, c.in[2]
	}
	depth := s.BK / u.elements
	args := []rkernels.Field{
		arg.Ref("x", c.x), arg.Ref("w", w), s.ScaleRef(w), {Name: "out", Value: arg.Operand3(t.Out)},
		arg.Int("out_channels", c.outC), arg.Div("tiles_r", tr), arg.Div("tiles_n", tn), arg.Int("rows", p.rows),
		arg.Int("image_positions", positions), arg.Int("channels", c.inC), arg.Int("patch_rows", p.height),
		arg.Div("patch_units", u.phases*(c.out[2]-1)+u.filter), arg.Div("phases", u.phases), arg.Int("plane", u.plane),
		arg.Div("filter_units", u.filter), arg.Int("units", c.kernel[1]*u.filter), arg.Div("depth", depth),
		arg.Int("patch", p.patch), arg.Int("sums", p.sums), arg.Int("rows_at", p.copied.at),
		arg.Int("first_column", p.copied.first), arg.Div("height", p.height), arg.Div("row_loads", max(1, p.copied.loads)),
		{Name: "win", Value: c.window()}, {Name: "epi", Value: t.Args}, {Name: "pro", Value: proArgs},
	}
	return &roperator.Candidate{
		Inst: b.Instance("conv_patch",
			s.PatchParams([]any{u.pixels, p.copied.rows, p.room}, c.x.DType(), t.Functor, pro)...),
		Tasks: int(c.images * tr * tn), Args: args,
		Reads:  append(roperator.AppendRead(nil, c.x, readBox), t.Reads(outBox)...),
		Writes: []roperator.Access{{View: t.Out, Box: outBox}},
		Work:   c.windowWork(s, t, w, min(p.rows, c.out[1])*c.out[2], min(s.BN, c.outC), readBox),
	}
}

// addPatches adds a convolution through conv_patch alone.
func (c *convolution) addPatches(b *build.Builder, g *build.Group) error {
	if err := c.checkRange(); err != nil {
		return err
	}
	c.permuteTail()
	c.tail.Run = c.outC
	single := *c
	c.mergeImages(b, g)
	t := tails.New(b, g, c.tail)
	var out []*roperator.Candidate
	for _, p := range single.patchTiles(b) {
		out = append(out, single.patchCandidate(b, p, t, c.images < single.images))
	}
	b.Add(g.Kind(), out...)
	t.Finish(b)
	return nil
}

// windowWork is the work of an rTask of conv_patch or conv_groups, which multiplies whole tiles one after another. It
// computes so many positions of so many output channels.
func (c *convolution) windowWork(s contraction.TileShape, t *tails.Tail, w roperator.View, positions, channels int64,
	readBox func(task int, lo, hi []int64)) roperator.Work {
	results := float64(positions * channels)
	tiles := float64(build.CeilDiv(positions, s.BM))
	work := s.Multiplications(c.elements, t.Out.DType(), float64(s.BK), 1)
	work.TensorFlops *= tiles
	work.SharedBytes *= tiles
	work.ConstBytes = w.Bytes(float64(s.PackedBlock(s.BN)))
	work.ReadBytes = c.inputBytes(readBox) + results*t.BytesPerElement()
	work.WriteBytes = t.Out.Bytes(results)
	return work
}
