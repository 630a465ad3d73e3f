// Package build has what all lowerings use: the Builder, which knows where every value of the graph lies, the Group
// that one call of a lowering carries out, and tilings, which cut an iteration space into rTasks. It knows no
// rKernel.
package build

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/axes"
	"github.com/rammerc/rammerc/lower/target"
	"github.com/rammerc/rammerc/precision"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/roperator"
)

// Builder holds what is known of one graph while it is lowered: where each value lies, and the rOperators so
// far. Lowerings ask it for the views of values and add rOperators to it.
type Builder struct {
	source   *ir.Graph // what is lowered
	graph    *roperator.Graph
	views    map[*ir.Value]roperator.View // values that have been produced, and inputs
	homes    map[*ir.Value]roperator.View // where a value must be written: graph outputs, concats in place
	consts   map[*ir.Tensor]*roperator.Buffer
	packed   map[string]*roperator.Buffer // by layout and sources
	largest  map[int]float32              // magnitudes in constants, by their buffers; see Fits
	names    map[string]int               // how many rOperators have been named after a node
	diags    diag.List
	group    *Group // being lowered, for names and origins
	shares   map[*ir.Node]float64
	squeezes map[*ir.Value]*Squeeze // of the values that are squeezed
	parts    map[*ir.Value]*Parts   // of results of attention, and of views of them
	sums     map[*ir.Value]*Sums    // of values that are normalised
	seconds  map[*ir.Node]*Group    // of products, those that are carried out with them
	paired   map[*ir.Node]bool      // those that are carried out with others
	late     postponed

	target    target.Target
	kernels   *rkernels.Catalogue
	open      map[*ir.Value]bool // values whose extents have been reported
	tooOld    map[string]bool    // kernels of the current group that the target cannot run
	precision precision.Choice
	axes      *axes.Axes // nil if all extents are the same in all runs
	// conditions are those under which nodes are needed at all.
	conditions map[*ir.Node][]Condition
	counts     map[int]roperator.View // of ranges, the extents that the device has found so far
	loops      loops
	callerMaps int // tensor maps that matrices of the caller may take
	inWords    map[*roperator.Buffer]bool
}

// New starts to lower g for a target, with the kernels of a catalogue and p's precisions. lowerNode lowers a single node.
func New(g *ir.Graph, t target.Target, kernels *rkernels.Catalogue, p precision.Choice,
	lowerNode func(b *Builder, n *ir.Node)) *Builder {
	if t.VEUs < 1 {
		panic("BUG: lowering for no device")
	}
	return &Builder{
		source: g, graph: &roperator.Graph{Name: g.Name},
		views: map[*ir.Value]roperator.View{}, homes: map[*ir.Value]roperator.View{},
		consts: map[*ir.Tensor]*roperator.Buffer{}, packed: map[string]*roperator.Buffer{},
		largest: map[int]float32{}, inWords: map[*roperator.Buffer]bool{},
		names: map[string]int{}, shares: shares(g),
		squeezes: map[*ir.Value]*Squeeze{}, parts: map[*ir.Value]*Parts{}, sums: map[*ir.Value]*Sums{}, seconds: map[*ir.Node]*Group{},
		paired: map[*ir.Node]bool{}, late: newPostponed(lowerNode), target: t, kernels: kernels, precision: p, counts: map[int]roperator.View{},
		open: map[*ir.Value]bool{},
	}
}

// TakeCallerMap takes a place for the tensor map of a matrix of the caller, of which there are `most` in the parameter
// of launches. False: there is none left, or the matrix may have fewer rows in a run than in its tensor map, and copies
// would read beyond it.
func (b *Builder) TakeCallerMap(most int) bool {
	if b.callerMaps == most || b.axes != nil {
		return false
	}
	b.callerMaps++
	return true
}

// AddInput gives v, the next input of the program, a buffer, and reads v from there.
func (b *Builder) AddInput(v *ir.Value) {
	dims := b.Extents(v, ForBuffer)
	b.views[v] = b.port(&b.graph.Inputs, roperator.Input, v, dims)
}

