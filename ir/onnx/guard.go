package onnx

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/rammerc/rammerc/ir/onnx/onnxpb"
)

// An empty message takes two bytes of a file and hundreds in memory. Models consist of larger parts;
// data with more messages than this is not decoded.
const (
	freeMessages    = 1 << 20
	bytesPerMessage = 8
)

// plausible reports whether decoding data takes an amount of memory that its size justifies. Data that
// is no protobuf message at all is left to the decoder.
func plausible(data []byte) bool {
	left := freeMessages + len(data)/bytesPerMessage
	countMessages((*onnxpb.ModelProto)(nil).ProtoReflect().Descriptor(), data, &left, 0)
	return left >= 0
}

// countMessages subtracts the messages inside data, a message of type md, from left.
func countMessages(md protoreflect.MessageDescriptor, data []byte, left *int, depth int) {
	if depth > maxNesting {
		return // the decoder refuses it
	}
	fields := md.Fields()
	for len(data) > 0 && *left >= 0 {
		num, typ, n := protowire.ConsumeTag(data)
		if n < 0 {
			return
		}
		m := protowire.ConsumeFieldValue(num, typ, data[n:])
		if m < 0 {
			return
		}
		if fd := fields.ByNumber(num); typ == protowire.BytesType && fd != nil && fd.Kind() == protoreflect.MessageKind {
			*left--
			inner, _ := protowire.ConsumeBytes(data[n:])
			countMessages(fd.Message(), inner, left, depth+1)
		}
		data = data[n+m:]
	}
}
