package onnx

import (
	"maps"
	"path/filepath"
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/rammerc/rammerc/ir/onnx/onnxpb"
)

// DataFiles lists the files of external data that the model at path names, as paths below its folder, in order. Names
// that lead elsewhere, which Load refuses, are left out.
func DataFiles(path string) ([]string, error) {
	data, err := readModel(path)
	if err != nil {
		return nil, failure(path, "cannot-read", err.Error(), "")
	}
	pb, err := decode(path, data)
	if err != nil {
		return nil, err
	}
	found := map[string]bool{}
	eachTensor(pb, func(t *onnxpb.TensorProto) {
		if x, err := parseExternal(t.ExternalData); err == nil && filepath.IsLocal(x.location) {
			found[x.location] = true
		}
	})
	return slices.Sorted(maps.Keys(found)), nil
}

// eachTensor calls visit for every tensor in a message: initializers, those of attributes, and those of subgraphs.
func eachTensor(m proto.Message, visit func(*onnxpb.TensorProto)) {
	if t, ok := m.(*onnxpb.TensorProto); ok {
		visit(t)
		return
	}
	m.ProtoReflect().Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Kind() != protoreflect.MessageKind || f.IsMap():
		case f.IsList():
			for i := range v.List().Len() {
				eachTensor(v.List().Get(i).Message().Interface(), visit)
			}
		default:
			eachTensor(v.Message().Interface(), visit)
		}
		return true
	})
}
