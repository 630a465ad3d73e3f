package driver

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/tensorio"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/onnx/onnxpb"
)

func TestSeriesIsCutAlongTheFirstAxis(t *testing.T) {
	dir := t.TempDir()
	files := 0
	write := func(name string, dims ...int64) string {
		files++
		x := ir.NewTensor(ir.Int32, dims...)
		for i := range ir.Slice[int32](x) {
			ir.Slice[int32](x)[i] = int32(i)
		}
		path := filepath.Join(dir, fmt.Sprintf("%s%d.npy", name, files))
		if err := tensorio.WriteNPY(path, x); err != nil {
			t.Fatal(err)
		}
		return name + "=" + path
	}
	s := &subject{
		inputs:  []port{{"x", ir.Int32, []int64{2, 3}}, {"k", ir.Int32, []int64{5}}},
		outputs: []port{{"y", ir.Int32, []int64{2}}},
	}
	x, k, y := write("x", 7, 3), write("k", 5), write("y", 7)
	set, err := series(s, []string{x, k}, []string{y})
	if err != nil {
		t.Fatal(err)
	}
	if set.n != 4 {
		t.Fatalf("%d inferences of 7 samples by 2", set.n)
	}
	for i, want := range []string{
		"[0 1 2 3 4 5] [0 1 2 3 4] [0 1] keep 0", "[6 7 8 9 10 11] [0 1 2 3 4] [2 3] keep 0",
		"[12 13 14 15 16 17] [0 1 2 3 4] [4 5] keep 0", "[18 19 20 18 19 20] [0 1 2 3 4] [6 6] keep 1",
	} {
		a := set.at(i)
		if got := fmt.Sprint(a.in["x"].Data, a.in["k"].Data, a.want["y"].Data, " keep ", a.keep); strings.Join(strings.Fields(got), " ") != want {
			t.Errorf("inference %d: got %s, want %s", i, got, want)
		}
	}
	if got := keepRows(ir.FromSlice(ir.Int32, []int32{1, 2, 3, 4}, 2, 2), 1); fmt.Sprint(got.Dims, got.Data) != "[1 2] [1 2]" {
		t.Errorf("kept %v %v", got.Dims, got.Data)
	}

	for _, c := range []struct{ in, expect, want string }{
		{write("x", 8, 3), y, "x has 8 samples for batches of 2, y has 7 for batches of 2"},
		{write("x", 8, 4), y, "is int32[8,4], want int32[2,3] or more samples"},
		{x, write("y", 7, 1), "is int32[7,1], want int32[2] or more samples"},
		{strings.Replace(x, "x=", "z=", 1), y, `there is no input "z"`},
	} {
		if _, err := series(s, []string{c.in, k}, []string{c.expect}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
	if _, err := series(s, []string{x}, nil); len(diag.All(err)) != 1 || diag.All(err)[0].Port != "input k" {
		t.Errorf("missing input: %v", err)
	}
}

func TestRandomInputsCoverTheirRange(t *testing.T) {
	const n = 4000
	var ports []port
	for _, d := range []ir.DType{ir.Float32, ir.Float64, ir.Float16, ir.BFloat16, ir.Int8, ir.Int16, ir.Int32, ir.Int64, ir.Uint8, ir.Uint16, ir.Uint32, ir.Uint64, ir.Bool} {
		ports = append(ports, port{d.String(), d, []int64{n}})
	}
	for _, limit := range []int64{1, 50, 1000} {
		for _, p := range ports {
			lo, hi := limits(randomInputs([]port{p}, 3, limit)[p.name])
			wantLo, wantHi := 0.0, float64(limit-1)
			switch {
			case p.dtype.IsFloat():
				wantLo, wantHi = -1, 1
			case p.dtype == ir.Bool:
				wantHi = 1
			case p.dtype == ir.Int8:
				wantHi = min(wantHi, 126)
			case p.dtype == ir.Uint8:
				wantHi = min(wantHi, 254)
			}
			if slack := 0.02 * (1 + wantHi); lo < wantLo || hi > wantHi || lo > wantLo+slack || hi < wantHi-slack {
				t.Errorf("%v below %d: got %g … %g, want %g … %g", p.dtype, limit, lo, hi, wantLo, wantHi)
			}
		}
	}
}

func limits(t *ir.Tensor) (lo, hi float64) {
	o := describeOutput("x", t)
	return *o.Min, *o.Max
}

// TestVerifyDataSets writes folders as the ONNX project's tests have them.
func TestVerifyDataSets(t *testing.T) {
	dir := t.TempDir()
	images, err := tensorio.Read(models+"digits_test.npz:images", "")
	if err != nil {
		t.Fatal(err)
	}
	logits, err := tensorio.Read(models+"digits_lstm_logits.npy", "")
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
	o.Path, o.Engine = models+"digits_lstm.onnx", EngineEval
	r, err := Verify(&UI{}, o)
	if err != nil || r.Samples != 3 || !r.OK || r.Reference != "expected outputs" {
		t.Errorf("%+v, %v", r, err)
	}
	write(1, "output_0.pb", logits, 5)
	if r, err = Verify(&UI{}, o); ExitCode(err) != ExitCheck || r == nil || r.OK {
		t.Errorf("another image's logits: %+v, %v", r, err)
	}
	o.Data = filepath.Join(dir, "test_data_set_0")
	if r, err = Verify(&UI{}, o); err != nil || r.Samples != 1 {
		t.Errorf("one set: %+v, %v", r, err)
	}
}
