package eval

import (
	"math"
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// recurrence is one direction of an LSTM, GRU or RNN, with the weights of one step. The rows of the weights are those
// of the first gate, then those of the second, and so on. States stay in float64 from step to step.
type recurrence struct {
	kind                           *recurrentKind
	input, hidden                  int
	w                              *ir.Tensor // [gates·hidden, input]; nil where x is the product with it already
	r                              *ir.Tensor // [gates·hidden, hidden]
	bias                           []float64  // [2·gates·hidden]: that of W, then that of R; nil when absent
	peep                           []float64  // [3·hidden]; nil when absent
	acts                           []func(x float64) float64
	inputForget, linearBeforeReset bool
	call                           *call
}

// recurrentKind says in what the three operators differ.
type recurrentKind struct {
	gates   int
	acts    []string // default activations of a direction
	hasCell bool     // there is a second state, c
	// step computes the new states of one row of the batch, in place. x is W·x + Wb for all gates, and is overwritten.
	step func(rc *recurrence, x, h, c []float64)
}

var (
	lstmKind = recurrentKind{4, []string{"Sigmoid", "Tanh", "Tanh"}, true, lstmStep}
	gruKind  = recurrentKind{3, []string{"Sigmoid", "Tanh"}, false, gruStep}
	rnnKind  = recurrentKind{1, []string{"Tanh"}, false, rnnStep}
)

// lstmStep is ONNX's LSTM. Gates have the order i, o, f, c and peepholes the order i, o, f. The peephole of o sees the
// new cell state, the others the old one.
func lstmStep(rc *recurrence, x, h, c []float64) {
	n := rc.hidden
	rc.addHidden(x, 0, 4*n, h)
	peep := func(gate, j int, c float64) float64 {
		if rc.peep == nil {
			return 0
		}
		return rc.peep[gate*n+j] * c
	}
	for j := range n {
		i := rc.acts[0](x[j] + peep(0, j, c[j]))
		f := 1 - i
		if !rc.inputForget {
			f = rc.acts[0](x[2*n+j] + peep(2, j, c[j]))
		}
		c[j] = f*c[j] + i*rc.acts[1](x[3*n+j])
		o := rc.acts[0](x[n+j] + peep(1, j, c[j]))
		h[j] = o * rc.acts[2](c[j])
	}
}

// gruStep is ONNX's GRU. Gates have the order z, r, h.
func gruStep(rc *recurrence, x, h, _ []float64) {
	n := rc.hidden
	rc.addHidden(x, 0, 2*n, h)
	z, r := make([]float64, n), make([]float64, n)
	for j := range n {
		z[j], r[j] = rc.acts[0](x[j]), rc.acts[0](x[n+j])
	}
	if rc.linearBeforeReset {
		part := make([]float64, 3*n)
		rc.addHidden(part, 2*n, 3*n, h)
		for j := range n {
			x[2*n+j] += r[j] * part[2*n+j]
		}
	} else {
		reset := make([]float64, n)
		for j := range n {
			reset[j] = r[j] * h[j]
		}
		rc.addHidden(x, 2*n, 3*n, reset)
	}
	for j := range n {
		h[j] = (1-z[j])*rc.acts[1](x[2*n+j]) + z[j]*h[j]
	}
}

func rnnStep(rc *recurrence, x, h, _ []float64) {
	rc.addHidden(x, 0, rc.hidden, h)
	for j := range h {
		h[j] = rc.acts[0](x[j])
	}
}

// addHidden adds R·h + Rb to rows lo to hi of x.
func (rc *recurrence) addHidden(x []float64, lo, hi int, h []float64) {
	rc.addRows(x, lo, hi, rc.r, h)
	if rc.bias != nil {
		for j := lo; j < hi; j++ {
			x[j] += rc.bias[rc.kind.gates*rc.hidden+j]
		}
	}
}

// gateInputs is W·x + Wb for all gates. Without W, x is W·x already, in the order [unit][gate].
func (rc *recurrence) gateInputs(x []float64) []float64 {
	rows := rc.kind.gates * rc.hidden
	out := make([]float64, rows)
	if rc.bias != nil {
		copy(out, rc.bias[:rows])
	}
	if rc.w != nil {
		rc.addRows(out, 0, rows, rc.w, x)
		return out
	}
	for i, v := range x {
		out[i%rc.kind.gates*rc.hidden+i/rc.kind.gates] += v
	}
	return out
}

// addRows adds to out the products of w's rows lo to hi with v.
func (rc *recurrence) addRows(out []float64, lo, hi int, w *ir.Tensor, v []float64) {
	if f, ok := w.Data.([]float32); ok {
		addDots(rc.call, out, lo, hi, f, v)
	} else {
		addDots(rc.call, out, lo, hi, floats(w), v)
	}
}

// rowsPerTask is how many rows a goroutine takes at a time, so many that starting it costs little in comparison.
const rowsPerTask = 128

func addDots[T float32 | float64](c *call, out []float64, lo, hi int, w []T, v []float64) {
	k := len(v)
	c.parallel(ceilDiv(hi-lo, rowsPerTask), func(t int) {
		for j := lo + t*rowsPerTask; j < min(hi, lo+(t+1)*rowsPerTask); j++ {
			out[j] += dot(v, w[j*k:(j+1)*k])
		}
	})
}

// lstm, gru and rnn compute whole sequences.
func lstm(c *call) []*ir.Tensor { return sequence(c, &lstmKind) }
func gru(c *call) []*ir.Tensor  { return sequence(c, &gruKind) }
func rnn(c *call) []*ir.Tensor  { return sequence(c, &rnnKind) }

// sequence computes with layout 0: X[S,B,I], states [D,B,H] and Y[S,D,B,H]. For layout 1 the inputs are transposed
// before and the outputs afterwards.
func sequence(c *call, kind *recurrentKind) []*ir.Tensor {
	x, w := c.arg(0), c.arg(1)
	if len(x.Dims) != 3 || len(w.Dims) != 3 || kind.gates > 0 && w.Dims[1]%int64(kind.gates) != 0 {
		fail("X of dims %v does not fit W of dims %v", x.Dims, w.Dims)
	}
	batchFirst := c.Attr("layout").I != 0
	if batchFirst {
		x = permuted(c, x, []int{1, 0, 2})
	}
	s := sequenceRun{
		call: c, kind: kind, x: x, steps: int(x.Dims[0]), batch: int(x.Dims[1]), input: int(x.Dims[2]),
		hidden: int(w.Dims[1]) / kind.gates,
	}
	s.backward = directions(c.Attr("direction").S)
	s.lengths = sequenceLengths(c.opt(4), s.steps, s.batch)
	s.h = s.state(c.opt(5), batchFirst)
	if kind.hasCell {
		s.c = s.state(c.opt(6), batchFirst)
	}
	s.y = make([]float64, s.steps*len(s.backward)*s.batch*s.hidden)
	for d := range s.backward {
		s.direction(d)
	}
	return s.results(batchFirst)
}

// directions lists, for each direction, whether it goes backward.
func directions(name string) []bool {
	switch name {
	case "reverse":
		return []bool{true}
	case "bidirectional":
		return []bool{false, true}
	}
	return []bool{false}
}

// sequenceLengths is the number of steps of each row of the batch; without t it is steps for all of them.
func sequenceLengths(t *ir.Tensor, steps, batch int) []int {
	out := make([]int, batch)
	for i := range out {
		out[i] = steps
	}
	if t == nil {
		return out
	}
	v := ints(t)
	if len(v) != batch {
		fail("there are %d sequence lengths for a batch of %d", len(v), batch)
	}
	for i, n := range v {
		if n < 0 || n > int64(steps) {
			fail("sequence length %d, want 0 to %d", n, steps)
		}
		out[i] = int(n)
	}
	return out
}

// sequenceRun is the state of an LSTM, GRU or RNN node.
type sequenceRun struct {
	call                        *call
	kind                        *recurrentKind
	x                           *ir.Tensor
	steps, batch, input, hidden int
	backward                    []bool    // by direction
	lengths                     []int     // by row of the batch
	h, c                        []float64 // [D,B,H]
	y                           []float64 // [S,D,B,H]
}

// state loads an initial state as [D,B,H]; it is 0 when absent.
func (s *sequenceRun) state(t *ir.Tensor, batchFirst bool) []float64 {
	n := len(s.backward) * s.batch * s.hidden
	if t == nil {
		return make([]float64, n)
	}
	if len(t.Dims) != 3 || t.Len() != int64(n) {
		fail("an initial state has dims %v, which do not fit", t.Dims)
	}
	if batchFirst {
		t = permuted(s.call, t, []int{1, 0, 2})
	}
	return slices.Clone(floats(t))
}

// direction computes all steps of direction d. Going backward, each row of the batch begins at the last step of its own
// sequence.
func (s *sequenceRun) direction(d int) {
	rc := s.recurrence(d)
	x := make([]float64, s.input)
	for b := range s.batch {
		at := (d*s.batch + b) * s.hidden
		h := s.h[at : at+s.hidden]
		var c []float64
		if s.kind.hasCell {
			c = s.c[at : at+s.hidden]
		}
		for i := range s.lengths[b] {
			step := i
			if s.backward[d] {
				step = s.lengths[b] - 1 - i
			}
			load(x, s.x, (step*s.batch+b)*s.input)
			s.kind.step(rc, rc.gateInputs(x), h, c)
			copy(s.y[((step*len(s.backward)+d)*s.batch+b)*s.hidden:], h)
		}
	}
}

// recurrence takes the weights of direction d from the inputs.
func (s *sequenceRun) recurrence(d int) *recurrence {
	rows, dirs := int64(s.kind.gates*s.hidden), int64(len(s.backward))
	part := func(t *ir.Tensor, dims ...int64) *ir.Tensor {
		if !slices.Equal(t.Dims, append([]int64{dirs}, dims...)) {
			fail("weights have dims %v, want %v", t.Dims, append([]int64{dirs}, dims...))
		}
		return sliceAt(s.call, t, 0, int64(d))
	}
	rc := &recurrence{kind: s.kind, input: s.input, hidden: s.hidden, call: s.call}
	rc.w = part(s.call.arg(1), rows, int64(s.input))
	rc.r = part(s.call.arg(2), rows, int64(s.hidden))
	if b := s.call.opt(3); b != nil {
		rc.bias = floats(part(b, 2*rows))
	}
	if s.kind.hasCell {
		if p := s.call.opt(7); p != nil {
			rc.peep = floats(part(p, int64(3*s.hidden)))
		}
	}
	rc.setUp(s.call, d, int(dirs))
	return rc
}

// setUp reads the attributes for direction d of dirs. The attribute activations lists those of the first direction and
// then those of the second.
func (rc *recurrence) setUp(c *call, d, dirs int) {
	rc.inputForget = c.Attr("input_forget").I != 0
	rc.linearBeforeReset = c.Attr("linear_before_reset").I != 0
	names := c.Attr("activations").Strs
	if len(names) == 0 {
		for range dirs {
			names = append(names, rc.kind.acts...)
		}
	}
	if len(names) != dirs*len(rc.kind.acts) {
		fail("attribute activations: %v is the wrong number for %d directions", names, dirs)
	}
	limit := math.Inf(1)
	if a := c.Attr("clip"); a.Kind != 0 && a.F > 0 {
		limit = a.F
	}
	all := activations(names, c.Attr("activation_alpha").Floats, c.Attr("activation_beta").Floats, limit)
	rc.acts = all[d*len(rc.kind.acts) : (d+1)*len(rc.kind.acts)]
}

// results makes the outputs Y, Y_h and Y_c.
func (s *sequenceRun) results(batchFirst bool) []*ir.Tensor {
	d, b, h := int64(len(s.backward)), int64(s.batch), int64(s.hidden)
	t := s.x.DType
	outs := []*ir.Tensor{
		result(s.call, t, []int64{int64(s.steps), d, b, h}, s.y), result(s.call, t, []int64{d, b, h}, s.h),
	}
	if s.kind.hasCell {
		outs = append(outs, result(s.call, t, []int64{d, b, h}, s.c))
	}
	if batchFirst {
		outs[0] = permuted(s.call, outs[0], []int{2, 0, 1, 3})
		for i := range outs[1:] {
			outs[i+1] = permuted(s.call, outs[i+1], []int{1, 0, 2})
		}
	}
	return outs
}
