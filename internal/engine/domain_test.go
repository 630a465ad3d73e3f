package engine

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/internal/tolerance"
	"github.com/rammerc/rammerc/ir"
)

// domainGraphs have inputs whose domains follow from what they are used for.
const domainGraph = `graph "g" (%ids: int64[2,3], %types: int32[2,3], %mask: int64[2,3], %lengths: int32[2], %floats: float32[3], %free: int64[4], %offset: int64[3], %x: float32[5,2,4], %w: float32[1,16,4], %r: float32[1,16,4]) {
  %words = const float32[11,4] {WORDS}
  %two = const int64[] {2}
  %one = const float32[] {1}
  %a: float32[2,3,4] = Gather(%words, %ids)
  %wide: int64[2,3] = Cast(%types) {to = 7}
  %flat: int64[6] = Flatten(%wide)
  %b: float32[6,4] = Gather(%words, %flat)
  %m: float32[2,3] = Cast(%mask) {to = 1}
  %inverse: float32[2,3] = Sub(%one, %m)
  %y: float32[5,1,2,4], %h: float32[1,2,4] = LSTM(%x, %w, %r, _, %lengths) {hidden_size = 4}
  %whole: int64[3] = Cast(%floats) {to = 7}
  %c: float32[3,4] = Gather(%words, %whole)
  %shifted: int64[3] = Add(%offset, %two)
  %d: float32[3,4] = Gather(%words, %shifted)
  %e: int64[4] = Add(%free, %free)
  return %a, %b, %inverse, %y, %c, %d, %e
}
`

func parsed(t *testing.T, text string) *ir.Graph {
	t.Helper()
	g, err := ir.ParseText("g.rir", []byte(text), ir.ParseOptions{})
	if err == nil {
		err = ir.InferShapes(g).Err()
	}
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestDomains(t *testing.T) {
	words := ""
	for range 43 {
		words += "0, "
	}
	g := parsed(t, strings.Replace(domainGraph, "WORDS", words+"0", 1))
	want := map[string]Domain{
		"ids": {0, 11, false}, "types": {0, 11, false}, "mask": {0, 2, false}, "lengths": {1, 6, true},
		"floats": {0, 11, false}, "offset": {-2, 9, false},
	}
	got := Domains(g)
	for _, v := range g.Inputs {
		if got[v.Name] != want[v.Name] {
			t.Errorf("%s: got %+v, want %+v", v.Name, got[v.Name], want[v.Name])
		}
	}
	in := RandomInputs(InputPorts(g), 5, 1000)
	for name, d := range want {
		lo, hi := most(in[name])
		if lo < float64(d.Low) || hi >= float64(d.High) {
			t.Errorf("%s: drawn from %g to %g, want %+v", name, lo, hi, d)
		}
	}
	if l := ir.Slice[int32](in["lengths"]); !slices.IsSortedFunc(l, func(a, b int32) int { return int(b - a) }) {
		t.Errorf("lengths %v are not sorted", l)
	}
	for _, x := range ir.Slice[float32](in["floats"]) {
		if float64(x) != math.Trunc(float64(x)) {
			t.Errorf("%g is no index", x)
		}
	}
}

// off is an engine that returns what it holds.
type off struct{ out Tensors }

func (o off) Name() string                 { return "off" }
func (o off) Run(Tensors) (Tensors, error) { return o.out, nil }
func (o off) Close() error                 { return nil }

// TestSwayExplains: where a model divides by nearly nothing, results may be as far off as they are when its weights are
// rounded otherwise, and no further. Where it is well-conditioned the usual limit holds.
func TestSwayExplains(t *testing.T) {
	const text = `graph "g" (%x: float32[16]) {
  %ones = const float32[16] {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}
  %base = const float32[] {1024}
  %a: float32[16] = Mul(%x, %ones)
  %b: float32[16] = BODY
  return %b
}
`
	for _, c := range []struct {
		body  string
		near  float32 // how far inputs are from 1024, as part of it
		error float32
		ok    bool
	}{
		{"Sub(%a, %base)", 1. / (1 << 16), 0.002, true}, {"Sub(%a, %base)", 1. / (1 << 16), 0.1, false},
		{"Add(%a, %base)", 1. / (1 << 16), 0.002, false},
		// The model sways by more than it is itself: nothing shows whether results are right.
		{"Sub(%a, %base)", 1. / (1 << 22), 0.9, false},
	} {
		in := ir.NewTensor(ir.Float32, 16)
		for i := range 16 {
			ir.Slice[float32](in)[i] = 1024 * (1 + float32(i+1)*c.near)
		}
		g := parsed(t, strings.Replace(text, "BODY", c.body, 1))
		want, err := (&Evaluator{Graph: g, Progress: func(int, int) {}}).Run(Tensors{"x": in})
		if err != nil {
			t.Fatal(err)
		}
		got := ir.FromSlice(ir.Float32, slices.Clone(ir.Slice[float32](want["b"])), 16)
		for i := range ir.Slice[float32](got) {
			ir.Slice[float32](got)[i] *= 1 + c.error*float32(i%3-1)
		}
		comparer := Comparer{Engine: off{Tensors{"b": got}}, Outputs: GraphPorts(g.Outputs), Model: g,
			Progress: func(int, int) {}}
		samples := &Samples{N: 1, At: func(int) Sample { return Sample{In: Tensors{"x": in}} }}
		r, err := comparer.Compare(samples)
		if err != nil || r.OK != c.ok {
			t.Errorf("%s with an error of %g: %v, %v, want %v (limit %+v)", c.body, c.error, r.OK, err, c.ok,
				tolerance.LimitFor(ir.Float32))
		}
	}
}
