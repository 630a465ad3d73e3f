package difftest

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// selectionGrowers make, among others, values whose extents depend on data. Such values can only be outputs.
var selectionGrowers = []grower{
	{"NonZero", func(r *generator) { r.node("NonZero", nil, r.of(nil, 0, 3)) }},
	{"Compress", growCompress},
	{"Unique", growUnique},
	{"NonMaxSuppression", growNonMaxSuppression},
	{"ReverseSequence", growReverseSequence},
	{"EyeLike", growEyeLike},
	{"Det", growDet},
}

func growCompress(r *generator) {
	x := r.of(nil, 1, 3)
	n, attrs := ir.Count(dimsOf(x)), ir.Attrs{}
	if r.one(2) {
		axis := r.axis(rankOf(x))
		n, attrs["axis"] = dimsOf(x)[positive(axis, rankOf(x))], ir.IntAttr(axis)
	}
	cond := r.tensor(ir.Bool, []int64{int64(r.IntN(int(n) + 1))}, false)
	r.node("Compress", attrs, x, r.parameterLike(cond))
}

func growUnique(r *generator) {
	x := r.of([]ir.DType{ir.Float32, ir.Float64, ir.Int64, ir.Int32, ir.Int8}, 0, 3)
	attrs := ir.Attrs{"sorted": ir.IntAttr(int64(r.IntN(2)))}
	if rankOf(x) > 0 && r.one(2) {
		attrs["axis"] = ir.IntAttr(r.axis(rankOf(x)))
	}
	r.nodes("", "Unique", 1+r.IntN(4), attrs, x)
}

func growNonMaxSuppression(r *generator) {
	batches, boxes := int64(1+r.IntN(2)), int64(1+r.IntN(6))
	corners := r.fill(ir.Float32, []int64{batches, boxes, 4}, func() float64 { return 4 * r.Float64() })
	in := []*ir.Value{
		r.parameterLike(corners), r.parameterLike(r.between(ir.Float32, 0, 1, batches, int64(1+r.IntN(2)), boxes)),
		r.constant(filled(ir.Int64, float64(1+r.IntN(4)), 1)),
	}
	if r.one(2) {
		in = append(in, r.constant(filled(ir.Float32, 0.3, 1)))
		if r.one(2) {
			in = append(in, r.constant(filled(ir.Float32, 0.25, 1)))
		}
	}
	r.node("NonMaxSuppression", ir.Attrs{"center_point_box": ir.IntAttr(int64(r.IntN(2)))}, in...)
}

func growReverseSequence(r *generator) {
	x := r.of(nil, 2, 4)
	batch := r.IntN(2)
	attrs := ir.Attrs{"batch_axis": ir.IntAttr(int64(batch)), "time_axis": ir.IntAttr(int64(1 - batch))}
	steps := dimsOf(x)[1-batch]
	if steps == 0 {
		r.refuse("no steps")
	}
	r.node("ReverseSequence", attrs, x, r.parameterLike(r.between(ir.Int64, 1, float64(steps), dimsOf(x)[batch])))
}

func growEyeLike(r *generator) {
	attrs := ir.Attrs{"k": ir.IntAttr(int64(r.IntN(5) - 2))}
	if r.one(2) {
		attrs["dtype"] = ir.IntAttr(r.dtype(nil).ONNX())
	}
	r.node("EyeLike", attrs, r.of(nil, 2, 2))
}

func growDet(r *generator) {
	n := int64(r.IntN(4))
	r.node("Det", nil, r.shaped(oneOf(r, ir.Float32, r.float()), append(r.dims(r.IntN(2)), n, n)...))
}

var signalGrowers = []grower{
	{"DFT", growDFT},
	{"STFT", growSTFT},
	{"HannWindow", func(r *generator) { growWindow(r, "HannWindow") }},
	{"HammingWindow", func(r *generator) { growWindow(r, "HammingWindow") }},
	{"BlackmanWindow", func(r *generator) { growWindow(r, "BlackmanWindow") }},
	{"MelWeightMatrix", growMelWeightMatrix},
}

