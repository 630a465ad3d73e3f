package onnx

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/rammerc/rammerc/ir/onnx/onnxpb"
)

// An empty protobuf message takes two bytes in a file and hundreds in memory. A file may therefore contain
// freeMessages messages and one more for every bytesPerMessage bytes. The messages of real models are larger.
const (
	freeMessages    = 1 << 20
	bytesPerMessage = 8
)

// plausible reports whether the size of data justifies the memory that decoding it takes. For data that is no protobuf
// message it returns true, because the decoder explains that better.
func plausible(data []byte) bool {
	left := freeMessages + len(data)/bytesPerMessage
	countMessages((*onnxpb.ModelProto)(nil).ProtoReflect().Descriptor(), data, &left, 0)
	return left >= 0
}

// countMessages subtracts from left the number of messages inside data, which is a message of type md.
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
		if fd := fields.ByNumber(num); typ == protowire.BytesType && fd != nil &&
			fd.Kind() == protoreflect.MessageKind {
			*left--
			inner, _ := protowire.ConsumeBytes(data[n:])
			countMessages(fd.Message(), inner, left, depth+1)
		}
		data = data[n+m:]
	}
}
