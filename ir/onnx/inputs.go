package onnx

import (
	"fmt"
	"strings"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/onnx/onnxpb"
)

// typeOf reads a declared tensor type. A type that is left out is the zero declared, without an error. With an error,
// the parts that could be read are still valid.
func typeOf(pb *onnxpb.TypeProto) (t declared, err error) {
	switch v := pb.GetValue().(type) {
	case nil:
		return declared{}, nil
	case *onnxpb.TypeProto_TensorType:
		if t.dtype, err = parseDType(v.TensorType.GetElemType()); t.dtype == ir.String {
			t.dtype, t.text = ir.Int64, true
		}
		if v.TensorType.Shape != nil {
			var shapeErr error
			if t.shape, shapeErr = parseShape(v.TensorType.Shape); err == nil {
				err = shapeErr
			}
		}
		return t, err
	case *onnxpb.TypeProto_SequenceType:
		return declared{}, errDType{"sequence"}
	case *onnxpb.TypeProto_MapType:
		return declared{}, errDType{"map"}
	case *onnxpb.TypeProto_OptionalType:
		return declared{}, errDType{"optional"}
	case *onnxpb.TypeProto_SparseTensorType:
		return declared{}, errDType{"sparse tensor"}
	}
	return declared{}, errDType{"opaque"}
}

// unnamed stands for an extent that the model neither gives nor names, until nameDims names it.
var unnamed = ir.Sym("")

// unknownExtent is what some exporters, such as Paddle's, write for an extent that they do not know.
const unknownExtent = -1

// anonymous are the names that exporters write for every extent that they do not know. Two extents of such a name have
// nothing to do with each other.
var anonymous = map[string]bool{
	"": true, "?": true, "-1": true, "None": true, "none": true, "unk": true, "unknown": true, "dynamic": true,
}

func parseShape(pb *onnxpb.TensorShapeProto) (ir.Shape, error) {
	if len(pb.Dim) > maxRank {
		return nil, fmt.Errorf("the rank is %d, at most %d is supported", len(pb.Dim), maxRank)
	}
	s := make(ir.Shape, len(pb.Dim))
	consts := []int64{}
	for i, d := range pb.Dim {
		switch v := d.GetValue().(type) {
		case *onnxpb.TensorShapeProto_Dimension_DimValue:
			if s[i] = ir.D(v.DimValue); v.DimValue == unknownExtent {
				s[i] = unnamed
				continue
			}
			consts = append(consts, v.DimValue)
		case *onnxpb.TensorShapeProto_Dimension_DimParam:
			if s[i] = ir.Sym(v.DimParam); anonymous[v.DimParam] {
				s[i] = unnamed
			}
		default:
			s[i] = unnamed
		}
	}
	if _, err := countElems(consts); err != nil {
		return nil, err
	}
	return s, nil
}

// nameDims names the unnamed extents of an input after the input and the axis: x_dim_0.
func nameDims(s ir.Shape, input string) {
	for i, d := range s {
		if d.Equal(unnamed) {
			s[i] = ir.Sym(fmt.Sprintf("%s_dim_%d", input, i))
		}
	}
}

// plainSymbol returns the name of a dim that is a single symbol; ok is false for other dims.
func plainSymbol(d ir.Dim) (string, bool) {
	set := map[string]bool{}
	d.Symbols(set)
	if len(set) != 1 {
		return "", false
	}
	name := sortedKeys(set)[0]
	return name, d.Equal(ir.Sym(name))
}

// resolveExpressions turns names of symbols into expressions. ONNX has only names for symbolic extents, but exporters
// write expressions into them, such as "2*seq + 1". A name is taken for an expression if all symbols in it are extents
// of inputs; otherwise it stays a name, as "batch-size" must.
func resolveExpressions(s ir.Shape, symbols map[string]bool) {
	for i, d := range s {
		name, ok := plainSymbol(d)
		if !ok || symbols[name] {
			continue
		}
		e, err := ir.ParseDim(strings.ReplaceAll(name, " ", ""))
		if err != nil {
			continue
		}
		used := map[string]bool{}
		e.Symbols(used)
		known := len(used) > 0
		for u := range used {
			known = known && symbols[u]
		}
		if known {
			s[i] = e
		}
	}
}

