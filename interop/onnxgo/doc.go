// Package onnxgo is a back end of onnx-go that compiles the model with rammerc and runs it on the best engine at hand: a
// library on a GPU, else the same library on the CPU emulator, else the evaluator.
//
//	b := onnxgo.New(onnxgo.Model(data))
//	defer b.Close()
//	m := onnx.NewModel(b)
//	if err := m.UnmarshalBinary(data); err != nil { … }
//	if err := m.SetInput(0, input); err != nil { … }
//	if err := b.Run(); err != nil { … }
//	outputs, err := m.GetOutputTensors()
//
// onnx-go hands a back end less than the file has. It tells neither the version of the operator set nor the domains of
// operators, leaves extents without a number out of shapes, and refuses external data and subgraphs itself. With Model the
// back end imports the file's bytes itself, and only inputs and outputs pass through onnx-go. Without, it builds a model
// of what onnx-go has decoded; the version must be given by Opset then, since operators changed their meaning.
package onnxgo
