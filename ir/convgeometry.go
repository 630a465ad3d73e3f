package ir

import (
	"errors"
	"fmt"
)

// Geometry says where the windows of a Conv, ConvTranspose, MaxPool, AveragePool or LpPool lie on the spatial axes,
// which are those behind batch and channel. auto_pad and all defaults are resolved. Each list has one entry for each
// spatial axis, and all entries count elements. Element k of window o is at o·Strides + k·Dilations - PadBegin of the
// input (for ConvTranspose, exchange input and output).
type Geometry struct {
	Kernel    []int64
	Strides   []int64
	Dilations []int64
	PadBegin  []int64 // zeros before the input; for ConvTranspose, elements cut off the beginning of the output
	PadEnd    []int64 // the same at the end
	In        []int64 // extents of the input
	Out       []int64 // extents of the output
}

// ConvGeometry resolves the windows of n, whose inputs must have constant shapes. The rules are those of ONNX's Conv,
// ConvTranspose and MaxPool. The error says which attribute is wrong or which shape is not constant.
func ConvGeometry(n *Node) (*Geometry, error) {
	op := LookupOp(n.Domain, n.Op)
	if op == nil || n.Input(0) == nil {
		return nil, errors.New("not a convolution or pool")
	}
	w, err := readWindow(op, n)
	if err != nil {
		return nil, err
	}
	in, ok := n.Input(0).Shape.Consts()
	if !ok || w.kernel == nil {
		return nil, fmt.Errorf("the shape %v is not constant", n.Input(0).Shape)
	}
	g := &Geometry{Kernel: w.kernel, Strides: w.strides, Dilations: w.dilations}
	for i := range w.kernel {
		g.In = append(g.In, in[i+2])
		begin, end := w.pads(i, in[i+2])
		g.PadBegin = append(g.PadBegin, begin)
		g.PadEnd = append(g.PadEnd, end)
		out, _ := w.extent(i, D(in[i+2])).Const()
		g.Out = append(g.Out, out)
	}
	return g, nil
}

// maxWindow bounds window attributes, so that their products stay in int64.
const maxWindow = 1 << 24

// window holds the attributes of a convolution or pool, checked and with defaults filled in. Lists have one entry for
// each spatial axis.
type window struct {
	transposed    bool
	ceil          bool
	autoPad       string
	kernel        []int64 // nil when unknown
	strides       []int64
	dilations     []int64
	begin, end    []int64 // the attribute pads; used only where autoPad is NOTSET
	outputPadding []int64 // of ConvTranspose: elements added at the end of the output
	outputShape   []int64 // of ConvTranspose: spatial extents; nil when not given
}

// attrError is an error of one attribute. Inference reports it at the attribute, other errors at an input.
type attrError struct{ attr, message string }

func (e *attrError) Error() string { return "attribute " + e.attr + ": " + e.message }

// readWindow reads the window of n; its first input's rank must be known.
func readWindow(op *Op, n *Node) (*window, error) {
	spatial := len(n.Input(0).Shape) - 2
	if spatial < 1 {
		return nil, fmt.Errorf("the shape %v has no spatial axis", n.Input(0).Shape)
	}
	w := &window{
		transposed: op.Name == "ConvTranspose",
		ceil:       op.resolve(n, "ceil_mode").I != 0,
		autoPad:    op.resolve(n, "auto_pad").S,
	}
	var err error
	read := func(name string, count int, def, least int64) []int64 {
		list, e := windowInts(op.resolve(n, name).Ints, name, count, def, least)
		if err == nil {
			err = e
		}
		return list
	}
	w.strides = read("strides", spatial, 1, 1)
	w.dilations = read("dilations", spatial, 1, 1)
	pads := read("pads", 2*spatial, 0, 0)
	w.outputPadding = read("output_padding", spatial, 0, 0)
	if _, ok := n.Attrs["output_shape"]; ok && w.transposed {
		w.outputShape = read("output_shape", spatial, 0, 0)
	}
	if n.HasAttr("kernel_shape") {
		w.kernel = read("kernel_shape", spatial, 1, 1)
	}
	if err != nil {
		return nil, err
	}
	w.begin, w.end = pads[:spatial], pads[spatial:]
	if op.Kind == KindConv && n.Input(1) != nil {
		return w, w.kernelOf(n.Input(1).Shape)
	}
	return w, nil
}

