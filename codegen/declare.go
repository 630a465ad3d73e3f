package codegen

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/rkernels/functor"
	"github.com/rammerc/rammerc/roperator"
)

// Declarations collects the C++ declarations of rKernel instances for programs that run candidates without a plan:
// tests of rKernels, and measurements. Every distinct functor and instance is declared once.
type Declarations struct {
	includes  map[string]bool
	functors  map[string]string // key → name of the struct
	instances map[string]string // key → alias
	text      strings.Builder
}

// NewDeclarations makes an empty collection.
func NewDeclarations() *Declarations {
	return &Declarations{includes: map[string]bool{}, functors: map[string]string{}, instances: map[string]string{}}
}

// Instance is the C++ name of an instance, which is declared before if it is new.
func (d *Declarations) Instance(in *rkernels.Instance) (alias string, isNew bool) {
	if alias, ok := d.instances[in.Key()]; ok {
		return alias, false
	}
	d.includes[in.Kernel.Source] = true
	alias = fmt.Sprintf("K%d", len(d.instances))
	d.instances[in.Key()] = alias
	typ := InstanceType(in, d.functor)
	fmt.Fprintf(&d.text, "using %s = %s;  // %s\n", alias, typ, in.Name())
	return alias, true
}

func (d *Declarations) functor(f *functor.Functor) string {
	if name, ok := d.functors[f.Key()]; ok {
		return name
	}
	name := fmt.Sprintf("F%d", len(d.functors))
	d.functors[f.Key()] = name
	fmt.Fprintf(&d.text, "struct %s {  // %s\n%s};\n", name, strings.ReplaceAll(FunctorNote(f), "\n", " "),
		FunctorBody(f))
	return name
}

// Printf adds to the declarations.
func (d *Declarations) Printf(format string, args ...any) { fmt.Fprintf(&d.text, format, args...) }

// Includes are the lines that include the headers of the instances' rKernels.
func (d *Declarations) Includes() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(d.includes)) {
		fmt.Fprintf(&b, "#include %q\n", name)
	}
	return b.String()
}

// String is the declarations in the order in which they were made.
func (d *Declarations) String() string { return d.text.String() }

// Initialiser spells the members of an rKernel's Args where all buffers lie in the arena. offsets says where, by
// roperator.Buffer.ID, in bytes.
func Initialiser(args []rkernels.Field, offsets []int64) string {
	parts := make([]string, len(args))
	for i, f := range args {
		parts[i] = "." + f.Name + " = " + initialiserOf(f.Value, offsets)
	}
	return strings.Join(parts, ", ")
}

func initialiserOf(v rkernels.ArgValue, offsets []int64) string {
	switch v := v.(type) {
	case rkernels.Int:
		return intLiteral(int64(v))
	case rkernels.Float:
		return fmt.Sprintf("rk::bit_cast<float>(uint32_t(%d))", math.Float32bits(float32(v)))
	case rkernels.Ref:
		return RefInitialiser(v, offsets)
	case rkernels.TiledMatrix: // without a tensor map, which the emulator does not need
		row := tensorMapRow(v, 0, 0)
		return fmt.Sprintf("{.at = RT_ARENA(%d), .row_bytes = %d, .columns = %d, .rows = %d, .box_rows = %d, "+
			".element_bytes = %d, .plain = %d, .width = %d, .height = %d, .line_bytes = %d, .image_bytes = %d, .first_x = %du, "+
			".first_y = %du, .positions_w = %d, .positions_h = %d, .stride_x = %d, .stride_y = %d}",
			offsets[v.Matrix.Buffer]+v.Matrix.Offset, row.RowBytes, row.Columns, row.Rows, row.BoxRows, row.ElementBytes, row.Plain,
			row.Width, row.Height, row.LineBytes, row.ImageBytes, row.FirstX, row.FirstY, row.PositionsW, row.PositionsH,
			row.StrideX, row.StrideY)
	case rkernels.List:
		parts := make([]string, len(v))
		for i, e := range v {
			parts[i] = initialiserOf(e, offsets)
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case rkernels.Struct:
		return "{" + Initialiser(v, offsets) + "}"
	}
	panic(fmt.Sprintf("BUG: argument of type %T", v))
}

// RefInitialiser spells a reference where all buffers lie in the arena.
func RefInitialiser(r rkernels.Ref, offsets []int64) string {
	return fmt.Sprintf("rt::Ref{RT_ARENA(%d)}", offsets[r.Buffer]+r.Offset)
}

// BlockInitialisers spells the weight blocks of a candidate that streams weights, as rt::harness::Block of each rTask.
func BlockInitialisers(c *roperator.Candidate, offsets []int64) string {
	var b strings.Builder
	for t := range c.Tasks {
		ref, n := c.Stream(t)
		fmt.Fprintf(&b, "{%s, %d}, ", RefInitialiser(ref, offsets), n/roperator.StreamAlign)
	}
	return b.String()
}

// MoveInitialisers spells the moves of a candidate whose operands the executor brings and whose results it takes, as
// rt::Move: of each rTask the same number of imports, then of exports. Moves of no elements fill up where an rTask has
// fewer. All data are in plain memory.
func MoveInitialisers(c *roperator.Candidate, offsets []int64) (text string, imports, exports int) {
	tasks := make([][2][]string, c.Tasks)
	for t := range tasks {
		tasks[t] = [2][]string{plainMoves(c.Imports, offsets, t), plainMoves(c.Exports, offsets, t)}
		imports, exports = max(imports, len(tasks[t][0])), max(exports, len(tasks[t][1]))
	}
	var b strings.Builder
	for _, sides := range tasks {
		for side, n := range []int{imports, exports} {
			for i := range n {
				move := "{}"
				if i < len(sides[side]) {
					move = sides[side][i]
				}
				b.WriteString(move + ", ")
			}
		}
	}
	return b.String(), imports, exports
}

func plainMoves(list []roperator.Staged, offsets []int64, task int) []string {
	var out []string
	for i := range list {
		buf := list[i].Access.View.Buf
		for _, r := range list[i].AppendRuns(nil, task) {
			at := rkernels.Ref{Buffer: buf.ID, Offset: roperator.WordBytes * r.Elem}
			out = append(out, fmt.Sprintf("{%s.bits, %d, %d, %d}", RefInitialiser(at, offsets), r.At, r.Stride, r.Count))
		}
	}
	return out
}