// AddOutput gives v, the next output of the program, a buffer, and returns the view of it. The caller decides whether
// v is written there by its producer or copied there in the end.
func (b *Builder) AddOutput(v *ir.Value) roperator.View {
	return b.port(&b.graph.Outputs, roperator.Output, v, b.Extents(v, ForBuffer))
}

func (b *Builder) port(ports *[]roperator.Port, kind roperator.BufferKind, v *ir.Value, dims []int64) roperator.View {
	buf := b.NewBuffer(v.Name, kind, v.DType, dims)
	buf.Index = len(*ports)
	p := roperator.Port{Name: v.Name, DType: v.DType, Dims: dims, Buffer: buf.ID}
	if b.axes != nil {
		p.Axes = b.axes.Of[v]
		buf.Factors = axes.Join(p.Axes...)
	}
	*ports = append(*ports, p)
	return roperator.Contiguous(buf, dims)
}

// KeepState makes the latest output, whose view is at, the place of a state: input has its elements there when the program
// begins. Along dim axis it has as many as the range grows says, unless that is "".
func (b *Builder) KeepState(input *ir.Value, at roperator.View, axis int, grows string, next ir.Dim) {
	port := &b.graph.Outputs[len(b.graph.Outputs)-1]
	s := &roperator.State{Input: input.Name, Grows: -1, Next: next}
	s.Axes = axes.StaticAxes(port.Dims)
	if b.axes != nil {
		s.Axes = slices.Clone(b.axes.Of[input])
	}
	if grows != "" {
		s.Grows = b.rangeOf(grows)
		s.Axes[axis] = axes.Axis{{Symbol: s.Grows, N: port.Dims[axis]}}
	}
	port.State, at.Buf.State = s, true
	b.views[input] = at
}

// LatestState is the state that KeepState has made last.
func (b *Builder) LatestState() *roperator.State {
	return b.graph.Outputs[len(b.graph.Outputs)-1].State
}

// SetAxes says which axes of the graph's values have extents that only a run knows. It comes before all else.
func (b *Builder) SetAxes(x *axes.Axes) { b.axes, b.graph.Ranges = x, x.Ranges }

// Axis is the axis of dim d of a value of the graph, counted from the last one if d is negative.
func (b *Builder) Axis(v *ir.Value, d int) axes.Axis {
	if d < 0 {
		d += len(v.Shape)
	}
	if b.axes == nil {
		return axes.StaticAxis(b.Extents(v, ForTiles)[d])
	}
	return b.axes.Of[v][d]
}

// OutputBuffer is the buffer of output i of the program.
func (b *Builder) OutputBuffer(i int) *roperator.Buffer {
	return b.graph.Buffers[b.graph.Outputs[i].Buffer]
}

// Group is the group that is being lowered.
func (b *Builder) Group() *Group { return b.group }

// Enter begins to lower g. From now on rOperators and buffers are named after it.
func (b *Builder) Enter(g *Group) {
	b.group, b.tooOld, b.loops.now = g, map[string]bool{}, b.loops.of[g.Node]
}

// Share is the part of the device that g may count on while it runs; see shares.
func (b *Builder) Share(g *Group) float64 { return b.shares[g.Node] }

// Report keeps a finding about the model, for Problems and Finish.
func (b *Builder) Report(d *diag.Diagnostic) { b.diags.Add(d) }

// Problems are the findings so far as one error, nil if there are none.
func (b *Builder) Problems() error { return b.diags.Err() }

// Known is the view of v, if v has been lowered already.
func (b *Builder) Known(v *ir.Value) (view roperator.View, ok bool) {
	view, ok = b.views[v]
	return view, ok
}

// Bind says that v is what view shows.
func (b *Builder) Bind(v *ir.Value, view roperator.View) { b.views[v] = view }

// Home is the view that v must be written to, if that has been decided.
func (b *Builder) Home(v *ir.Value) (home roperator.View, ok bool) {
	home, ok = b.homes[v]
	return home, ok
}

// SendTo makes v's producer write to home, unless v is written elsewhere already or has no producer.
func (b *Builder) SendTo(v *ir.Value, home roperator.View) {
	if _, taken := b.homes[v]; !taken && v.Def != nil {
		b.homes[v] = home
	}
}

