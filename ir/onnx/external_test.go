package onnx_test

import (
	"crypto/sha1"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/ir/onnx"
	"github.com/rammerc/rammerc/ir/onnx/onnxpb"
)

// external is the tensor w, float32[2], whose elements are in the place that kv ("location", "w.bin", …) names.
func external(name string, kv ...string) *onnxpb.TensorProto {
	t := &onnxpb.TensorProto{
		Name: proto.String(name), DataType: proto.Int32(1), Dims: []int64{2},
		DataLocation: onnxpb.TensorProto_EXTERNAL.Enum(),
	}
	for i := 0; i < len(kv); i += 2 {
		t.ExternalData = append(t.ExternalData, &onnxpb.StringStringEntryProto{Key: &kv[i], Value: &kv[i+1]})
	}
	return t
}

// TestExternalData loads a model whose weights are in another file, named in ways that are right, wrong or hostile.
//
// Long: a table of cases, and the files that they need.
func TestExternalData(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "model")
	data := []byte{0, 0, 0, 0, 0, 0, 128, 63, 0, 0, 0, 64} // 0, 1, 2
	write := func(path string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(dir, "w.bin"))
	write(filepath.Join(dir, "sub", "w.bin"))
	write(filepath.Join(parent, "secret.bin"))
	for link, to := range map[string]string{
		"inside.bin": "w.bin", "outside.bin": "../secret.bin", "absolute.bin": filepath.Join(parent, "secret.bin"),
		"up": "..",
	} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Skipf("no symbolic links here: %v", err)
		}
	}
	sum := fmt.Sprintf("%x", sha1.Sum(data))
	for _, c := range []struct {
		kv   []string
		want string // in the error
	}{
		{[]string{"location", "w.bin", "offset", "4", "length", "8"}, ""},
		{[]string{"location", "w.bin", "offset", "4"}, ""},
		{[]string{"location", "sub/w.bin", "offset", "4"}, ""},
		{[]string{"location", "sub/../w.bin", "offset", "4"}, ""},
		{[]string{"location", "./w.bin", "offset", "4", "checksum", sum}, ""},
		{[]string{"location", "inside.bin", "offset", "4"}, ""},
		{[]string{"location", "none.bin"}, "no such file"},
		{[]string{"location", "sub"}, "not a regular file"},
		{[]string{"location", "../secret.bin"}, "leaves the model's folder"},
		{[]string{"location", "sub/../../secret.bin"}, "leaves the model's folder"},
		{[]string{"location", filepath.Join(parent, "secret.bin")}, "leaves the model's folder"},
		{[]string{"location", "outside.bin"}, "leaves the model's folder"},
		{[]string{"location", "absolute.bin"}, "leaves the model's folder"},
		{[]string{"location", "up/secret.bin"}, "leaves the model's folder"},
		{[]string{"location", "w.bin", "offset", "8"}, "too short"},
		{[]string{"location", "w.bin", "offset", "9223372036854775807"}, "too short"},
		{[]string{"location", "w.bin", "offset", "-4"}, "not a byte count"},
		{[]string{"location", "w.bin", "offset", "x"}, "not a byte count"},
		{[]string{"location", "w.bin", "length", "4"}, "length is 4"},
		{[]string{"location", "w.bin", "checksum", "00"}, "SHA-1"},
		{nil, "without a location"},
	} {
		m := newModel(17).out("y float32[2]").init(external("w", c.kv...)).node("y = Identity(w)")
		path := filepath.Join(dir, "m.onnx")
		if err := os.WriteFile(path, m.bytes(t), 0o666); err != nil {
			t.Fatal(err)
		}
		got, err := onnx.Load(path, onnx.Options{})
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%v: %v", c.kv, err)
		case c.want == "":
			if w := got.Graph.Consts[0].Const.Data; !reflect.DeepEqual(w, []float32{1, 2}) {
				t.Errorf("%v: got %v", c.kv, w)
			}
		case errorIDs(t, err) != "external-data" || !strings.Contains(err.Error(), c.want) ||
			!strings.Contains(err.Error(), `initializer "w"`):
			t.Errorf("%v: got %v, want external-data with %q", c.kv, err, c.want)
		}
	}
}

// A file that is missing is one error, however many tensors lie in it; another file is another.
func TestMissingFileIsOneError(t *testing.T) {
	m := newModel(17).out("y float32[2]").init(external("a", "location", "none.bin")).
		init(external("b", "location", "none.bin", "offset", "8")).init(external("c", "location", "other.bin")).
		node("s = Add(a,b)").node("y = Add(s,c)")
	path := filepath.Join(t.TempDir(), "m.onnx")
	if err := os.WriteFile(path, m.bytes(t), 0o666); err != nil {
		t.Fatal(err)
	}
	_, err := onnx.Load(path, onnx.Options{})
	list := diag.All(err)
	if len(list) != 2 || !strings.Contains(list[0].Message, "none.bin") || !strings.Contains(list[1].Message, "other.bin") {
		t.Errorf("%v", err)
	}
}

// TestExternalOverlap has many tensors with the same range of a file, which is allowed, and many whose ranges overlap,
// which is not.
func TestExternalOverlap(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "w.bin"), make([]byte, 4096), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, step := range []int{0, 4} {
		m := newModel(17).out("y").node("y = Identity(w0)")
		for i := range 100 {
			w := external(fmt.Sprintf("w%d", i), "location", "w.bin", "offset", fmt.Sprint(i*step))
			w.Dims = []int64{512}
			m.init(w)
		}
		_, err := onnx.Parse("m.onnx", m.bytes(t), dir, onnx.Options{})
		if (err != nil) != (step > 0) || err != nil && !strings.Contains(err.Error(), "overlap") {
			t.Errorf("step %d: %.300v", step, err)
		}
	}
}

func TestExternalWithoutFolder(t *testing.T) {
	m := newModel(17).out("y").init(external("w", "location", "w.bin")).node("y = Identity(w)")
	if _, err := m.parse(t, onnx.Options{}); errorIDs(t, err) != "external-data" {
		t.Errorf("got %v", err)
	}
}
