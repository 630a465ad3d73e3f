package onnx

import (
	"bytes"
	"unicode/utf8"
)

// format is a file format that people give to an ONNX reader by mistake.
type format struct {
	offset int    // of magic in the file
	magic  string // bytes that identify the format
	what   string // its name in messages
	help   string // what the user can do
}

const (
	unpack = "unpack it first"
	export = "export the model to ONNX first"
)

// formats is searched in order, and only for data that could not be decoded: a valid model may begin with the bytes of
// some entries.
var formats = []format{
	{0, "\x1f\x8b", "gzip data", unpack},
	{0, "BZh", "bzip2 data", unpack},
	{0, "\xfd7zXZ\x00", "xz data", unpack},
	{0, "\x28\xb5\x2f\xfd", "zstd data", unpack},
	{0, "PK\x03\x04", "a zip archive (a PyTorch or Keras file?)", export + ", or unpack it"},
	{0, "PK\x05\x06", "an empty zip archive", ""},
	{0, "\x89HDF\r\n\x1a\n", "an HDF5 file (Keras?)", export},
	{4, "TFL3", "a TensorFlow Lite model", export},
	{4, "ORTM", "a model in ONNX Runtime's own format", "use the .onnx file that it was made from"},
	{0, "GGUF", "a GGUF file", export},
	{0, "\x93NUMPY", "a NumPy array", ""},
	{0, "\x80\x02", "a Python pickle (an old PyTorch file?)", export},
	{0, "\x80\x03", "a Python pickle", export},
	{0, "\x80\x04", "a Python pickle", export},
	{0, "\x7fELF", "an ELF program or library", ""},
	{0, "\x89PNG", "a PNG image", ""},
	{0, "version https://git-lfs", "a Git LFS pointer, not the file itself", "fetch it with git lfs pull"},
	{0, "<!DOCTYPE", "an HTML page", "download the file itself"},
	{0, "<html", "an HTML page", "download the file itself"},
	{0, "<?xml", "an XML file (OpenVINO?)", export},
}

// sniff names the format of data that is not an ONNX model; what is "" if it does not know the format.
func sniff(data []byte) (what, help string) {
	if len(data) == 0 {
		return "the file is empty", "export or download the file again"
	}
	for _, f := range formats {
		if len(data) >= f.offset+len(f.magic) && string(data[f.offset:f.offset+len(f.magic)]) == f.magic {
			return f.what, f.help
		}
	}
	if len(data) > 9 && data[8] == '{' && bytes.Equal(data[3:8], make([]byte, 5)) {
		return "a safetensors file: weights without a graph", export
	}
	return sniffText(data)
}

// sniffText recognises kinds of text files; what is "" if data is no text.
func sniffText(data []byte) (what, help string) {
	head := data[:min(len(data), 4096)]
	if !isText(head) {
		return "", ""
	}
	trimmed := bytes.TrimLeft(head, " \t\r\n")
	switch {
	case len(trimmed) == 0:
		return "only white space", ""
	case trimmed[0] == '{' || trimmed[0] == '[':
		return "a JSON text", "a protobuf in binary form is wanted"
	case bytes.HasPrefix(trimmed, []byte("ir_version:")) || bytes.Contains(head, []byte("graph {")):
		return "a protobuf in text form", "convert it to the binary form, e.g. with protoc --encode"
	}
	return "a text file", ""
}

// isText reports whether head is printable UTF-8. A protobuf message is not, because control characters occur early in
// it. A character may be cut off at the end of head.
func isText(head []byte) bool {
	for len(head) > 0 {
		r, n := utf8.DecodeRune(head)
		if r == utf8.RuneError && n == 1 && len(head) >= utf8.UTFMax {
			return false
		}
		if r < ' ' && r != '\n' && r != '\r' && r != '\t' || r == 0x7f {
			return false
		}
		head = head[n:]
	}
	return true
}