// In is the view from which v is read: v is an input, a constant, or made by an earlier node.
func (b *Builder) In(v *ir.Value) roperator.View {
	if view, ok := b.views[v]; ok {
		return view
	}
	if v.Const != nil {
		return b.Constant(v.Name, v.Const)
	}
	// The producer of v could not be lowered, and that has been reported. With a buffer for v the rest of the graph
	// can be lowered, and checked.
	view := roperator.Contiguous(b.NewBuffer(v.Name, roperator.Arena, v.DType, b.Extents(v, ForBuffer)),
		b.Extents(v, ForBuffer))
	b.views[v] = view
	return view
}

// Out is the view that the node which makes v must write: its part of an output buffer or of a concatenation, or else
// a new buffer in the arena.
func (b *Builder) Out(v *ir.Value) roperator.View {
	if view, ok := b.views[v]; ok {
		return view
	}
	view, ok := b.homes[v]
	if !ok {
		view = b.Store(v)
	}
	b.views[v] = view
	return view
}

// Store makes a buffer in the arena for v, whose elements stand there in v's order.
func (b *Builder) Store(v *ir.Value) roperator.View {
	return b.store(v, v.Order)
}

// store makes a buffer in the arena for v, whose dims lie there in the given order, from the outermost to the innermost;
// a nil order is that of v's dims.
func (b *Builder) store(v *ir.Value, order []int) roperator.View {
	dims := b.Extents(v, ForBuffer)
	buf := b.NewBuffer(v.Name, roperator.Arena, v.DType, dims)
	b.storeAxes(buf, v, order)
	return roperator.InOrder(buf, dims, order)
}

// storeAxes tells a buffer that it has the axes of v in the given order, from the outermost to the innermost; a nil order
// is that of v's dims.
func (b *Builder) storeAxes(buf *roperator.Buffer, v *ir.Value, order []int) {
	if b.axes == nil {
		return
	}
	list := b.axes.Of[v]
	if list == nil {
		return // a value that lowering has made
	}
	if order != nil {
		list = make([]axes.Axis, len(order))
		for i, d := range order {
			list[i] = b.axes.Of[v][d]
		}
	}
	buf.Factors = axes.Join(list...)
}

// StoreIn makes a buffer in the arena for v, whose dims lie there in the given order, from the outermost to the
// innermost, and binds v to it.
func (b *Builder) StoreIn(v *ir.Value, order []int) {
	b.Bind(v, b.store(v, order))
}

// Temp makes a buffer in the arena for data that one rOperator of the group hands to another.
func (b *Builder) Temp(what string, d ir.DType, dims []int64) roperator.View {
	return roperator.Contiguous(b.NewBuffer(b.group.Node.Name+"."+what, roperator.Arena, d, dims), dims)
}

// Constant is the view of a constant of the model, in the order of its elements there.
func (b *Builder) Constant(name string, t *ir.Tensor) roperator.View {
	buf, ok := b.consts[t]
	if !ok {
		buf = b.NewBuffer(name, roperator.Const, t.DType, t.Dims)
		buf.Data = func() []byte { return t.LittleEndian() }
		b.consts[t] = buf
	}
	return roperator.Contiguous(buf, t.Dims)
}

// Packed makes a constant buffer of elems elements of type d. Its bytes are computed by pack, when the weights file
// is written and only if a chosen candidate uses it. If sources are given, buffers of the same name and sources are
// one, so name must say all that the layout depends on. In this way the steps of a recurrence share their weights.
func (b *Builder) Packed(name string, d ir.DType, elems int64, pack func() []byte,
	sources ...roperator.View) roperator.View {
	key := ""
	if len(sources) > 0 {
		key = fmt.Sprint(name, elems)
		for _, v := range sources {
			id := -1
			if v.Buf != nil {
				id = v.Buf.ID
			}
			key += fmt.Sprint(id, v.Strided())
		}
		if buf, ok := b.packed[key]; ok {
			return roperator.Contiguous(buf, []int64{elems})
		}
	}
	buf := b.NewBuffer(name, roperator.Const, d, []int64{elems})
	buf.Data = pack
	if key != "" {
		b.packed[key] = buf
	}
	return roperator.Contiguous(buf, []int64{elems})
}

