// Package custom lowers operators of the user's, which converted kernels carry out (rammerc convert).
package custom

import (
	"fmt"
	"maps"
	"math"
	"strings"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/arg"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/elementwise"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/roperator"
)

// operator is one node while it is lowered.
type operator struct {
	b      *build.Builder
	g      *build.Group
	kernel *rkernels.Kernel
	custom *rkernels.Custom
	env    map[string]int64   // dims and integer attributes
	rest   map[string][]int64 // dims that one name stands for
	values map[string]float64 // attributes
	grid   [3]int64
	views  map[string]roperator.View
	c      *roperator.Candidate
	after  []func() // what remains to be done behind the rOperator
}

// Operator lowers a Fused node with the anchor CustomOperator: one rOperator, whose rTasks are the blocks of the
// kernel.
func Operator(b *build.Builder, g *build.Group) error {
	name := g.Node.Str("kernel", "")
	o := &operator{b: b, g: g, kernel: b.Kernel(name), views: map[string]roperator.View{}}
	if o.kernel == nil {
		return fmt.Errorf("the kernel %s is in no folder that --kernels names", name)
	}
	o.custom = o.kernel.Custom
	if err := o.bind(); err != nil {
		return err
	}
	dynamic, err := o.custom.DynamicBytes(o.env)
	if err != nil {
		return err
	}
	var params []any
	if len(o.kernel.Params) > 0 {
		params = append(params, dynamic)
	}
	o.c = &roperator.Candidate{Inst: o.kernel.Bind(params...), Tasks: int(o.grid[0] * o.grid[1] * o.grid[2])}
	if o.c.Tasks < 1 {
		return fmt.Errorf("the grid %v has no blocks", o.grid)
	}
	var grid rkernels.List
	for d := range o.custom.Launch.Grid {
		grid = append(grid, arg.DivOf(o.grid[d]))
	}
	o.c.Args = []rkernels.Field{{Name: "grid", Value: grid}}
	for i := range o.custom.Arguments {
		if err := o.argument(&o.custom.Arguments[i]); err != nil {
			return err
		}
	}
	b.Add(g.Node.Attrs["body"].G.Name, o.c)
	for _, do := range o.after {
		do()
	}
	return nil
}

// bind finds what the names in formulas stand for, and compares the outputs' shapes with those of the model's function.
func (o *operator) bind() error {
	var shapes [][]int64
	for _, v := range o.g.Node.Inputs {
		shapes = append(shapes, o.b.Extents(v, build.ForBuffer))
	}
	var err error
	if o.env, o.rest, err = o.custom.BindDims(shapes); err != nil {
		return err
	}
	given := map[string]float64{}
	numbers := o.g.Node.Attrs["values"].Floats
	for i, name := range o.g.Node.Attrs["value_names"].Strs {
		given[name] = numbers[i]
	}
	var integers map[string]int64
	if o.values, integers, err = o.custom.Attributes(given); err != nil {
		return err
	}
	maps.Copy(o.env, integers)
	if o.grid, err = o.custom.Blocks(o.env); err != nil {
		return err
	}
	return o.place()
}

// place finds where the tensors lie.
func (o *operator) place() error {
	inputs, outputs := o.custom.Tensors(rkernels.RoleInput), o.custom.Tensors(rkernels.RoleOutput)
	if len(outputs) != len(o.g.Node.Outputs) {
		return fmt.Errorf("has %d outputs, the kernel %d", len(o.g.Node.Outputs), len(outputs))
	}
	for i, a := range inputs {
		v := o.g.Node.Inputs[i]
		if v.DType.String() != a.Type {
			return fmt.Errorf("input %s is %v, the kernel takes %s", a.Name, v.DType, a.Type)
		}
		o.views[a.Name] = elementwise.Contiguous(o.b, o.b.In(v))
	}
	for i, a := range outputs {
		v := o.g.Node.Outputs[i]
		shape, err := o.custom.ShapeOf(a, o.env, o.rest)
		if err != nil {
			return err
		}
		if v.DType.String() != a.Type || fmt.Sprint(shape) != fmt.Sprint(o.b.Extents(v, build.ForBuffer)) {
			return fmt.Errorf("output %s is %v%v for the kernel, %v%v for the model's function", a.Name, a.Type, shape,
				v.DType, o.b.Extents(v, build.ForBuffer))
		}
		out := o.b.Out(v)
		if !out.IsContiguous() {
			dense, strided := o.b.Temp("dense", v.DType, shape), out
			o.after = append(o.after, func() { elementwise.Copy(o.b, strided, dense) })
			out = dense
		}
		o.views[a.Name] = out
	}
	return nil
}

