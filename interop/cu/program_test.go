package rammercu_test

import (
	"os"
	"strings"
	"testing"

	"gorgonia.org/cu"
	"gorgonia.org/tensor"

	rammercu "github.com/rammerc/rammerc/interop/cu"
)

// bench is a model with tensors in device memory.
type bench struct {
	model           rammercu.Model
	inputs, outputs []*tensor.Dense
	in, out         []cu.DevicePtr
}

// newBench puts the inputs of a case on the device.
func newBench(t testing.TB, c testCase, m rammercu.Model) *bench {
	t.Helper()
	b := &bench{model: m}
	for _, p := range m.Inputs() {
		b.inputs = append(b.inputs, deviceTensor(t, m, p))
	}
	for _, p := range m.Outputs() {
		b.outputs = append(b.outputs, deviceTensor(t, m, p))
	}
	for i, x := range c.tensors(t, "in", m.Inputs()) {
		if err := rammercu.Copy(b.inputs[i], x); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if b.in, err = rammercu.Pointers(b.inputs...); err != nil {
		t.Fatal(err)
	}
	if b.out, err = rammercu.Pointers(b.outputs...); err != nil {
		t.Fatal(err)
	}
	return b
}

func deviceTensor(t testing.TB, m rammercu.Model, p rammercu.Tensor) *tensor.Dense {
	t.Helper()
	x, err := p.New(m.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := rammercu.Free(x); err != nil {
			t.Error(err)
		}
	})
	return x
}

// run clears the outputs, runs one inference on the stream, and fetches the outputs.
func (b *bench) run(t testing.TB, stream cu.Stream) []*tensor.Dense {
	t.Helper()
	for _, x := range b.outputs {
		rammercu.Engine{Context: b.model.Context()}.Memclr(x)
	}
	if err := b.model.Context().Do(cu.Synchronize); err != nil {
		t.Fatal(err)
	}
	if err := b.model.Launch(stream, b.in, b.out); err != nil {
		t.Fatal(err)
	}
	if err := b.model.Context().Do(stream.Synchronize); err != nil {
		t.Fatal(err)
	}
	var out []*tensor.Dense
	for _, x := range b.outputs {
		y := tensor.New(tensor.Of(x.Dtype()), tensor.WithShape(x.Shape()...))
		if err := rammercu.Copy(y, x); err != nil {
			t.Fatal(err)
		}
		out = append(out, y)
	}
	return out
}

func newStream(t testing.TB, ctx cu.Context) cu.Stream {
	t.Helper()
	s, err := ctx.MakeStream(cu.NonBlocking)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ctx.DestroyStream(&s) })
	return s
}

// Programs compute what the evaluator computes, in every inference: launched kernel by kernel, recorded, and replayed, on
// several streams, on several pointers.
func TestPrograms(t *testing.T) {
	for _, c := range cases(t) {
		t.Run(c.name, func(t *testing.T) {
			ctx := newContext(t)
			p := c.program(t, ctx)
			t.Log(p.How())
			a, b := newBench(t, c, p), newBench(t, c, p)
			streams := []cu.Stream{newStream(t, ctx), newStream(t, ctx), cu.NoStream}
			want := c.tensors(t, "out", p.Outputs())
			first := a.run(t, streams[0])
			for i := range want {
				checkNear(t, p.Outputs()[i].Name, first[i], want[i])
			}
			for n := range 6 {
				of := []*bench{a, b}[n%2]
				for i, y := range of.run(t, streams[n%3]) {
					checkEqual(t, p.Outputs()[i].Name+" again", y, first[i])
				}
			}
		})
	}
}

// Inferences that are put on several streams at once do not disturb each other.
func TestOverlap(t *testing.T) {
	c := cases(t)[0]
	ctx := newContext(t)
	p := c.program(t, ctx)
	want := newBench(t, c, p).run(t, cu.NoStream)
	streams := []cu.Stream{newStream(t, ctx), newStream(t, ctx)}
	benches := []*bench{newBench(t, c, p), newBench(t, c, p)}
	for n := range 8 {
		if err := p.Launch(streams[n%2], benches[n%2].in, benches[n%2].out); err != nil {
			t.Fatal(err)
		}
	}
	for n, b := range benches {
		if err := ctx.Do(streams[n].Synchronize); err != nil {
			t.Fatal(err)
		}
		for i, x := range b.outputs {
			y := tensor.New(tensor.Of(x.Dtype()), tensor.WithShape(x.Shape()...))
			if err := rammercu.Copy(y, x); err != nil {
				t.Fatal(err)
			}
			checkEqual(t, p.Outputs()[i].Name, y, want[i])
		}
	}
}

