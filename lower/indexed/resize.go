package indexed

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/arg"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/elementwise"
	"github.com/rammerc/rammerc/lower/tails"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/rkernels/functor"
	"github.com/rammerc/rammerc/roperator"
)

// Resize: what each output place sees of the input is worked out here, in float64; kernels read tables.

// resizeAxis is one axis of a Resize, from in elements to out.
type resizeAxis struct {
	axis     int
	in, out  int64
	scale    float64
	from, to float64 // region of interest, 0 and 1 for the whole axis
}

// resampledAxis says, for each output place, which elements it is made of and with which weights.
type resampledAxis struct {
	taps    int
	index   sourceTable // taps entries a place; a first entry of -1 stands for the extrapolation value
	weights []float64
}

func Resize(b *build.Builder, g *build.Group) error {
	p, err := tails.NewPlain(b, g)
	if err != nil || p.Empty() {
		return err
	}
	axes, err := resizeAxes(p.Node, p.Ins[0].Shape, p.Out().Shape)
	if err != nil {
		return err
	}
	for _, a := range axes {
		if err := build.CheckTable(a.out); err != nil {
			return err
		}
	}
	if p.Node.Str("mode", "nearest") == "nearest" {
		err = resizeNearest(b, p, axes)
	} else {
		err = resizeBlend(b, p, axes)
	}
	if err != nil {
		return err
	}
	return p.Finish(b)
}

// resizeAxes resolves axes, scales or sizes, and region; axes that stay as they are are left out.
func resizeAxes(n *ir.Node, in, out []int64) ([]resizeAxis, error) {
	axes := n.Ints("axes")
	if axes == nil {
		for d := range in {
			axes = append(axes, int64(d))
		}
	}
	scales, err := resizeScales(n, axes, in)
	if err != nil {
		return nil, err
	}
	region, err := resizeRegion(n, len(axes))
	if err != nil {
		return nil, err
	}
	var list []resizeAxis
	for i, a := range axes {
		if a < 0 {
			a += int64(len(in))
		}
		x := resizeAxis{int(a), in[a], out[a], scales[i], region[i], region[len(axes)+i]}
		if x.in != x.out || x.scale != 1 || x.from != 0 || x.to != 1 {
			list = append(list, x)
		}
	}
	return list, nil
}

// resizeScales are the given scales, or those that the sizes make.
func resizeScales(n *ir.Node, axes, in []int64) ([]float64, error) {
	if v := n.Input(2); v != nil && v.Const == nil {
		return nil, &build.NotConstant{Node: n, Input: 2, Name: "scales"}
	} else if v != nil && v.Const.Len() > 0 {
		scales := make([]float64, len(axes))
		for i, s := range ir.Slice[float32](v.Const) {
			scales[i] = float64(s)
		}
		return scales, nil
	}
	sizes, err := build.ConstInts(n, 3, "sizes")
	if err != nil {
		return nil, err
	}
	scales := make([]float64, len(axes))
	least, most := math.Inf(1), math.Inf(-1)
	for i, a := range axes {
		if a < 0 {
			a += int64(len(in))
		}
		scales[i] = float64(sizes[i]) / float64(max(in[a], 1))
		least, most = min(least, scales[i]), max(most, scales[i])
	}
	common, shared := map[string]float64{"not_larger": least,
		"not_smaller": most}[n.Str("keep_aspect_ratio_policy", "stretch")]
	for i := range scales {
		if shared {
			scales[i] = common
		}
	}
	return scales, nil
}

func resizeRegion(n *ir.Node, axes int) ([]float64, error) {
	region := make([]float64, 2*axes)
	for i := range axes {
		region[axes+i] = 1
	}
	if n.Str("coordinate_transformation_mode", "half_pixel") != "tf_crop_and_resize" {
		return region, nil
	}
	v := n.Input(1)
	if v == nil || v.Const == nil {
		return nil, &build.NotConstant{Node: n, Input: 1, Name: "roi"}
	}
	switch d := v.Const.Data.(type) {
	case []float32:
		for i, x := range d {
			region[i] = float64(x)
		}
	case []float64:
		copy(region, d)
	default:
		return nil, fmt.Errorf("input 1 (roi) has element type %s, want float32 or float64", v.DType)
	}
	return region, nil
}

