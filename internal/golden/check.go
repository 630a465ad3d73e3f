package golden

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/internal/tolerance"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/eval"
	"github.com/rammerc/rammerc/lower"
	"github.com/rammerc/rammerc/precision"
	"github.com/rammerc/rammerc/roperator"
)

// Check proves all cases. They are compiled into one program, because most of them cost the compiler less than starting
// it and reading the headers does. Check makes its test run in parallel with the others.
func Check(t *testing.T, cases []Case) {
	t.Helper()
	t.Parallel()
	if compiler() == "" && os.Getenv(nvccVariable) == "" {
		t.Skip("no C++ compiler")
	}
	src := newSource()
	var ready []*prepared
	some := newTurns(len(cases))
	for i := range cases {
		p, err := prepare(&cases[i], src, some)
		if err != nil {
			t.Errorf("%s: %v", cases[i].Name, err)
			continue
		}
		ready = append(ready, p)
	}
	program, err := programs.build(strings.ReplaceAll(t.Name(), "/", "_"), src.text())
	if err != nil {
		t.Fatal(err)
	}
	srv, err := start(program)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { srv.stop() }()
	for _, p := range ready {
		if err := p.check(srv); err != nil {
			t.Errorf("%s: %v", p.c.Name, err)
			srv.stop()
			if srv, err = start(program); err != nil {
				t.Fatal(err)
			}
		}
	}
}

const (
	align = 256 // bytes; each buffer begins at a multiple of it
	guard = 64  // bytes behind each buffer; whoever changes them writes outside of its boxes
)

// prepared is a case that has been lowered and whose candidates are part of the test's program. All its buffers, and
// the tables of moves behind them, lie in one block of memory, which is sent to the program and back with each request.
type prepared struct {
	c       *Case
	g       *roperator.Graph
	in      map[string]*ir.Tensor
	want    map[string]*ir.Tensor
	offsets []int64 // where each buffer begins in the memory
	size    int64   // bytes of the memory
	ids     [][]int // [rOperator][candidate] number by which the program knows it
	inPlace [][]int // likewise, with the result in the place of an operand; -1 where there is none to replace
	tables  []moveTable
}

func prepare(c *Case, src *source, some *turns) (*prepared, error) {
	g, err := c.Graph()
	if err != nil {
		return nil, err
	}
	if err := narrow(g, c.Precision); err != nil {
		return nil, err
	}
	c.place(g)
	p := &prepared{c: c, in: c.Inputs(g, 1)}
	if p.want, err = eval.Run(g, p.in, eval.Options{}); err != nil {
		return nil, err
	}
	// The candidates are those for a large device; the emulator runs all of them.
	spec, err := device.Find("h200")
	if err != nil {
		return nil, err
	}
	if p.g, err = lower.General(g, nil, c.on(spec), precision.All(c.Precision)); err != nil {
		return nil, err
	}
	if err := roperator.Verify(p.g); err != nil {
		return nil, err
	}
	if c.Precision == precision.TF32 {
		keepTensor(p.g)
	}
	if err := c.keepOf(p.g); err != nil {
		return nil, err
	}
	for _, op := range p.g.Ops {
		// What rKernels poll themselves comes from others of a program: internal/difftest and codegen run whole ones.
		op.Candidates = slices.DeleteFunc(op.Candidates, func(c *roperator.Candidate) bool { return c.Like != nil })
		some.thin(op)
	}
	for _, b := range p.g.Buffers {
		p.offsets = append(p.offsets, p.size)
		p.size += (b.Bytes() + guard + align - 1) / align * align
	}
	for _, op := range p.g.Ops {
		var ids, inPlace []int
		for _, cand := range op.Candidates {
			var t *moveTable
			if len(cand.Exports) > 0 {
				t = newMoveTable(cand, p.offsets, p.size)
				p.tables = append(p.tables, *t)
				p.size += (int64(len(t.data)) + align - 1) / align * align
			}
			ids = append(ids, src.add(cand, p.offsets, t))
			inPlace = append(inPlace, p.addInPlace(src, cand))
		}
		p.ids, p.inPlace = append(p.ids, ids), append(p.inPlace, inPlace)
	}
	return p, nil
}

// addInPlace adds a candidate with its result in the place of a replaceable operand, and returns its number; -1 if it has
// no such operand.
func (p *prepared) addInPlace(src *source, c *roperator.Candidate) int {
	result, operands := c.Replaceable()
	if len(operands) == 0 {
		return -1
	}
	offsets := slices.Clone(p.offsets)
	offsets[result.ID] = offsets[operands[0].ID]
	return src.add(c, offsets, nil)
}

