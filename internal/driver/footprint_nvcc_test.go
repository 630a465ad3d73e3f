package driver

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/rammerc/rammerc/internal/toolchain"
	"github.com/rammerc/rammerc/ir/onnx/onnxpb"
)

// needMeasuredNVCC skips the test without the release of nvcc whose code was measured: another one's code is of
// other sizes, which no change here need answer for.
func needMeasuredNVCC(t *testing.T) {
	t.Helper()
	const release = "13.0"
	nvcc, err := toolchain.FindNVCC("")
	if err != nil {
		t.Skipf("needs nvcc: %v", err)
	}
	if v, err := nvcc.Version(t.Context()); err != nil || v != release {
		t.Skipf("needs nvcc %s, this is %s (%v)", release, v, err)
	}
}

// moreCode is what instances of some kernels may take beyond LargeCode, by a part of their name.
var moreCode = map[string]int64{
	// All registers of a tile's sums are named in its code one by one, and what comes next is fetched in two places, into
	// registers of either parity.
	"gemm_wgmma": 17 << 10, // numbers of float32 are split in parts as well
	"conv_wgmma": 20 << 10, // the places of an image's rows are computed as well
	"gemm_strip": 16 << 10,
	"conv_strip": 17 << 10, // where the taps of positions are is computed as well
	// The sums of a tile's two halves are in registers of their own, and leave by code of their own.
	"conv_turns": 20 << 10, "gemm_turns": 20 << 10,
	// What an epilogue adds waits in registers for all packs of a tile, each of which stands there by itself.
	"gemm_column": 16 << 10,
	// Two products of three parts each, and between them a softmax of all registers of the scores. Its loops are unrolled
	// along the head, which keeps the queries in registers.
	"attention_mma": 24 << 10,
	// The first stage begins before the loop, and the last product stands behind it.
	"attention_wgmma": 24 << 10,
	// Keys and values are sent for before the loop, too, and copies and products of a stage stand there one by one.
	"attention_warps": 24 << 10,
	// Registers have all keys of a warp, and are named one by one.
	"attention_direct": 16 << 10,
	"attention_few":    24 << 10, // up to four rows have a softmax and sums of their own
	// Rows of the filter are unrolled, for several positions of four channels each.
	"conv_depthwise": 12 << 10,
	// Units of the patch are put together from several loads, whose places are computed one by one, and tiles have the
	// packs of a long epilogue, see below.
	"conv_patch":  14 << 10,
	"conv_groups": 14 << 10, // likewise, but that its copies are of 16 bytes
	"conv_taps":   20 << 10, // two tiles one below the other, and the places of pixels and of the output's positions
	// Up to eight rows have sums of their own, and partial sums of lanes are added in registers.
	"gemv_stream": 10 << 10,
	// The parts of the input are made in two places, and groups of weights of 4 bits have scales of their own.
	"gemv_mma": 16 << 10,
	// Epilogues compute packs of four, so that a long one, like that of SiLU, stands there four times.
	"conv_tiled": 12 << 10, "conv_pointwise": 11 << 10, "gemm_tiled": 10 << 10, "conv_rows": 12 << 10,
}

// smallInstances compiles a model as a user without a GPU at hand does, and names its rKernel instances with their
// parameters. None may be large.
func smallInstances(t *testing.T, path, precision string) string {
	t.Helper()
	o := CompileOptions{
		Out: t.TempDir(), Target: "sm_90", Offline: true, Emit: EmitLibrary, Code: true, Precision: precision,
	}
	o.Path = path
	r, err := Compile(&Job{}, o)
	if err != nil {
		t.Fatal(err)
	}
	// Where two instances of one kernel have loops in common, ptxas keeps one of them, and its bytes are counted with
	// either instance. What is left of the other one is so short that it can be told by it.
	const remnant = 512
	measured, spare := 0, int64(0)
	for _, k := range slices.Backward(r.Code) { // the shortest first
		if strings.HasPrefix(k.Instance, "(") {
			continue
		}
		measured++
		most := int64(LargeCode)
		for part, more := range moreCode {
			if strings.Contains(k.Instance, part) {
				most = more
			}
		}
		if k.Bytes < remnant {
			spare += most - k.Bytes
		}
		if k.Bytes > most {
			if spare -= k.Bytes - most; spare < 0 {
				t.Errorf("%s is %d bytes, want at most %d", k.Instance, k.Bytes, most)
			}
		}
	}
	if r.Summary.Serialised > 0 {
		t.Errorf("ptxas serialises the products of warp groups in %d kernels", r.Summary.Serialised)
	}
	plan, instances := planIn(t, o.Out)
	if measured != len(instances) {
		t.Errorf("code of %d instances, the plan has %d: %v", measured, len(instances), r.Code)
	}
	return plan
}