// source is where output element x lies in the input.
func (a *resizeAxis) source(x float64, mode string) float64 {
	length := a.scale * float64(a.in) // the output's extent before it was rounded
	last, single := float64(a.in-1), a.out == 1
	switch {
	case mode == "asymmetric":
		return x / a.scale
	case single && (mode == "align_corners" || mode == "pytorch_half_pixel"):
		return 0
	case mode == "align_corners":
		return x * last / (length - 1)
	case mode == "tf_crop_and_resize" && single:
		return (a.from + a.to) * last / 2
	case mode == "tf_crop_and_resize":
		return a.from*last + x*(a.to-a.from)*last/float64(a.out-1)
	}
	offset := 0.0
	if mode == "half_pixel_symmetric" {
		offset = float64(a.in) / 2 * (1 - float64(a.out)/length)
	}
	return offset + (x+0.5)/a.scale - 0.5 // in this order: where a place is a tie, the last bit decides
}

// sample works out all places of the axis.
func (a *resizeAxis) sample(n *ir.Node) resampledAxis {
	mode := n.Str("coordinate_transformation_mode", "half_pixel")
	filter := newResizeFilter(n, a.scale)
	r := resampledAxis{taps: filter.taps}
	for x := range a.out {
		at := min(max(a.source(float64(x), mode), -1<<30), 1<<30)
		index, weights := filter.around(at)
		if n.Int("exclude_outside", 0) != 0 {
			a.excludeOutside(index, weights)
		}
		for i := range index {
			r.index = append(r.index, int32(min(max(index[i], 0), a.in-1)))
		}
		r.weights = append(r.weights, weights...)
		if mode == "tf_crop_and_resize" && !(at >= 0 && at <= float64(a.in-1)) {
			r.index[len(r.index)-r.taps] = -1
		}
	}
	return r
}

func (a *resizeAxis) excludeOutside(index []int64, weights []float64) {
	sum := 0.0
	for i, x := range index {
		if x < 0 || x >= a.in {
			weights[i] = 0
		}
		sum += weights[i]
	}
	for i := range weights {
		if sum != 0 {
			weights[i] /= sum
		}
	}
}