// Precision is how the group that is being lowered makes products of float32.
func (b *Builder) Precision() precision.Precision { return b.precision.Of(b.group.Node) }

// PrecisionOf is how g makes products of float32.
func (b *Builder) PrecisionOf(g *Group) precision.Precision { return b.precision.Of(g.Node) }

// Target is the device that is lowered for.
func (b *Builder) Target() *target.Target { return &b.target }

// Instance binds the kernel called name, or returns nil if the target cannot run it. Candidates with a nil instance
// are dropped by Add.
func (b *Builder) Instance(name string, values ...any) *rkernels.Instance {
	k, err := b.kernels.Find(name)
	if err != nil {
		b.Report(ir.NodeDiag(b.group.Node, "no-kernel", err.Error()))
		return nil
	}
	if !b.target.Runs(k.MinArch) {
		b.tooOld[fmt.Sprintf("%s needs sm_%d", k.Name, k.MinArch)] = true
		return nil
	}
	if k.OnlyArch > 0 && !b.target.Is(k.OnlyArch) {
		b.tooOld[fmt.Sprintf("%s needs sm_%da", k.Name, k.OnlyArch)] = true
		return nil
	}
	return k.Bind(values...)
}

// Fusing is what the manifests say about joining other operators with n, and about its limits.
func (b *Builder) Fusing(n *ir.Node) *rkernels.Fusing { return b.kernels.Fusing(n.Domain, n.Op) }

// Add appends an rOperator of the current group; kind says what it computes, such as "Conv+Relu" or "copy". If the
// target can run none of the candidates, that is reported.
func (b *Builder) Add(kind string, candidates ...*roperator.Candidate) {
	candidates = slices.DeleteFunc(candidates, func(c *roperator.Candidate) bool { return c.Inst == nil })
	if len(candidates) == 0 {
		b.reportNone(kind)
		return
	}
	for _, c := range candidates {
		b.readCounts(c)
		b.readConditions(c)
		b.noteWords(c)
	}
	base := b.group.Node.Name
	if base == "" {
		base = b.group.Node.Op
	}
	name := base
	if k := b.names[base]; k > 0 {
		name = fmt.Sprintf("%s.%d", base, k)
	}
	b.names[base]++
	op := &roperator.ROperator{ID: len(b.graph.Ops), Name: name, Kind: kind, Origins: b.group.Node.Origins,
		Precision: b.Precision(), Candidates: candidates, Loop: b.loops.now}
	b.graph.Ops = append(b.graph.Ops, op)
}

// reportNone reports which kernels the candidates of an rOperator would have needed.
func (b *Builder) reportNone(kind string) {
	if len(b.tooOld) == 0 {
		if b.diags.Errors() == 0 {
			panic("BUG: rOperator without candidates")
		}
		return // the missing kernels have been reported
	}
	needs := strings.Join(slices.Sorted(maps.Keys(b.tooOld)), ", ")
	b.Report(ir.NodeDiag(b.group.Node, "unsupported-op", fmt.Sprintf("%s has no rKernel that %s can run: %s", kind,
		b.target.Name, needs)))
}

// NewBuffer adds a buffer for a tensor of the given extents.
func (b *Builder) NewBuffer(name string, kind roperator.BufferKind, d ir.DType, dims []int64) *roperator.Buffer {
	buf := &roperator.Buffer{ID: len(b.graph.Buffers), Name: name, Kind: kind, DType: d, Elems: ir.Count(dims),
		Index: -1}
	b.graph.Buffers = append(b.graph.Buffers, buf)
	return buf
}

// Finish completes the rOperator graph with the coordinates of its buffers. If anything has been reported, it returns
// that instead.
func (b *Builder) Finish() (*roperator.Graph, error) {
	if err := b.Problems(); err != nil {
		return nil, err
	}
	b.graph.Canonise()
	return b.graph, nil
}

// HasHome reports whether it has been decided where v must be written.
func (b *Builder) HasHome(v *ir.Value) bool {
	_, ok := b.homes[v]
	return ok
}