// planIn is the plan of a library as text, and the names of its instances.
func planIn(t *testing.T, folder string) (text string, instances map[string]bool) {
	t.Helper()
	plans, err := filepath.Glob(filepath.Join(folder, "*.plan.json"))
	if err != nil || len(plans) != 1 {
		t.Fatalf("plans %v, %v", plans, err)
	}
	plan, err := os.ReadFile(plans[0])
	if err != nil {
		t.Fatal(err)
	}
	var parsed struct {
		Ops []struct{ Instance string } `json:"ops"`
	}
	if err := json.Unmarshal(plan, &parsed); err != nil {
		t.Fatal(err)
	}
	instances = map[string]bool{}
	for _, op := range parsed.Ops {
		instances[op.Instance] = true
	}
	return string(plan), instances
}

// TestCodeOfDigitsIsSmall: what most code is, once an inference, it has to be fetched for.
func TestCodeOfDigitsIsSmall(t *testing.T) {
	needMeasuredNVCC(t)
	for _, name := range []string{"digits_attention", "digits_branchy", "digits_lstm"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			smallInstances(t, "../../testdata/models/"+name+".onnx", "")
		})
	}
}

// TestCodeOfLargeTilesIsSmall: the same for the largest tiles, each behind a loader of its own; those of
// convolutions have long epilogues.
func TestCodeOfLargeTilesIsSmall(t *testing.T) {
	needMeasuredNVCC(t)
	for precision, tiles := range map[string][]string{
		"strict": {"conv_tiled_", "conv_pointwise_", "gemm_tiled_", "TM8_TN8"},
		"fp32":   {"gemm_wgmma_", "Products3"},
		"tf32":   {"conv_taps_", "conv_groups_", "conv_turns_", "conv_wgmma_", "gemm_strip_", "conv_strip_", "Products1"},
		"fp16":   {"conv_wgmma_", "rk__half_rk__half"},
	} {
		t.Run(precision, func(t *testing.T) {
			t.Parallel()
			plan, models := "", largeTiles(t, precision == "strict")
			if precision == "tf32" {
				models = append(models, manyImages(t))
			}
			for _, model := range models {
				plan += smallInstances(t, model, precision)
			}
			for _, tile := range tiles {
				if !strings.Contains(plan, tile) {
					t.Errorf("no instance has %s in its name", tile)
				}
			}
		})
	}
}

// TestWarpGroupsDoNotSpill: instances of warp groups in one kernel would have registers for the sums of each. So would
// one whose manifest says that two blocks of it have room on a multiprocessor when they have not. Then registers are
// spilled, and products wait for each other.
func TestWarpGroupsDoNotSpill(t *testing.T) {
	needMeasuredNVCC(t)
	for _, precision := range []string{"fp32", "tf32", "fp16"} {
		t.Run(precision, func(t *testing.T) {
			t.Parallel()
			g := &graphMaker{&onnxpb.GraphProto{Name: proto.String("products")}}
			g.product()
			g.weights("w5", 3072, 768)
			g.node("MatMul", "narrow", "y2", "w5")
			g.node("Gelu", "y3", "narrow")
			g.Output = append(g.Output, floats("y3", 1024, 768))
			checkProducts(t, g, precision)
		})
	}
}

// TestBareConvolutions: products of strips do not wait for each other where nothing but rounding is behind them.
func TestBareConvolutions(t *testing.T) {
	needMeasuredNVCC(t)
	g := &graphMaker{&onnxpb.GraphProto{Name: proto.String("bare")}}
	g.Input = append(g.Input, floats("c0", 1, 256, 56, 56))
	g.weights("w", 256, 256, 3, 3)
	for i := range 3 {
		conv := g.node("Conv", fmt.Sprint("c", i+1), fmt.Sprint("c", i), "w")
		ints(conv, "pads", 1, 1, 1, 1)
	}
	g.Output = append(g.Output, floats("c3", 1, 256, 56, 56))
	checkProducts(t, g, "fp16")
}

// TestTilesOfThreeGroups: tiles of 192 rows have fewer registers for a thread, and are taken where these are enough: for
// sums that are only rounded, behind which a bias, and behind which a residual is added.
func TestTilesOfThreeGroups(t *testing.T) {
	needMeasuredNVCC(t)
	for precision, widest := range map[string]string{"fp16": "BM192_BN192", "tf32": "BM192_BN128"} {
		t.Run(precision, func(t *testing.T) {
			t.Parallel()
			g := &graphMaker{&onnxpb.GraphProto{Name: proto.String("tall")}}
			g.Input = append(g.Input, floats("x", 2112, 768))
			g.weights("first", 768, 768)
			at := g.node("MatMul", "y", "x", "first").Output[0] // one behind the other, so that each has its own launch
			for _, n := range []int64{2304, 1536, 1152} {       // which are 132 tiles of 192 rows
				from, to, bias, bare := fmt.Sprint("from", n), fmt.Sprint("to", n), fmt.Sprint("bias", n), fmt.Sprint("bare", n)
				g.weights(from, 768, n)
				g.weights(to, n, 768)
				g.weights(bias, n)
				for _, added := range []string{"", bias, bare} {
					name := bare
					if added != "" {
						name = "behind " + added
					}
					g.node("MatMul", name, at, from)
					if added != "" {
						g.node("Add", name+", added", name, added)
						name += ", added"
					}
					at = "next " + name
					g.node("MatMul", at, name, to)
				}
			}
			g.Output = append(g.Output, floats(at, 2112, 768))
			if plan, _ := planIn(t, checkProducts(t, g, precision)); !strings.Contains(plan, widest) {
				t.Errorf("no product has %s", widest)
			}
		})
	}
}