// argument adds an argument of the kernel, and what the rTasks access of it.
func (o *operator) argument(a *rkernels.Argument) error {
	if !a.Role.Tensor() {
		return o.number(a)
	}
	view, ok := o.views[a.Name]
	if !ok {
		shape, err := o.custom.ShapeOf(a, o.env, o.rest)
		if err != nil {
			return err
		}
		d, _ := ir.ParseDType(a.Type)
		view = o.b.Temp(a.Name, d, shape)
	}
	if !a.Unpassed {
		o.c.Args = append(o.c.Args, arg.Ref(a.Name, view))
	}
	bytes := float64(view.Count()) * float64(view.DType().Size())
	if a.Role == rkernels.RoleInput {
		if a.Unpassed {
			return nil
		}
		box, err := o.box(a, view)
		o.c.Reads = roperator.AppendRead(o.c.Reads, view, box)
		o.c.Work.AddRead(view, bytes/float64(o.c.Tasks))
		return err
	}
	switch a.Initial {
	case "":
	case "0":
		zero := o.b.Constant("zero", ir.NewTensor(view.DType()))
		elementwise.Copy(o.b, view, zero.Broadcast(view.Shape))
	default:
		elementwise.Copy(o.b, view, o.views[a.Initial])
	}
	if a.Initial != "" {
		o.c.Reads = roperator.AppendRead(o.c.Reads, view, nil)
	}
	o.c.Writes = append(o.c.Writes, roperator.Access{View: view, Joint: true})
	o.c.Work.WriteBytes += bytes / float64(o.c.Tasks)
	o.c.Work.Flops += float64(view.Count()) / float64(o.c.Tasks)
	return nil
}

// box is what a block reads of an input, nil for all of it.
func (o *operator) box(a *rkernels.Argument, view roperator.View) (func(task int, lo, hi []int64), error) {
	if len(a.Box) != len(view.Shape) {
		return nil, nil
	}
	at := func(task, side, d int) (int64, error) {
		env := map[string]int64{"bx": int64(task) % o.grid[0], "by": int64(task) / o.grid[0] % o.grid[1],
			"bz": int64(task) / o.grid[0] / o.grid[1]}
		for name, v := range o.env {
			env[name] = v
		}
		from, to, _ := strings.Cut(a.Box[d], ":")
		x, err := rkernels.FormulaValue(strings.TrimSpace([]string{from, to}[side]), env)
		return min(max(x, 0), view.Shape[d]), err
	}
	for d := range view.Shape {
		for side := range 2 {
			if _, err := at(0, side, d); err != nil {
				return nil, err
			}
		}
	}
	return func(task int, lo, hi []int64) {
		for d := range lo {
			lo[d], _ = at(task, 0, d)
			hi[d], _ = at(task, 1, d)
		}
	}, nil
}

// number adds a number.
func (o *operator) number(a *rkernels.Argument) error {
	v := o.values[a.Name]
	if a.Role == rkernels.RoleValue {
		n, err := rkernels.FormulaValue(a.Value, o.env)
		if err != nil {
			return err
		}
		v = float64(n)
	}
	field := rkernels.Field{Name: a.Name, Value: rkernels.Int(int64(v))}
	switch a.Type {
	case "float32":
		field.Value = rkernels.Float(v)
	case "float64":
		field.Value = rkernels.Int(int64(math.Float64bits(v)))
	}
	o.c.Args = append(o.c.Args, field)
	return nil
}