// Libraries run in cu's contexts, on its streams and memory, and compute the same bits as the cubin of the same plan.
func TestLibraries(t *testing.T) {
	found := false
	for _, c := range cases(t) {
		t.Run(c.name, func(t *testing.T) {
			ctx := newContext(t)
			l := c.library(t, ctx)
			if l == nil {
				t.Skip("the case has no library")
			}
			found = true
			p := c.program(t, ctx)
			if !strings.Contains(l.How(), `"mode"`) {
				t.Errorf("the library says that it runs as %s", l.How())
			}
			stream := newStream(t, ctx)
			want := newBench(t, c, p).run(t, stream)
			b := newBench(t, c, l)
			for range 3 {
				for i, y := range b.run(t, stream) {
					checkEqual(t, l.Outputs()[i].Name, y, want[i])
				}
			}
		})
	}
	if !found {
		t.Error("no case has a library")
	}
}

// A device without cooperative launches runs the waves of an rProgram.
func TestWaves(t *testing.T) {
	if os.Getenv("RAMMER_CU_CASES") != "" {
		t.Skip("the GPU has cooperative launches")
	}
	c := cases(t)[0]
	ctx := newContext(t)
	whole := c.program(t, ctx)
	want := newBench(t, c, whole).run(t, cu.NoStream)
	t.Setenv("RAMMER_EMU_COOPERATIVE", "0")
	apart := c.program(t, ctx)
	if how := apart.How(); !strings.HasPrefix(how, "[waves]") || !strings.HasPrefix(whole.How(), "[rprogram]") {
		t.Errorf("without cooperative launches %s, with them %s", how, whole.How())
	}
	b := newBench(t, c, apart)
	for range 3 {
		for i, y := range b.run(t, cu.NoStream) {
			checkNear(t, apart.Outputs()[i].Name, y, want[i])
		}
	}
}

// Tensors of the host go in and come out by Run.
func TestRun(t *testing.T) {
	c := cases(t)[0]
	p := c.program(t, newContext(t))
	in, want := c.tensors(t, "in", p.Inputs()), c.tensors(t, "out", p.Outputs())
	out, err := rammercu.Run(p, in...)
	if err != nil {
		t.Fatal(err)
	}
	for i := range want {
		checkNear(t, p.Outputs()[i].Name, out[i], want[i])
	}
	if _, err := rammercu.Run(p, tensor.New(tensor.Of(tensor.Float64), tensor.WithShape(1, 2))); err == nil {
		t.Error("an input of another type and shape is taken")
	}
	if _, err := rammercu.Run(p); err == nil {
		t.Error("no input at all is taken")
	}
}

// Gorgonia's own functions work with tensors in device memory where its engine is asked.
func TestEngine(t *testing.T) {
	e := rammercu.Engine{Context: newContext(t)}
	x := tensor.New(tensor.WithEngine(e), tensor.Of(tensor.Float32), tensor.WithShape(2, 3))
	y := tensor.New(tensor.WithEngine(e), tensor.Of(tensor.Float32), tensor.WithShape(2, 3))
	defer rammercu.Free(x)
	defer rammercu.Free(y)
	if x.IsNativelyAccessible() {
		t.Error("Go can read a tensor in device memory")
	}
	if err := e.Memset(x, float32(2.5)); err != nil {
		t.Fatal(err)
	}
	if err := rammercu.Copy(y, x); err != nil {
		t.Fatal(err)
	}
	host := tensor.New(tensor.Of(tensor.Float32), tensor.WithShape(2, 3))
	if err := rammercu.Copy(host, y); err != nil {
		t.Fatal(err)
	}
	for i, v := range host.Data().([]float32) {
		if v != 2.5 {
			t.Errorf("element %d is %v, want 2.5", i, v)
		}
	}
	if err := rammercu.Copy(y, tensor.New(tensor.Of(tensor.Float32), tensor.WithShape(5))); err == nil {
		t.Error("a copy from a tensor of another size is made")
	}
	if _, err := rammercu.Pointers(host); err == nil {
		t.Error("a tensor of the host has a place on the device")
	}
}

// BenchmarkModels times inferences that are put on one stream, one behind the other, of the cubin and of the library of
// the same plan.
func BenchmarkModels(b *testing.B) {
	for _, c := range cases(b) {
		ctx := newContext(b)
		models := map[string]rammercu.Model{"cubin": c.program(b, ctx)}
		if l := c.library(b, ctx); l != nil {
			models["library"] = l
		}
		for _, kind := range []string{"cubin", "library"} {
			m := models[kind]
			if m == nil {
				continue
			}
			x := newBench(b, c, m)
			stream := newStream(b, ctx)
			for range 3 {
				x.run(b, stream)
			}
			b.Run(c.name+"/"+kind, func(b *testing.B) {
				for range b.N {
					if err := m.Launch(stream, x.in, x.out); err != nil {
						b.Fatal(err)
					}
				}
				if err := ctx.Do(stream.Synchronize); err != nil {
					b.Fatal(err)
				}
			})
		}
	}
}