// checkProducts compiles the model for sm_90, where no registers may be spilled, and no product may wait for another one.
// It returns the library's folder.
func checkProducts(t *testing.T, g *graphMaker, precision string) string {
	t.Helper()
	o := CompileOptions{Out: t.TempDir(), Target: "sm_90", Offline: true, Emit: EmitLibrary, Precision: precision}
	o.Path = g.write(t)
	r, err := Compile(&Job{}, o)
	if err != nil {
		t.Fatal(err)
	}
	if r.Summary.SpilledBytes > 0 || r.Summary.Serialised > 0 {
		t.Errorf("%d bytes of registers are spilled, products of %d kernels serialised", r.Summary.SpilledBytes,
			r.Summary.Serialised)
	}
	return o.Out
}

// largeTiles are models of an image's convolutions and of a wide product, with activations behind them. They are one
// only if `together` says so: the tiles of warp groups have all registers of a multiprocessor, and in one model other
// instances would have them, too, and unroll further.
func largeTiles(t *testing.T, together bool) []string {
	t.Helper()
	g := &graphMaker{&onnxpb.GraphProto{Name: proto.String("tiles")}}
	g.convolutions()
	if together {
		g.product()
		return []string{g.write(t)}
	}
	h := &graphMaker{&onnxpb.GraphProto{Name: proto.String("product")}}
	h.product()
	k := &graphMaker{&onnxpb.GraphProto{Name: proto.String("taps")}}
	k.taps(8, 128)
	l := &graphMaker{&onnxpb.GraphProto{Name: proto.String("images")}}
	l.taps(32, 144)
	return []string{g.write(t), h.write(t), k.write(t), l.write(t)}
}

// manyImages is a model of a convolution that is conv_taps in tf32.
func manyImages(t *testing.T) string {
	t.Helper()
	g := &graphMaker{&onnxpb.GraphProto{Name: proto.String("many")}}
	g.Output = append(g.Output, floats(g.places(34, 144), 34, 128, 28, 28))
	return g.write(t)
}

// places is what a convolution makes whose filter has nine taps for each place of so many images. Few images are strips,
// and many take turns unless channels fill no boxes.
func (g *graphMaker) places(images, channels int64) string {
	g.Input = append(g.Input, floats("places", images, 128, 28, 28))
	g.weights("w7", channels, 128, 1, 1)
	g.weights("w5", 128, channels, 3, 3)
	g.node("Conv", "c7", "places", "w7")
	g.node("Relu", "a7", "c7")
	ints(g.node("Conv", "c5", "a7", "w5"), "pads", 1, 1, 1, 1)
	return g.node("HardSwish", "a5", "c5").Output[0]
}

// taps are places, and a convolution of groups of them.
func (g *graphMaker) taps(images, channels int64) {
	g.weights("w6", 128, 16, 3, 3)
	groups := g.node("Conv", "c6", g.places(images, channels), "w6")
	ints(groups, "pads", 1, 1, 1, 1)
	groups.Attribute = append(groups.Attribute, &onnxpb.AttributeProto{Name: proto.String("group"),
		Type: onnxpb.AttributeProto_INT.Enum(), I: proto.Int64(8)})
	g.node("HardSwish", "y3", "c6")
	g.Output = append(g.Output, floats("y3", images, 128, 28, 28))
}

func (g *graphMaker) product() {
	g.Input = append(g.Input, floats("rows", 1024, 768))
	g.weights("w4", 768, 3072)
	g.weights("bias", 3072)
	g.node("MatMul", "m", "rows", "w4")
	g.node("Add", "b", "m", "bias")
	g.node("Relu", "y2", "b")
	g.Output = append(g.Output, floats("y2", 1024, 3072))
}

func (g *graphMaker) convolutions() {
	g.Input = append(g.Input, floats("image", 8, 3, 224, 224))
	g.weights("w1", 32, 3, 3, 3)
	g.weights("w2", 192, 32, 3, 3)
	g.weights("w3", 320, 192, 1, 1)
	first := g.node("Conv", "c1", "image", "w1")
	ints(first, "strides", 2, 2)
	ints(first, "pads", 1, 1, 1, 1)
	g.node("Sigmoid", "s1", "c1")
	g.node("Mul", "a1", "c1", "s1")
	second := g.node("Conv", "c2", "a1", "w2")
	ints(second, "pads", 1, 1, 1, 1)
	ints(second, "strides", 2, 2)
	g.node("HardSwish", "a2", "c2")
	g.node("Conv", "c3", "a2", "w3")
	g.node("Sigmoid", "s3", "c3")
	g.node("Mul", "y1", "c3", "s3")
	g.Output = append(g.Output, floats("y1", 8, 320, 56, 56))
}