// windowInts checks a list attribute: it must have count values from least to maxWindow. An absent or empty list gives
// count times def.
func windowInts(list []int64, name string, count int, def, least int64) ([]int64, error) {
	if len(list) == 0 {
		list = make([]int64, count)
		for i := range list {
			list[i] = def
		}
	}
	if len(list) != count {
		return nil, &attrError{name, fmt.Sprintf("there are %d values, wanted %d", len(list), count)}
	}
	for _, v := range list {
		if v < least || v > maxWindow {
			return nil, &attrError{name, fmt.Sprintf("the value %d is outside %d to %d", v, least, maxWindow)}
		}
	}
	return list, nil
}

// kernelOf takes the kernel from the weight's shape [M, C/group, kernel…], with which kernel_shape must agree.
func (w *window) kernelOf(weight Shape) error {
	if weight == nil {
		return nil
	}
	if len(weight) != len(w.strides)+2 {
		return fmt.Errorf("the weight's shape %v has rank %d, wanted %d", weight, len(weight), len(w.strides)+2)
	}
	kernel, ok := weight[2:].Consts()
	if !ok {
		return nil
	}
	for i, k := range kernel {
		if w.kernel != nil && w.kernel[i] != k {
			return &attrError{"kernel_shape", fmt.Sprintf("the kernel is %v, the weight's shape is %v", w.kernel,
				weight)}
		}
		if k < 1 || k > maxWindow {
			return fmt.Errorf("the weight's shape %v has a kernel that is empty or too large", weight)
		}
	}
	w.kernel = kernel
	return nil
}

// reach is how many elements a window spans on axis i, the gaps of a dilation included.
func (w *window) reach(i int) int64 { return (w.kernel[i]-1)*w.dilations[i] + 1 }

// extent is the output's extent on spatial axis i for an input of extent in; the kernel must be known. The formulas are
// those of ONNX's Conv and MaxPool.
func (w *window) extent(i int, in Dim) Dim {
	if w.transposed {
		return w.transposedExtent(i, in)
	}
	stride := D(w.strides[i])
	switch w.autoPad {
	case "SAME_UPPER", "SAME_LOWER":
		return in.CeilDiv(stride)
	case "VALID":
		return in.Sub(D(w.reach(i))).FloorDiv(stride).Add(D(1))
	}
	span := in.Add(D(w.begin[i] + w.end[i] - w.reach(i)))
	if !w.ceil || w.strides[i] == 1 {
		return span.FloorDiv(stride).Add(D(1))
	}
	// ceil_mode adds a last, incomplete window. The standard leaves it out if it would start in the padding at the end.
	return span.CeilDiv(stride).Add(D(1)).Min(in.Add(D(w.begin[i])).CeilDiv(stride))
}

// transposedExtent is extent for ConvTranspose.
func (w *window) transposedExtent(i int, in Dim) Dim {
	switch {
	case w.outputShape != nil:
		return D(w.outputShape[i])
	case w.autoPad == "SAME_UPPER" || w.autoPad == "SAME_LOWER":
		return in.Mul(D(w.strides[i]))
	case w.autoPad == "VALID":
		return w.fullExtent(i, in)
	}
	return w.fullExtent(i, in).Sub(D(w.begin[i] + w.end[i]))
}

// fullExtent is the output extent of a transposed convolution without pads, which cut off the ends of the output.
func (w *window) fullExtent(i int, in Dim) Dim {
	return in.Sub(D(1)).Mul(D(w.strides[i])).Add(D(w.reach(i) + w.outputPadding[i]))
}

// pads are the paddings on axis i for an input of n elements. For SAME_UPPER and SAME_LOWER, and for ConvTranspose with
// output_shape, they follow from the extents of input and output.
func (w *window) pads(i int, n int64) (begin, end int64) {
	same := w.autoPad == "SAME_UPPER" || w.autoPad == "SAME_LOWER"
	var total int64
	switch {
	case w.transposed && (same || w.outputShape != nil):
		full, _ := w.fullExtent(i, D(n)).Const()
		out, _ := w.transposedExtent(i, D(n)).Const()
		total = max(full-out, 0)
	case same:
		out, _ := w.extent(i, D(n)).Const()
		total = max((out-1)*w.strides[i]+w.reach(i)-n, 0)
	case w.autoPad == "VALID":
		return 0, 0
	default:
		return w.begin[i], w.end[i]
	}
	small := total / 2
	if w.smallFirst() {
		return small, total - small
	}
	return total - small, small
}

// smallFirst reports whether the smaller half of an odd padding goes to the beginning.
func (w *window) smallFirst() bool {
	return w.autoPad == "SAME_UPPER"
}
