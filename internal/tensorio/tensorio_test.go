package tensorio

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/rammerc/rammerc/internal/npy"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/onnx/onnxpb"
)

func TestReadWrite(t *testing.T) {
	dir := t.TempDir()
	x := ir.FromSlice(ir.Float32, []float32{1, 2, 3, 4, 5, 6}, 2, 3)
	file := func(name string) string { return filepath.Join(dir, name) }
	if err := WriteNPY(file("x.npy"), x); err != nil {
		t.Fatal(err)
	}
	pb, err := proto.Marshal(&onnxpb.TensorProto{
		Name: proto.String("x"), Dims: x.Dims, DataType: proto.Int32(int32(x.DType.ONNX())), RawData: x.LittleEndian(),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file("x.pb"), pb, 0o666); err != nil {
		t.Fatal(err)
	}
	writeArchive(t, file("one.npz"), "other", x)
	writeArchive(t, file("two.npz"), "x", x, "y", ir.FromSlice(ir.Bool, []bool{true}, 1))
	for _, path := range []string{"x.npy", "x.pb", "one.npz", "two.npz", "two.npz:x"} {
		got, err := Read(file(path), "x", nil)
		if err != nil || !reflect.DeepEqual(got, x) {
			t.Errorf("%s: got %v, %v, want %v", path, got, err, x)
		}
	}
	all, err := ReadAll(file("two.npz"), nil)
	if err != nil || len(all) != 2 || all["y"].DType != ir.Bool {
		t.Errorf("all: got %v, %v", all, err)
	}
	for path, want := range map[string]string{
		"two.npz:z": "x, y", "x.txt": "must end", "none.npy": "no such file", "none.npz:x": "no such file",
	} {
		if _, err := Read(file(path), "x", nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error with %q", path, err, want)
		}
	}
	if _, err := Read(file("two.npz"), "z", nil); err == nil || !strings.Contains(err.Error(), "x, y") {
		t.Errorf("no array z: got %v", err)
	}
}

func writeArchive(t *testing.T, path string, pairs ...any) {
	t.Helper()
	var members []npy.Member
	for i := 0; i < len(pairs); i += 2 {
		a, err := ToArray(pairs[i+1].(*ir.Tensor))
		if err != nil {
			t.Fatal(err)
		}
		members = append(members, npy.Member{Name: pairs[i].(string), Array: a})
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := npy.WriteZip(f, members); err != nil {
		t.Fatal(err)
	}
}

func TestBFloat16(t *testing.T) {
	a, err := ToArray(ir.FromSlice(ir.BFloat16, []uint16{0x3f80, 0xc000}, 2))
	if err != nil || a.DType != "float32" || !reflect.DeepEqual(a.Data, []float32{1, -2}) {
		t.Errorf("got %v, %v", a, err)
	}
}

func TestDigitsReference(t *testing.T) {
	images, err := Read("../../testdata/models/digits_test.npz", "images", nil)
	if err != nil || !reflect.DeepEqual(images.Dims, []int64{297, 1, 8, 8}) {
		t.Errorf("images: %v, %v", images, err)
	}
	logits, err := Read("../../testdata/models/digits_lstm_logits.npy", "", nil)
	if err != nil || !reflect.DeepEqual(logits.Dims, []int64{297, 10}) {
		t.Errorf("logits: %v, %v", logits, err)
	}
}
