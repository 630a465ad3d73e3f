package conformance

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/onnx"
	"github.com/rammerc/rammerc/ir/onnx/onnxpb"
)

// port is an input or output of a model as the model declares it. A data set has a file for each.
type port struct {
	name               string
	sequence, optional bool
}

// portsOf are the inputs or outputs that have values in a data set.
func portsOf(list []*onnxpb.ValueInfoProto) []port {
	var out []port
	for _, v := range list {
		p, t := port{name: v.GetName()}, v.GetType()
		if o := t.GetOptionalType(); o != nil {
			p.optional, t = true, o.GetElemType()
		}
		p.sequence = t.GetSequenceType() != nil
		out = append(out, p)
	}
	return out
}

// given are the tensors that a data set has for a port, by the names that they have in the graph: a sequence is called
// NAME[0], NAME[1] and so on.
func (p port) given(file string) (map[string]*ir.Tensor, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	sequence := p.sequence
	if p.optional {
		held := fieldsOf(data, 3)
		if sequence {
			held = fieldsOf(data, 5)
		}
		if len(held) == 0 {
			return nil, nil
		}
		data = held[0]
	}
	parts := [][]byte{data}
	if sequence {
		parts = fieldsOf(data, 3)
	}
	out := map[string]*ir.Tensor{}
	for i, part := range parts {
		_, t, err := onnx.ReadTensorPB(part)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Base(file), err)
		}
		name := p.name
		if sequence {
			name += "[" + strconv.Itoa(i) + "]"
		}
		out[name] = t
	}
	return out, nil
}

// fieldsOf are the messages in a field of a protobuf message: of SequenceProto, whose tensors are field 3, and of
// OptionalProto, whose tensor is field 3 and whose sequence field 5.
func fieldsOf(data []byte, number protowire.Number) [][]byte {
	var out [][]byte
	for len(data) > 0 {
		num, typ, n := protowire.ConsumeTag(data)
		if n < 0 {
			return out
		}
		m := protowire.ConsumeFieldValue(num, typ, data[n:])
		if m < 0 {
			return out
		}
		if num == number && typ == protowire.BytesType {
			part, _ := protowire.ConsumeBytes(data[n:])
			out = append(out, part)
		}
		data = data[n+m:]
	}
	return out
}

// specialise notes what the importer must be told of a model with sequences: how many tensors each input has, and their
// shapes, as a data set has them.
func (t *test) specialise(dir string) error {
	t.dims, t.shapes = map[string]int64{}, map[string][]int64{}
	for i, p := range t.inputs {
		if !p.sequence && !p.optional {
			continue
		}
		found, err := p.given(filepath.Join(dir, fmt.Sprintf("input_%d.pb", i)))
		if err != nil {
			return err
		}
		if p.sequence || len(found) == 0 {
			t.dims[p.name] = int64(len(found))
		}
		for name, x := range found {
			t.shapes[name] = x.Dims
		}
	}
	return nil
}

// fix binds the inputs of a model with sequences that say positions, numbers of turns and the like, as a data set has
// them.
func (t *test) fix(dir string) error {
	for i, p := range t.inputs {
		if p.sequence || p.optional {
			continue
		}
		found, err := p.given(filepath.Join(dir, fmt.Sprintf("input_%d.pb", i)))
		if err != nil {
			return err
		}
		if x := found[p.name]; (x.DType.IsInt() || x.DType == ir.Bool) && x.Len() <= mostBound {
			t.fixed[p.name] = x
		}
	}
	return nil
}

// load imports the model. Where the importer must know an input because sequences depend on it, it gets that of the
// first data set.
func (t *test) load(opt onnx.Options) (*onnx.Model, error) {
	if t.dims != nil {
		opt.Dims = t.dims
		opt.Shapes = with(opt.Shapes, t.shapes)
		opt.Bind = with(opt.Bind, t.fixed)
	}
	m, err := onnx.Parse("model.onnx", t.data, t.Dir, opt)
	if err == nil || t.dims == nil || len(t.fixed) > 0 {
		return m, err
	}
	for _, d := range diag.All(err) {
		if d.ID == "not-constant" {
			if bad := t.fix(t.sets[0]); bad != nil || len(t.fixed) == 0 {
				return m, err
			}
			return t.load(opt)
		}
	}
	return m, err
}

// bound names the inputs that load has bound.
func (t *test) bound() []string { return slices.Sorted(maps.Keys(t.fixed)) }

// with is a with what b has beside it.
func with[T any](a, b map[string]T) map[string]T {
	out := map[string]T{}
	maps.Copy(out, b)
	maps.Copy(out, a)
	return out
}