// keepOf leaves rOperators the candidates that the case is about.
func (c *Case) keepOf(g *roperator.Graph) error {
	if c.Of == "" {
		return nil
	}
	other := func(cand *roperator.Candidate) bool { return cand.Inst.Kernel.Name != c.Of }
	found := false
	for _, op := range g.Ops {
		if slices.ContainsFunc(op.Candidates, func(cand *roperator.Candidate) bool { return !other(cand) }) {
			op.Candidates, found = slices.DeleteFunc(op.Candidates, other), true
		}
	}
	if !found {
		return fmt.Errorf("no rOperator has a candidate of %s", c.Of)
	}
	return nil
}

// keepTensor leaves rOperators that have candidates on tensor cores no others: those are the same under every precision.
func keepTensor(g *roperator.Graph) {
	scalar := func(c *roperator.Candidate) bool { return c.Work.TensorFlops == 0 }
	for _, op := range g.Ops {
		if !slices.ContainsFunc(op.Candidates, func(c *roperator.Candidate) bool { return !scalar(c) }) {
			continue
		}
		op.Candidates = slices.DeleteFunc(op.Candidates, scalar)
	}
}

// turns chooses the candidates of each rKernel that a case runs, since compiling all of them is what a test's time goes
// to. Candidates of one rKernel differ in their tiles. They take turns, so that in a test whose cases have the same
// candidates each of these runs at least once.
type turns struct {
	cases int            // of the test
	begun map[string]int // by rKernel: at which of its candidates the next case begins
}

// leastTiles is how many candidates of one rKernel an rOperator has checked at least.
const leastTiles = 1

func newTurns(cases int) *turns { return &turns{cases: cases, begun: map[string]int{}} }

// thin leaves an rOperator the candidates whose turn it is.
func (some *turns) thin(op *roperator.ROperator) {
	of, met := map[string]int{}, map[string]int{}
	for _, c := range op.Candidates {
		of[c.Inst.Kernel.Name]++
	}
	share := func(n int) int { return min(n, max(leastTiles, (n+some.cases-1)/some.cases)) }
	op.Candidates = slices.DeleteFunc(op.Candidates, func(c *roperator.Candidate) bool {
		name := c.Inst.Kernel.Name
		n := of[name]
		place := (met[name] - some.begun[name]%n + n) % n
		met[name]++
		return place >= share(n)
	})
	for name, n := range of {
		some.begun[name] += share(n)
	}
}

// poison fills what must not be read. Four bytes of it are NaN as a float and out of range as an index, so whoever
// reads them gives a wrong result.
const poison = 0xff

// memory is the memory in front of the first rOperator: inputs, constants and tables of moves are there, everything
// else is poisoned.
func (p *prepared) memory() []byte {
	mem := bytes.Repeat([]byte{poison}, int(p.size))
	for _, b := range p.g.Buffers {
		switch b.Kind {
		case roperator.Const:
			copy(mem[p.offsets[b.ID]:], b.Data())
		case roperator.Input:
			copy(mem[p.offsets[b.ID]:], encode(p.in[p.g.Inputs[b.Index].Name]))
		}
	}
	for _, t := range p.tables {
		copy(mem[t.at:], t.data)
	}
	return mem
}

// check runs the whole graph several times: with the first candidate of each rOperator, then with the second ones, and
// so on. An rOperator that has fewer candidates uses its last one again.
func (p *prepared) check(srv *server) error {
	most := 0
	for _, ids := range p.ids {
		most = max(most, len(ids))
	}
	for v := range max(most, 1) {
		mem := p.memory()
		for i, ids := range p.ids {
			k := min(v, len(ids)-1)
			op := p.g.Ops[i]
			where := func(err error) error {
				return fmt.Errorf("rOperator %s (%s), candidate %d, %s: %w", op.Name, op.Kind, k,
					op.Candidates[k].Inst.Name(), err)
			}
			after, err := srv.run(ids[k], -1, mem)
			if err != nil {
				return where(err)
			}
			if err := p.checkTasks(srv, op.Candidates[k], ids[k], mem, after); err != nil {
				return where(err)
			}
			if err := p.checkInPlace(srv, op.Candidates[k], p.inPlace[i][k], mem, after); err != nil {
				return where(err)
			}
			mem = after
		}
		if err := p.compare(mem); err != nil {
			return fmt.Errorf("candidates %d: %w", v, err)
		}
	}
	return nil
}

func (p *prepared) compare(mem []byte) error {
	for _, port := range p.g.Outputs {
		at := p.offsets[port.Buffer]
		got := decode(port.DType, port.Dims, mem[at:at+p.g.Buffers[port.Buffer].Bytes()])
		d := tolerance.Compare(port.Name, got, p.want[port.Name])
		if !withinTight(d, port.DType, p.c.Precision) {
			return fmt.Errorf("%+v\n got %v\nwant %v", d, short(got), short(p.want[port.Name]))
		}
	}
	return nil
}

