package main

import (
	"google.golang.org/protobuf/proto"

	"github.com/rammerc/rammerc/ir/onnx/onnxpb"
)

// customModel has three operators of a user's, for which it has no functions: a softmax of rows, the transpose of a
// matrix, and a histogram of numbers. Operators of ONNX are around them.
func customModel() []byte {
	mine := func(n *onnxpb.NodeProto) *onnxpb.NodeProto {
		n.Domain = proto.String("my.ops")
		return n
	}
	bins := &onnxpb.AttributeProto{Name: proto.String("bins"), Type: onnxpb.AttributeProto_INT.Enum(), I: proto.Int64(16)}
	m := model(ports(port("x", float32s, fixed(6, 70)...), port("i", int32s, fixed(300)...)),
		ports(port("y", float32s, fixed(70, 6)...), port("counts", int32s, fixed(16)...)),
		node("before", "Neg", []string{"x"}, []string{"n"}),
		mine(node("rows", "RowSoftmax", []string{"n"}, []string{"s"})),
		mine(node("turned", "Turn", []string{"s"}, []string{"t"})),
		node("behind", "Sqrt", []string{"t"}, []string{"y"}),
		mine(node("counted", "Histogram", []string{"i"}, []string{"counts"}, bins)))
	m.OpsetImport = append(m.OpsetImport, &onnxpb.OperatorSetIdProto{Domain: proto.String("my.ops"), Version: proto.Int64(1)})
	return encode(m)
}

// leavingModel has one operator of the user's, of 200 numbers.
func leavingModel() []byte {
	n := node("sums", "BlockSums", []string{"x"}, []string{"y"})
	n.Domain = proto.String("my.ops")
	m := model(ports(port("x", float32s, fixed(200)...)), ports(port("y", float32s, fixed(200)...)), n)
	m.OpsetImport = append(m.OpsetImport, &onnxpb.OperatorSetIdProto{Domain: proto.String("my.ops"), Version: proto.Int64(1)})
	return encode(m)
}