// modelInput is an input of the main graph that has no initializer.
type modelInput struct {
	name string
	typ  declared
	bad  bool // its type was refused; the input is imported with the part of the type that is known
	// value is the constant to which Options.Bind binds the input, nil if it does not. The graph then has a constant in
	// place of the input.
	value *ir.Tensor
	of    string  // the sequence of which it is a tensor, "" for none
	given []int64 // its shape by Options.Shapes or Options.Bind, nil if they do not say it; -1 keeps the model's extent
}

// readInputs reads the types of the main graph's inputs and applies the options to them.
func (im *importer) readInputs(pb *onnxpb.GraphProto, initialized map[string]bool) []modelInput {
	var list []modelInput
	for _, v := range pb.Input {
		if initialized[v.GetName()] {
			continue
		}
		if elem, ok := elementType(v.Type); ok {
			for i := range im.lengthOf(v.GetName()) {
				list = append(list, im.readInput(modelInput{name: elementName(v.GetName(), i), of: v.GetName()}, elem))
			}
			continue
		}
		if n, given := im.opts.Dims[v.GetName()]; given && n == 0 && heldType(v.Type) != v.Type {
			im.lengths[v.GetName()] = true
			continue
		}
		list = append(list, im.readInput(modelInput{name: v.GetName()}, heldType(v.Type)))
	}
	symbols := map[string]bool{}
	for _, in := range list {
		for _, d := range in.typ.shape {
			if name, ok := plainSymbol(d); ok && isSymbolName(name) {
				symbols[name] = true
			}
		}
	}
	for _, in := range list {
		resolveExpressions(in.typ.shape, symbols)
	}
	im.applyBind(list)
	im.applyShapes(list)
	im.untie(list)
	im.applyDims(list)
	im.requireStatic(list)
	return list
}

// readInput reads the type of an input.
func (im *importer) readInput(in modelInput, pb *onnxpb.TypeProto) modelInput {
	var err error
	if in.typ, err = typeOf(pb); err == nil && in.typ.dtype == ir.Invalid {
		err = fmt.Errorf("its type is missing")
	}
	if err != nil {
		in.bad = true
		im.portf(typeID(err), inputPort(in.name), "", "%v", err)
	}
	nameDims(in.typ.shape, in.name)
	return in
}

// isSymbolName reports whether the name can be a symbol in an expression.
func isSymbolName(name string) bool { return ir.Sym(name).String() == name }

func inputPort(name string) string { return fmt.Sprintf("input %q", name) }

// typeID is the diagnostic's id for an error of typeOf or tensorReader.read.
func typeID(err error) string {
	if _, ok := err.(errDType); ok {
		return "unsupported-dtype"
	}
	return "bad-type"
}

// applyShapes applies Options.Shapes. Where the model has a symbol, the given extent binds the symbol in all inputs. If
// shapes are given that have several extents for one symbol, each input gets its own extent: exporters give one name to
// extents that have nothing to do with each other.
func (im *importer) applyShapes(list []modelInput) {
	for _, name := range sortedKeys(im.opts.Shapes) {
		if in := im.inputNamed(list, name, "the model has no such input"); in != nil {
			im.applyShape(in, im.opts.Shapes[name])
		}
	}
}

// inputNamed finds the input that an option names. If there is none, it reports problem together with the valid names,
// and returns nil.
func (im *importer) inputNamed(list []modelInput, name, problem string) *modelInput {
	var valid []string
	for i := range list {
		if list[i].name == name {
			return &list[i]
		}
		valid = append(valid, list[i].name)
	}
	im.portf("unknown-input", inputPort(name), "the inputs are: "+orNone(valid), "%s", problem)
	return nil
}

