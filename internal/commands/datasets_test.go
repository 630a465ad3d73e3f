package commands

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/rammerc/rammerc/internal/driver"
	"github.com/rammerc/rammerc/internal/engine"
	"github.com/rammerc/rammerc/internal/tensorio"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/onnx/onnxpb"
)

const models = "../../testdata/models/"

// TestVerifyDataSets writes folders as the ONNX project's tests have them.
func TestVerifyDataSets(t *testing.T) {
	dir := t.TempDir()
	images, err := tensorio.Read(models+"digits_test.npz:images", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	logits, err := tensorio.Read(models+"digits_lstm_logits.npy", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	write := func(set int, file string, all *ir.Tensor, row int) {
		n := int(all.Len() / all.Dims[0])
		pb := &onnxpb.TensorProto{
			DataType: proto.Int32(int32(onnxpb.TensorProto_FLOAT)), Dims: append([]int64{1}, all.Dims[1:]...),
			RawData: all.LittleEndian()[4*n*row : 4*n*(row+1)],
		}
		data, err := proto.Marshal(pb)
		if err != nil {
			t.Fatal(err)
		}
		folder := filepath.Join(dir, fmt.Sprintf("test_data_set_%d", set))
		if err := os.MkdirAll(folder, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, file), data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for set := range 3 {
		write(set, "input_0.pb", images, set)
		write(set, "output_0.pb", logits, set)
	}
	o := VerifyOptions{Data: dir}
	o.Path, o.Engine = models+"digits_lstm.onnx", engine.Eval
	r, err := Verify(&driver.Job{}, o)
	if err != nil || r.Samples != 3 || !r.OK || r.Reference != "expected outputs" {
		t.Errorf("%+v, %v", r, err)
	}
	write(1, "output_0.pb", logits, 5)
	if r, err = Verify(&driver.Job{}, o); driver.ExitCode(err) != driver.ExitCheck || r == nil || r.OK {
		t.Errorf("another image's logits: %+v, %v", r, err)
	}
	o.Data = filepath.Join(dir, "test_data_set_0")
	if r, err = Verify(&driver.Job{}, o); err != nil || r.Samples != 1 {
		t.Errorf("one set: %+v, %v", r, err)
	}
}