// resizeNearest only moves elements.
func resizeNearest(b *build.Builder, p *tails.Plain, axes []resizeAxis) error {
	m := remap{src: p.Ins[0], dst: p.Out(), tables: make([]sourceTable, len(p.Out().Shape))}
	for _, a := range axes {
		m.tables[a.axis] = a.sample(p.Node).index
	}
	if p.Node.Str("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize" {
		t, err := filledTensor(m.dst.DType(), p.Node.Float("extrapolation_value", 0))
		if err != nil {
			return err
		}
		m.fill = b.Constant(p.Group.Node.Name+".extrapolation", t)
	}
	return m.addTo(b, p.Group.Kind())
}

func filledTensor(d ir.DType, x float64) (*ir.Tensor, error) {
	if d == ir.Bool {
		return ir.FromSlice(d, []bool{x != 0}), nil
	}
	return functor.ScalarTensor(d, x), nil
}

// resizeBlend adds up weighted elements along up to three axes.
func resizeBlend(b *build.Builder, p *tails.Plain, axes []resizeAxis) error {
	if len(axes) > 3 {
		return fmt.Errorf("it interpolates along %d axes, at most 3 have a compiled form", len(axes))
	}
	r := newResample(b, p, axes)
	size := float64(p.Ins[0].DType().Size())
	b.Add(p.Group.Kind(), build.MoveCandidates(r.dst.Shape, 1, func(t build.Tiling) *roperator.Candidate {
		elements := float64(t.Largest())
		c := &roperator.Candidate{
			Inst: b.Instance("resample", r.dst.DType()), Tasks: t.Tasks,
			Args: []rkernels.Field{
				{Name: "tiles", Value: t.Args()},
				{Name: "src", Value: arg.Strided(r.src, 1)}, {Name: "dst", Value: arg.Strided(r.dst, 1)},
				{Name: "axes", Value: r.args},
				{Name: "extrapolation", Value: rkernels.Float(p.Node.Float("extrapolation_value", 0))},
			},
			Reads:  roperator.AppendRead(nil, r.src, r.sourceBox(t)),
			Writes: []roperator.Access{{View: r.dst, Box: t.Box}},
			Work:   roperator.Work{Flops: elements * r.taps * 3, WriteBytes: elements * size},
		}
		c.Work.AddRead(r.src, elements*size)
		return c
	})...)
	r.done()
	return nil
}

// resample is an interpolation in the kernel's terms: [N][C] and three axes, the resampled ones last.
type resample struct {
	src, dst roperator.View
	axes     [3]resampledAxis // taps 0: the axis stays as it is
	args     rkernels.List
	taps     float64 // elements that an output element is made of
	done     func()
}

func newResample(b *build.Builder, p *tails.Plain, axes []resizeAxis) *resample {
	perm, rest := resampledLast(len(p.Out().Shape), axes)
	r := &resample{src: p.Ins[0].Permute(perm), dst: p.Out().Permute(perm), taps: 1, done: func() {}}
	cut, ok := twoRuns(r.src, r.dst, rest)
	if !ok {
		home, t := r.dst, b.Temp("dense", r.dst.DType(), r.dst.Shape)
		r.src, r.dst = elementwise.Contiguous(b, r.src), t
		r.done = func() { elementwise.Copy(b, home, t) }
	}
	r.src, r.dst = fiveDims(r.src, cut, rest), fiveDims(r.dst, cut, rest)
	for i := rest; i < len(perm); i++ {
		for _, a := range axes {
			if a.axis == int(perm[i]) {
				r.axes[3-len(perm)+i] = a.sample(p.Node)
			}
		}
	}
	for i := range r.axes {
		r.args = append(r.args, axisArg(b, &r.axes[i], functor.RealType(p.Ins[0].DType())))
		r.taps *= float64(max(r.axes[i].taps, 1))
	}
	return r
}

// resampledLast orders dims so that the axes come last; rest is how many others there are.
func resampledLast(rank int, axes []resizeAxis) (perm []int64, rest int) {
	var last []int64
	for d := range rank {
		moved := false
		for _, a := range axes {
			moved = moved || a.axis == d
		}
		if moved {
			last = append(last, int64(d))
		} else {
			perm = append(perm, int64(d))
		}
	}
	return append(perm, last...), len(perm)
}

// twoRuns finds where to part the first rest dims so that either part is one run in both views.
func twoRuns(a, c roperator.View, rest int) (cut int, ok bool) {
	for cut = range rest + 1 {
		if a.IsRun(0, cut) && a.IsRun(cut, rest) && c.IsRun(0, cut) && c.IsRun(cut, rest) {
			return cut, true
		}
	}
	return 0, false
}

// fiveDims merges the first rest dims, parted at cut, to two, and fills up the others to three from the
// front.
func fiveDims(v roperator.View, cut, rest int) roperator.View {
	first, _ := roperator.View{Buf: v.Buf, Shape: v.Shape[:rest], Strides: v.Strides[:rest]}.Collapse(cut)
	w := roperator.View{Buf: v.Buf, Offset: v.Offset, Shape: first.Shape, Strides: first.Strides}
	for range 3 - (len(v.Shape) - rest) {
		w.Shape, w.Strides = append(w.Shape, 1), append(w.Strides, 0)
	}
	w.Shape = append(w.Shape, v.Shape[rest:]...)
	w.Strides = append(w.Strides, v.Strides[rest:]...)
	return w
}

// axisArg is the rk::Resample::Axis, with weights in float type d (of real numbers).
func axisArg(b *build.Builder, a *resampledAxis, d ir.DType) rkernels.Struct {
	if a.taps == 0 {
		return rkernels.Struct{arg.Int("taps", 0)}
	}
	if d != ir.Float32 {
		d = ir.Float64
	}
	weights := b.Packed(b.Group().Node.Name+".weights", d, int64(len(a.weights)), func() []byte {
		var out []byte
		for _, w := range a.weights {
			if d == ir.Float64 {
				out = binary.LittleEndian.AppendUint64(out, math.Float64bits(w))
			} else {
				out = binary.LittleEndian.AppendUint32(out, math.Float32bits(float32(w)))
			}
		}
		return out
	})
	return rkernels.Struct{
		arg.Int("taps", int64(a.taps)), arg.Ref("index", table(b, "places", a.index)), arg.Ref("weight", weights),
	}
}

// sourceBox is the smallest box that holds what a tile is made of.
func (r *resample) sourceBox(t build.Tiling) func(task int, lo, hi []int64) {
	return func(task int, lo, hi []int64) {
		t.Box(task, lo, hi)
		for i := range r.axes {
			if a := &r.axes[i]; a.taps > 0 {
				lo[2+i], hi[2+i] = spanOf(a.index[lo[2+i]*int64(a.taps) : hi[2+i]*int64(a.taps)])
			}
		}
	}
}
