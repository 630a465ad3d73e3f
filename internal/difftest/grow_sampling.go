package difftest

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
)

var samplingGrowers = []grower{
	{"GridSample", growGridSample},
	{"AffineGrid", growAffineGrid},
	{"RoiAlign", growRoiAlign},
	{"MaxRoiPool", growMaxRoiPool},
	{"MaxUnpool", growMaxUnpool},
	{"Col2Im", growCol2Im},
	{"CenterCropPad", growCenterCropPad},
	{"DeformConv", growDeformConv},
}

// growGridSample keeps places away from the middle between two elements, where the nearest element changes.
func growGridSample(r *generator) {
	x := r.image()
	dims := dimsOf(x)
	spatial := len(dims) - 2
	grid := append([]int64{dims[0]}, r.dims(spatial)...)
	attrs := ir.Attrs{
		"align_corners": ir.IntAttr(int64(r.IntN(2))),
		"mode":          ir.StringAttr(oneOf(r, "linear", "linear", "nearest", "cubic")),
		"padding_mode":  ir.StringAttr(oneOf(r, "zeros", "border", "reflection")),
	}
	if spatial > 2 && attrs["mode"].S == "cubic" {
		attrs["mode"] = ir.StringAttr("linear")
	}
	r.node("GridSample", attrs, x, r.parameterLike(r.between(r.float(), -1.3, 1.3, append(grid, int64(spatial))...)))
}

func growAffineGrid(r *generator) {
	spatial := int64(2 + r.IntN(2))
	size := []int64{1 + int64(r.IntN(3)), 1 + int64(r.IntN(3))}
	for range spatial {
		size = append(size, 1+int64(r.IntN(4)))
	}
	theta := r.shaped(r.float(), size[0], spatial, spatial+1)
	r.node("AffineGrid", ir.Attrs{"align_corners": ir.IntAttr(int64(r.IntN(2)))}, theta, r.ints(size...))
}

// plane is a value [N, C, height, width].
func (r *generator) plane() *ir.Value {
	return r.value(r.float(), 4, 4)
}

// regions draws rectangles inside of an image of the given extents, whose corners lie between elements.
func (r *generator) regions(count, height, width int64) [][]float64 {
	rows := make([][]float64, count)
	for i := range rows {
		x, y := r.Float64()*float64(width), r.Float64()*float64(height)
		rows[i] = []float64{x / 2, y / 2, x/2 + 0.3 + r.Float64()*float64(width)/2, y/2 + 0.3 +
			r.Float64()*float64(height)/2}
	}
	return rows
}

func table(d ir.DType, rows [][]float64, columns int64) *ir.Tensor {
	t := ir.FromSlice(ir.Float64, slices.Concat(rows...), int64(len(rows)), columns)
	return convert(t, d)
}

func growRoiAlign(r *generator) {
	x := r.plane()
	dims := dimsOf(x)
	count := int64(r.IntN(4))
	attrs := ir.Attrs{
		"coordinate_transformation_mode": ir.StringAttr(oneOf(r, "half_pixel", "output_half_pixel")),
		"mode":                           ir.StringAttr(oneOf(r, "avg", "avg", "max")),
		"output_height":                  ir.IntAttr(1 + int64(r.IntN(3))),
		"output_width":                   ir.IntAttr(1 + int64(r.IntN(3))),
		"sampling_ratio":                 ir.IntAttr(int64(r.IntN(3))),
	}
	if dims[0] == 0 {
		r.refuse("no image")
	}
	rois := table(x.DType, r.regions(count, dims[2], dims[3]), 4)
	r.node("RoiAlign", attrs, x, r.parameterLike(rois),
		r.parameterLike(r.between(ir.Int64, 0, float64(dims[0]-1), count)))
}

func growMaxRoiPool(r *generator) {
	x := r.plane()
	dims := dimsOf(x)
	if dims[0] == 0 {
		r.refuse("no image")
	}
	rows := r.regions(int64(1+r.IntN(3)), dims[2], dims[3])
	for i := range rows {
		rows[i] = append([]float64{float64(r.IntN(int(dims[0])))}, rows[i]...)
	}
	attrs := ir.Attrs{"pooled_shape": ir.IntsAttr(1+int64(r.IntN(3)), 1+int64(r.IntN(3)))}
	r.node("MaxRoiPool", attrs, x, r.parameterLike(table(x.DType, rows, 5)))
}