// withinTight reports whether a difference is within the limit for single operators, which is tighter than that for
// whole models: a relative error of 1e-5 in float32. Under tf32, each of the two operands of a product is off by half a
// unit of its 10 bits at most. Where values are stored in 16 bits, the evaluator rounds the same ones; but what is added
// up in another order may be rounded to the next number.
func withinTight(d tolerance.Difference, t ir.DType, p precision.Precision) bool {
	limit := map[ir.DType]float64{ir.Float32: 1e-5, ir.Float64: 1e-12, ir.Float16: 2e-3, ir.BFloat16: 1.6e-2}[t]
	switch {
	case t != ir.Float32:
	case p == precision.TF32:
		limit = 1.0 / (1 << 10)
	case p.Storage() != ir.Invalid:
		limit = 2 * tolerance.Roundoff(p.Storage())
	}
	return d.Problem == "" && d.Special == 0 && (d.RelL2 <= limit || d.MaxAbs <= limit*1e-2)
}

func short(t *ir.Tensor) string {
	s := fmt.Sprint(t.Data)
	if len(s) > 600 {
		s = s[:600] + "…"
	}
	return s
}

// checkInPlace runs a candidate with its result in the place of an operand. The result must be the same as in after, or
// it reads an element of the operand after it has written the one in its place.
func (p *prepared) checkInPlace(srv *server, c *roperator.Candidate, id int, before, after []byte) error {
	if id < 0 {
		return nil
	}
	got, err := srv.run(id, -1, before)
	if err != nil {
		return fmt.Errorf("in place: %w", err)
	}
	result, operands := c.Replaceable()
	at, there := p.offsets[operands[0].ID], p.offsets[result.ID]
	if n := result.Bytes(); !bytes.Equal(got[at:at+n], after[there:there+n]) {
		return fmt.Errorf("its result is another one if it replaces %s", operands[0].Name)
	}
	return nil
}

// checkTasks runs about four rTasks of a candidate alone, on a memory in which only the constants and what its read
// boxes cover are not poisoned. before and after are the memory around a run of all rTasks. What the rTask writes must
// be the same as in after, or it reads outside of its read boxes; and nothing may change outside of its write boxes.
func (p *prepared) checkTasks(srv *server, c *roperator.Candidate, id int, before, after []byte) error {
	step := max(1, c.Tasks/4)
	for task := 0; task < c.Tasks; task += step {
		mem := bytes.Repeat([]byte{poison}, len(before))
		for _, b := range p.g.Buffers {
			if b.Kind == roperator.Const {
				at := p.offsets[b.ID]
				copy(mem[at:at+b.Bytes()], before[at:])
			}
		}
		for _, t := range p.tables {
			copy(mem[t.at:], t.data)
		}
		for _, a := range c.Reads {
			p.eachElement(a, task, func(at, size int64) { copy(mem[at:at+size], before[at:at+size]) })
		}
		got, err := srv.run(id, task, mem)
		if err != nil {
			return fmt.Errorf("rTask %d alone: %w", task, err)
		}
		wrong := 0
		for _, a := range c.Writes {
			p.eachElement(a, task, func(at, size int64) {
				if !bytes.Equal(got[at:at+size], after[at:at+size]) {
					wrong++
				}
				copy(mem[at:at+size], got[at:at+size])
			})
		}
		if wrong > 0 {
			return fmt.Errorf("rTask %d alone, with the rest poisoned, gets %d other elements", task, wrong)
		}
		if !bytes.Equal(got, mem) {
			return fmt.Errorf("rTask %d writes outside its boxes", task)
		}
	}
	return nil
}

// eachElement calls f for every element of an rTask's access, with its place in the memory and its size in bytes.
func (p *prepared) eachElement(a roperator.Access, task int, f func(at, size int64)) {
	v := a.View
	rank := len(v.Shape)
	lo, hi := make([]int64, rank), append([]int64{}, v.Shape...)
	if a.Box != nil {
		a.Box(task, lo, hi)
	}
	at := append([]int64{}, lo...)
	for d := range rank {
		if lo[d] >= hi[d] {
			return
		}
	}
	size := int64(v.DType().Size())
	for {
		e := v.Offset
		for d := range rank {
			e += at[d] * v.Strides[d]
		}
		f(p.offsets[v.Buf.ID]+e*size, size)
		d := rank - 1
		for ; d >= 0; d-- {
			if at[d]++; at[d] < hi[d] {
				break
			}
			at[d] = lo[d]
		}
		if d < 0 {
			return
		}
	}
}
