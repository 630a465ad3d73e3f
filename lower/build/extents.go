package build

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/ir"
)

// Need says why an extent has to be a constant when a program is compiled. Extents that are only known when the
// program runs, between bounds, would have to do without each of these.
type Need string

// The needs of lowering.
const (
	ForBuffer Need = "buffers are laid out when the program is compiled"
	ForTiles  Need = "rTasks are cut and counted when the program is compiled"
	ForView   Need = "strides of views are arguments of rKernels"
	ForValue  Need = "its elements are made when the program is compiled"
)

// Extents are the extents of v, which must all be constants because of need. Every lowering asks here. An extent that
// is a symbol is reported, once for each value, and stands for 1 in what is returned, so that lowering can go on and
// find what else is wrong.
func (b *Builder) Extents(v *ir.Value, need Need) []int64 {
	if dims, ok := v.Shape.Consts(); ok {
		return dims
	}
	if !b.open[v] {
		b.open[v] = true
		b.Report(notStatic(v, need))
	}
	dims := make([]int64, len(v.Shape))
	for i, d := range v.Shape {
		dims[i] = 1
		if n, ok := d.Const(); ok {
			dims[i] = n
		}
	}
	return dims
}

// notStatic says that v has extents that are no constants, where it comes from, and which symbols must be bound.
func notStatic(v *ir.Value, need Need) *diag.Diagnostic {
	d := &diag.Diagnostic{}
	if v.Def != nil {
		d = ir.NodeDiag(v.Def, "", "")
	}
	d.ID, d.Port, d.DType = "dynamic-extent", "value "+v.Name, v.DType.String()
	d.Message = fmt.Sprintf("the shape %v is not constant: %s", v.Shape, need)
	symbols := map[string]bool{}
	for _, x := range v.Shape {
		x.Symbols(symbols)
	}
	var flags []string
	for s := range symbols {
		flags = append(flags, fmt.Sprintf("--dim %s=N", s))
	}
	slices.Sort(flags)
	if len(flags) > 0 {
		d.Help = "fix its extents when compiling, with " + strings.Join(flags, " ")
	}
	return d
}