// applyShape applies the shape that an option gives to an input; -1 keeps the model's extent.
func (im *importer) applyShape(in *modelInput, want []int64) {
	if in.typ.shape == nil {
		in.typ.shape = make(ir.Shape, len(want))
		for i := range want {
			in.typ.shape[i] = unnamed
		}
		nameDims(in.typ.shape, in.name)
	}
	if len(want) != len(in.typ.shape) {
		im.portf("bad-shape", inputPort(in.name), "", "the shape %v has rank %d, the model wants %v", want, len(want),
			in.typ.shape)
		return
	}
	if _, err := countElems(replaceOpen(want)); err != nil {
		im.portf("bad-shape", inputPort(in.name), "", "the shape %v: %v", want, err)
		return
	}
	for i, n := range want {
		if n < 0 {
			continue
		}
		name, ok := plainSymbol(in.typ.shape[i])
		if !ok {
			in.typ.shape[i] = ir.D(n)
			continue
		}
		if old, bound := im.bind[name]; bound && old != n {
			im.untied[name] = true
		}
		im.bind[name] = n
	}
	in.given = want
}

// untie replaces symbols for which the options give several extents by these, each in its input. Inputs whose shape is
// not given keep the symbol.
func (im *importer) untie(list []modelInput) {
	for _, in := range list {
		for i, n := range in.given {
			if name, ok := plainSymbol(in.typ.shape[i]); ok && im.untied[name] && n >= 0 {
				in.typ.shape[i] = ir.D(n)
			}
		}
	}
	for name := range im.untied {
		delete(im.bind, name)
	}
}

// replaceOpen replaces -1 by 1, so that countElems accepts it.
func replaceOpen(dims []int64) []int64 {
	out := append([]int64{}, dims...)
	for i, d := range out {
		if d == -1 {
			out[i] = 1
		}
	}
	return out
}

// applyDims applies Options.Dims, and the symbols that applyShapes has bound, to the inputs.
func (im *importer) applyDims(list []modelInput) {
	symbols := map[string]bool{}
	for _, in := range list {
		for _, d := range in.typ.shape {
			d.Symbols(symbols)
		}
	}
	im.model.Dims = sortedKeys(symbols)
	for _, name := range sortedKeys(im.opts.Dims) {
		n := im.opts.Dims[name]
		old, bound := im.bind[name]
		switch {
		case im.lengths[name]:
		case !symbols[name]:
			im.errorf("unknown-dim", "its dims are: "+orNone(im.model.Dims),
				"the inputs of the model have no symbolic dim %q", name)
		case n < 0 || n > maxDim:
			im.errorf("bad-dim", "", "dim %q cannot be %d", name, n)
		case bound && old != n:
			im.errorf("dim-conflict", "", "dim %q is bound to %d, but an input's shape makes it %d", name, n, old)
		default:
			im.bind[name] = n
		}
	}
	for _, in := range list {
		im.bindShape(in.typ.shape)
		if consts, ok := in.typ.shape.Consts(); ok {
			if _, err := countElems(consts); err != nil && !in.bad {
				im.portf("bad-shape", inputPort(in.name), "", "with the dims bound: %v", err)
			}
		}
	}
}

func (im *importer) bindShape(s ir.Shape) {
	for i, d := range s {
		s[i] = d.Bind(im.bind)
	}
}

// requireStatic reports the dims that are not bound, if Options.RequireStatic is set.
func (im *importer) requireStatic(list []modelInput) {
	if !im.opts.RequireStatic {
		return
	}
	users := map[string][]string{}
	for _, in := range list {
		if in.typ.shape == nil && !in.bad {
			im.portf("unknown-rank", inputPort(in.name), "give its shape, e.g. --shape "+in.name+"=1x3x224x224",
				"the model does not say the rank of this input")
		}
		symbols := map[string]bool{}
		for _, d := range in.typ.shape {
			d.Symbols(symbols)
		}
		for _, s := range sortedKeys(symbols) {
			users[s] = append(users[s], fmt.Sprintf("%s%v", in.name, in.typ.shape))
		}
	}
	for _, s := range sortedKeys(users) {
		im.add(&diag.Diagnostic{
			ID: "unbound-dim", Message: fmt.Sprintf("the symbolic dim %q of %s is not bound", s,
				strings.Join(users[s], ", ")),
			Help: fmt.Sprintf("bind it, e.g. --dim %s=1", s),
		})
	}
}

// orNone lists names in a message: "a, b", "none", or the first 20 and the number of the others.
func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	const most = 20
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}
