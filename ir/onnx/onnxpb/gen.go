// Package onnxpb holds the ONNX protobuf messages, generated from the official schema.
//
// onnx-ml.proto is the file of ONNX 1.22 (IR version 13), unchanged, under its own Apache-2.0 licence
// (see LICENSE.onnx beside it). The messages are registered as rammerc.onnx, not as onnx: Go's protobuf ends a process in
// which two packages register messages of the same name, and other ONNX packages that a program may link, such as onnx-go,
// have taken that one. What is in files does not depend on it.
package onnxpb

//go:generate sh generate.sh
