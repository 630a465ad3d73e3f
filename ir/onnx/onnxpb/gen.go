// Package onnxpb holds the ONNX protobuf messages, generated from the official schema.
//
// onnx-ml.proto is the file of ONNX 1.22 (IR version 13), unchanged, under its own Apache-2.0 licence
// (see LICENSE.onnx beside it).
package onnxpb

//go:generate sh -c "protoc --plugin=protoc-gen-go=$(go tool -n protoc-gen-go) --go_out=. --go_opt=paths=source_relative --go_opt=Monnx-ml.proto=github.com/rammerc/rammerc/ir/onnx/onnxpb onnx-ml.proto"
