package difftest

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
)

var windowGrowers = []grower{
	{"Conv", growConv},
	{"ConvTranspose", growConvTranspose},
	{"MaxPool", growMaxPool},
	{"AveragePool", growAveragePool},
	{"LpPool", growLpPool},
	{"GlobalAveragePool", func(r *generator) { r.node("GlobalAveragePool", nil, r.value(r.float(), 2, 5)) }},
	{"GlobalMaxPool", func(r *generator) { r.node("GlobalMaxPool", nil, r.value(r.float(), 2, 5)) }},
}

// image is a value of shape [N, C, spatial…].
func (r *generator) image() *ir.Value {
	d := r.float()
	v := r.find(func(v *ir.Value) bool { return v.DType == d && rankOf(v) >= 3 && rankOf(v) <= 5 })
	if v != nil && !r.one(6) {
		return v
	}
	dims := []int64{1 + int64(r.IntN(2)), 1 + int64(r.IntN(6))}
	for range oneOf(r, 1, 2, 2, 2, 3) {
		dims = append(dims, 2+int64(r.IntN(7)))
	}
	if r.large {
		dims[r.IntN(len(dims))] = oneOf[int64](r, 16, 17, 32, 65)
	}
	return r.source(d, dims)
}

// groups draws a number of groups that divides the channels.
func (r *generator) groups(channels int64) int64 {
	switch r.IntN(4) {
	case 0:
		return max(channels, 1)
	case 1:
		for _, g := range []int64{4, 3, 2} {
			if channels%g == 0 && channels > 0 {
				return g
			}
		}
	}
	return 1
}

// window holds the attributes of a convolution's or pool's window.
type window struct{ kernel, strides, dilations, pads []int64 }

// window draws a window that fits an input with these spatial extents.
func (r *generator) window(in []int64) window {
	n := len(in)
	w := window{pads: make([]int64, 2*n)}
	for i, extent := range in {
		k := oneOf[int64](r, 1, 1, 2, 3, 3, 3, 5)
		stride, dilation := oneOf[int64](r, 1, 1, 1, 2, 3), oneOf[int64](r, 1, 1, 1, 2)
		if r.one(2) {
			w.pads[i], w.pads[n+i] = k/2, k/2
		} else if r.one(3) {
			w.pads[i], w.pads[n+i] = int64(r.IntN(int(k))), int64(r.IntN(int(k)))
		}
		for (k-1)*dilation+1 > extent+w.pads[i]+w.pads[n+i] && k > 1 {
			k, dilation = k-1, 1
			w.pads[i], w.pads[n+i] = min(w.pads[i], k-1), min(w.pads[n+i], k-1)
		}
		w.kernel, w.strides, w.dilations = append(w.kernel, k), append(w.strides, stride), append(w.dilations, dilation)
	}
	return w
}

// attrs are the window's attributes. Most of the time those with default values are left out.
func (w window) attrs(r *generator) ir.Attrs {
	attrs := ir.Attrs{}
	set := func(name string, list []int64, def int64) {
		plain := !slices.ContainsFunc(list, func(v int64) bool { return v != def })
		if !plain || r.one(4) {
			attrs[name] = ir.IntsAttr(list...)
		}
	}
	set("strides", w.strides, 1)
	set("dilations", w.dilations, 1)
	if r.one(6) {
		attrs["auto_pad"] = ir.StringAttr(oneOf(r, "SAME_UPPER", "SAME_LOWER", "VALID"))
		return attrs
	}
	set("pads", w.pads, 0)
	return attrs
}

func growConv(r *generator) { r.conv(r.image()) }

// conv adds a convolution of x.
func (r *generator) conv(x *ir.Value) *ir.Value {
	dims := dimsOf(x)
	group := r.groups(dims[1])
	out := group * (1 + int64(r.IntN(4)))
	if r.large && r.one(2) {
		out = group * (1 + r.wide()/group)
	}
	w := r.window(dims[2:])
	attrs := w.attrs(r)
	if group != 1 || r.one(4) {
		attrs["group"] = ir.IntAttr(group)
	}
	if r.one(2) {
		attrs["kernel_shape"] = ir.IntsAttr(w.kernel...)
	}
	shape := append([]int64{out, dims[1] / group}, w.kernel...)
	in := []*ir.Value{x, r.parameter(r.weights(x.DType, ir.Count(shape[1:]), shape...))}
	if r.one(2) {
		in = append(in, r.parameter(r.weights(x.DType, 1, out)))
	}
	return r.node("Conv", attrs, in...)
}

func growConvTranspose(r *generator) {
	x := r.image()
	dims := dimsOf(x)
	group := r.groups(dims[1])
	each := 1 + int64(r.IntN(3))
	w := r.window(dims[2:])
	attrs := w.attrs(r)
	spatial := len(dims) - 2
	if group != 1 {
		attrs["group"] = ir.IntAttr(group)
	}
	if r.one(2) {
		attrs["kernel_shape"] = ir.IntsAttr(w.kernel...)
	}
	if r.one(4) {
		extra := make([]int64, spatial)
		for i := range extra {
			extra[i] = int64(r.IntN(int(max(w.strides[i], w.dilations[i]))))
		}
		attrs["output_padding"] = ir.IntsAttr(extra...)
	} else if r.one(5) {
		shape := make([]int64, spatial)
		for i := range shape {
			full := (dims[i+2]-1)*w.strides[i] + (w.kernel[i]-1)*w.dilations[i] + 1
			shape[i] = max(1, full-int64(r.IntN(3)))
		}
		attrs["output_shape"] = ir.IntsAttr(shape...)
		delete(attrs, "pads")
		if attrs["auto_pad"].S == "VALID" {
			delete(attrs, "auto_pad")
		}
	}
	shape := append([]int64{dims[1], each}, w.kernel...)
	in := []*ir.Value{x, r.parameter(r.weights(x.DType, ir.Count(shape[1:]), shape...))}
	if r.one(2) {
		in = append(in, r.parameter(r.weights(x.DType, 1, each*group)))
	}
	r.node("ConvTranspose", attrs, in...)
}

// poolAttrs draws the attributes of a pool of x.
func (r *generator) poolAttrs(op string, x *ir.Value) ir.Attrs {
	w := r.window(dimsOf(x)[2:])
	n := len(w.kernel)
	for i, k := range w.kernel {
		w.pads[i], w.pads[n+i] = min(w.pads[i], k-1), min(w.pads[n+i], k-1)
	}
	attrs := w.attrs(r)
	attrs["kernel_shape"] = ir.IntsAttr(w.kernel...)
	if r.one(3) {
		attrs["ceil_mode"] = ir.IntAttr(1)
	}
	if op == "AveragePool" && r.one(3) {
		attrs["count_include_pad"] = ir.IntAttr(1)
	}
	return attrs
}

func growMaxPool(r *generator) {
	x := r.image()
	attrs := r.poolAttrs("MaxPool", x)
	outs := 1
	if r.one(4) {
		outs = 2
		if r.one(3) {
			attrs["storage_order"] = ir.IntAttr(1)
		}
	}
	r.nodes("", "MaxPool", outs, attrs, x)
}

func growLpPool(r *generator) {
	x := r.image()
	attrs := r.poolAttrs("LpPool", x)
	if r.one(2) {
		attrs["p"] = ir.IntAttr(int64(1 + r.IntN(3)))
	}
	r.node("LpPool", attrs, x)
}

func growAveragePool(r *generator) {
	x := r.image()
	r.node("AveragePool", r.poolAttrs("AveragePool", x), x)
}
