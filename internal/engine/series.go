package engine

import (
	"fmt"
	"strings"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/limits"
	"github.com/rammerc/rammerc/internal/tensorio"
	"github.com/rammerc/rammerc/ir"
)

// column is the tensor that a flag names for one port. Where the tensor has more rows along the first axis than the
// port, each inference gets a piece of it; otherwise every inference gets all of it:
//
//	port x float32[2,3], file of float32[5,3]      inference 0: rows 0 1    1: rows 2 3    2: rows 4 4, keep 1
type column struct {
	Port
	whole *ir.Tensor // nil when it is cut
	raw   []byte
	rows  int64
}

// Series cuts files that hold many samples along the first axis into inferences. input and expect are NAME=FILE
// flags for inputs and outputs. All files that are cut must hold equally many samples. Inputs that no flag gives are
// taken from drawn, the same ones for every inference; where that is nil every input needs a file.
func Series(inputs, outputs []Port, input, expect []string, drawn Tensors) (*Samples, error) {
	var l diag.List
	in := readColumns(&l, inputs, input, "input")
	want := readColumns(&l, outputs, expect, "output")
	for _, p := range inputs {
		switch {
		case l.Errors() > 0 || hasColumn(in, p.Name):
		case drawn != nil:
			in = append(in, &column{Port: p, whole: drawn[p.Name]})
		default:
			l.Add(missingInput(p.Name))
		}
	}
	rows, batch := sameRows(&l, append(append([]*column{}, in...), want...))
	if err := l.Err(); err != nil {
		return nil, err
	}
	n := 1
	if rows > 0 {
		n = int((rows + batch - 1) / batch)
	}
	return &Samples{n, len(want) > 0, func(i int) Sample {
		x := Sample{In: cut(in, i)}
		if len(want) > 0 {
			x.Want = cut(want, i)
		}
		if left := rows - int64(i)*batch; rows > 0 && left < batch {
			x.Keep = left
		}
		return x
	}}, nil
}

func hasColumn(cs []*column, name string) bool {
	for _, c := range cs {
		if c.Name == name {
			return true
		}
	}
	return false
}

// readColumns reads NAME=FILE flags.
func readColumns(l *diag.List, ports []Port, specs []string, what string) []*column {
	var out []*column
	for _, spec := range specs {
		name, file, ok := strings.Cut(spec, "=")
		p := FindPort(ports, name)
		switch {
		case !ok:
			l.Add(diag.New("bad-flag", "%q: want NAME=FILE", spec))
		case p == nil:
			l.Add(&diag.Diagnostic{
				ID: "unknown-" + what, Message: fmt.Sprintf("there is no %s %q", what, name),
				Help: what + "s are " + PortList(ports),
			})
		case hasColumn(out, name):
			l.Add(diag.New("bad-flag", "%s %s is given twice", what, name))
		default:
			t, err := tensorio.Read(file, name, p.acceptsRows)
			var c *column
			if err == nil {
				c, err = newColumn(*p, t)
			}
			if err != nil {
				l.Add(badInput(file, what+" "+name, err))
				continue
			}
			out = append(out, c)
		}
	}
	return out
}

// acceptsRows returns an error that says why a tensor of a type and shape has neither a value of p nor several of them
// along its first axis.
func (p *Port) acceptsRows(d ir.DType, dims []int64) error {
	if p.accepts(d, dims) == nil {
		return nil
	}
	cuttable := len(p.Dims) > 0 && p.Dims[0] > 0 && len(dims) == len(p.Dims)
	if !cuttable || d != p.DType || dims[0] == 0 || !ir.Dims(dims[1:]...).Equal(ir.Dims(p.Dims[1:]...)) {
		return fmt.Errorf("is %v%v, want %v%s or more samples along the first axis", d, ir.Dims(dims...), p.DType, p.Shape())
	}
	// While the samples are cut, there are several copies of them.
	const copies = 4
	if err := limits.CheckMemory("copies of the samples", copies*ir.Count(dims)*int64(d.Size())); err != nil {
		return err
	}
	return nil
}

func newColumn(p Port, t *ir.Tensor) (*column, error) {
	if err := p.acceptsRows(t.DType, t.Dims); err != nil {
		return nil, err
	}
	if p.accepts(t.DType, t.Dims) == nil {
		return &column{Port: p, whole: t}, nil
	}
	return &column{Port: p, raw: t.LittleEndian(), rows: t.Dims[0]}, nil
}

// sameRows returns how many samples the columns that are cut hold, and how many of them make an inference. Both
// are 0 when no column is cut.
func sameRows(l *diag.List, cs []*column) (rows, batch int64) {
	var first *column
	for _, c := range cs {
		switch {
		case c.whole != nil:
		case first == nil:
			first, rows, batch = c, c.rows, c.Dims[0]
		case c.rows != rows || c.Dims[0] != batch:
			l.Add(diag.New("bad-input", "%s has %d samples for batches of %d, %s has %d for batches of %d",
				first.Name, rows, batch, c.Name, c.rows, c.Dims[0]))
		}
	}
	return rows, batch
}

// cut takes each column's piece for inference i. Behind the last row of a file that row is repeated.
func cut(cs []*column, i int) Tensors {
	out := Tensors{}
	for _, c := range cs {
		if c.whole != nil {
			out[c.Name] = c.whole
			continue
		}
		row := int64(len(c.raw)) / c.rows
		var piece []byte
		for k := int64(i) * c.Dims[0]; k < int64(i+1)*c.Dims[0]; k++ {
			at := min(k, c.rows-1) * row
			piece = append(piece, c.raw[at:at+row]...)
		}
		out[c.Name] = tensorOf(c.DType, c.Dims, piece)
	}
	return out
}

// keepRows returns the first keep rows of t along its first axis, or t itself when keep is 0.
func keepRows(t *ir.Tensor, keep int64) *ir.Tensor {
	if keep == 0 || t == nil || len(t.Dims) == 0 || keep >= t.Dims[0] {
		return t
	}
	raw := t.LittleEndian()
	return tensorOf(t.DType, append([]int64{keep}, t.Dims[1:]...), raw[:int64(len(raw))/t.Dims[0]*keep])
}

func tensorOf(d ir.DType, dims []int64, raw []byte) *ir.Tensor {
	t, err := ir.TensorFromBytes(d, dims, raw)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return t
}