// growMaxUnpool undoes a MaxPool whose windows do not overlap. Otherwise an index could occur twice, and the standard
// does not say which element stays.
func growMaxUnpool(r *generator) {
	x := r.image()
	k := make([]int64, rankOf(x)-2)
	for i := range k {
		k[i] = 1 + int64(r.IntN(3))
	}
	attrs := ir.Attrs{"kernel_shape": ir.IntsAttr(k...), "strides": ir.IntsAttr(k...)}
	pooled := r.nodes("", "MaxPool", 2, attrs, x)
	in := []*ir.Value{pooled[0], pooled[1]}
	if r.one(2) {
		in = append(in, r.ints(dimsOf(x)...))
	}
	r.node("MaxUnpool", attrs, in...)
}

func growCol2Im(r *generator) {
	spatial := 1 + r.IntN(2)
	image, block := r.dims(spatial), make([]int64, spatial)
	strides, dilations, pads := make([]int64, spatial), make([]int64, spatial), make([]int64, 2*spatial)
	count, size := int64(1), int64(1)
	for i := range image {
		image[i] = 2 + image[i]
		block[i], strides[i], dilations[i] = 1+int64(r.IntN(2)), 1+int64(r.IntN(2)), 1+int64(r.IntN(2))
		pads[i] = int64(r.IntN(2))
		count *= (image[i]+pads[i]-(block[i]-1)*dilations[i]-1)/strides[i] + 1
		size *= block[i]
	}
	attrs := ir.Attrs{"strides": ir.IntsAttr(strides...), "dilations": ir.IntsAttr(dilations...),
		"pads": ir.IntsAttr(pads...)}
	x := r.shaped(r.float(), 1+int64(r.IntN(2)), size*(1+int64(r.IntN(2))), count)
	r.node("Col2Im", attrs, x, r.ints(image...), r.ints(block...))
}

func growCenterCropPad(r *generator) {
	x := r.of(nil, 1, 4)
	axes := r.Perm(rankOf(x))[:1+r.IntN(rankOf(x))]
	slices.Sort(axes)
	attrs := ir.Attrs{}
	var list []int64
	for _, a := range axes {
		list = append(list, int64(a))
	}
	if len(list) < rankOf(x) || r.one(2) {
		attrs["axes"] = ir.IntsAttr(list...)
	}
	to := r.dims(len(list))
	r.node("CenterCropPad", attrs, x, r.ints(to...))
}

// growDeformConv moves the elements of windows by fractions.
func growDeformConv(r *generator) {
	x := r.plane()
	dims := dimsOf(x)
	w := r.window(dims[2:])
	attrs := ir.Attrs{
		"kernel_shape": ir.IntsAttr(w.kernel...), "strides": ir.IntsAttr(w.strides...),
		"dilations": ir.IntsAttr(w.dilations...), "pads": ir.IntsAttr(w.pads...),
	}
	group, places := r.groups(dims[1]), w.kernel[0]*w.kernel[1]
	attrs["group"] = ir.IntAttr(group)
	if r.one(2) {
		attrs["offset_group"] = ir.IntAttr(group)
		places *= group
	}
	out := []int64{dims[0], 0}
	for i, k := range w.kernel {
		out = append(out, (dims[i+2]+w.pads[i]+w.pads[i+2]-(k-1)*w.dilations[i]-1)/w.strides[i]+1)
	}
	offsets, masks := slices.Clone(out), slices.Clone(out)
	offsets[1], masks[1] = 2*places, places
	channels := group * (1 + int64(r.IntN(2)))
	weight := r.weights(x.DType, dims[1]/group*places, channels, dims[1]/group, w.kernel[0], w.kernel[1])
	in := []*ir.Value{x, r.parameter(weight), r.parameterLike(r.between(x.DType, -0.8, 0.8, offsets...)), nil, nil}
	if r.one(2) {
		in[3] = r.parameter(r.weights(x.DType, 1, channels))
	}
	if r.one(2) {
		in[4] = r.parameterLike(r.between(x.DType, 0, 1, masks...))
	}
	for in[len(in)-1] == nil {
		in = in[:len(in)-1]
	}
	r.node("DeformConv", attrs, in...)
}
