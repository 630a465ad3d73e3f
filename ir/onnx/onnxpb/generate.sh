#!/bin/sh
# Generates onnx-ml.pb.go from onnx-ml.proto, with another protobuf package and file name; see gen.go.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/rammerc"
sed 's/^package onnx;/package rammerc.onnx;/' onnx-ml.proto >"$folder/rammerc/onnx-ml.proto"
protoc -I "$folder" --plugin=protoc-gen-go="$(go tool -n protoc-gen-go)" --go_out="$folder" --go_opt=paths=source_relative \
  --go_opt=Mrammerc/onnx-ml.proto=github.com/rammerc/rammerc/ir/onnx/onnxpb rammerc/onnx-ml.proto
mv "$folder/rammerc/onnx-ml.pb.go" .