func growDFT(r *generator) {
	parts := int64(1 + r.IntN(2))
	x := r.shaped(r.float(), append(r.dims(1+r.IntN(2)), parts)...)
	in, attrs := []*ir.Value{x, nil, nil}, ir.Attrs{}
	if r.one(2) {
		in[1] = r.scalar(ir.Int64, float64(1+r.IntN(9)))
	}
	if r.one(2) {
		in[2] = r.scalar(ir.Int64, float64(r.IntN(rankOf(x)-1)))
	}
	switch r.IntN(3) {
	case 0:
		attrs["inverse"] = ir.IntAttr(1)
	case 1:
		if parts == 1 {
			attrs["onesided"] = ir.IntAttr(1)
		}
	}
	for in[len(in)-1] == nil {
		in = in[:len(in)-1]
	}
	r.node("DFT", attrs, in...)
}

func growSTFT(r *generator) {
	n := int64(4 + r.IntN(12))
	x := r.shaped(r.float(), 1+int64(r.IntN(2)), n, 1)
	length := 1 + int64(r.IntN(int(n)))
	in := []*ir.Value{x, r.scalar(ir.Int64, float64(1+r.IntN(4))), nil, r.scalar(ir.Int64, float64(length))}
	if r.one(2) {
		in[2] = r.parameter(r.tensor(x.DType, []int64{length}, false))
	}
	r.node("STFT", ir.Attrs{"onesided": ir.IntAttr(int64(r.IntN(2)))}, in...)
}

func growWindow(r *generator, op string) {
	attrs := ir.Attrs{"periodic": ir.IntAttr(int64(r.IntN(2)))}
	if r.one(2) {
		attrs["output_datatype"] = ir.IntAttr(r.float().ONNX())
	}
	r.node(op, attrs, r.scalar(oneOf(r, indexes...), float64(2+r.IntN(12)))) // with one element it divides by 0
}

func growMelWeightMatrix(r *generator) {
	d := oneOf(r, indexes...)
	r.node("MelWeightMatrix", nil, r.scalar(d, float64(2+r.IntN(6))), r.scalar(d, float64(16+r.IntN(20))),
		r.scalar(d, 8000), r.scalar(ir.Float32, 10), r.scalar(ir.Float32, 4000))
}

// randomGrowers make operators that draw random numbers. They have a seed, so they draw the same numbers each time.
var randomGrowers = []grower{
	{"RandomNormal", func(r *generator) { growRandom(r, "RandomNormal") }},
	{"RandomUniform", func(r *generator) { growRandom(r, "RandomUniform") }},
	{"RandomNormalLike", func(r *generator) { growRandom(r, "RandomNormalLike") }},
	{"RandomUniformLike", func(r *generator) { growRandom(r, "RandomUniformLike") }},
	{"Bernoulli", growBernoulli},
	{"Multinomial", growMultinomial},
}

func (r *generator) seed() ir.Attrs { return ir.Attrs{"seed": ir.FloatAttr(float64(r.IntN(1000)))} }

func growRandom(r *generator, op string) {
	attrs := r.seed()
	if slices.Contains([]string{"RandomNormal", "RandomUniform"}, op) {
		attrs["shape"], attrs["dtype"] = ir.IntsAttr(r.dims(r.IntN(3))...), ir.IntAttr(r.float().ONNX())
		r.node(op, attrs)
		return
	}
	r.node(op, attrs, r.value(r.float(), 0, 3))
}

func growBernoulli(r *generator) {
	attrs := r.seed()
	if r.one(2) {
		attrs["dtype"] = ir.IntAttr(oneOf(r, ir.Float32, ir.Int64, ir.Bool, ir.Float64).ONNX())
	}
	r.node("Bernoulli", attrs, r.node("Sigmoid", nil, r.value(r.float(), 0, 3)))
}

func growMultinomial(r *generator) {
	attrs := r.seed()
	attrs["sample_size"] = ir.IntAttr(1 + int64(r.IntN(4)))
	r.node("Multinomial", attrs, r.value(r.float(), 2, 2))
}
