package engine

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/tensorio"
	"github.com/rammerc/rammerc/ir"
)

// Port is an input or output of a model or a library.
type Port struct {
	Name  string
	DType ir.DType
	Dims  []int64 // AnyExtent where only an inference tells the extent, in outputs
}

// AnyExtent is the extent of an output dim that depends on data.
const AnyExtent = -1

// GraphPorts describes inputs or outputs of a graph.
func GraphPorts(vs []*ir.Value) []Port {
	out := make([]Port, len(vs))
	for i, v := range vs {
		dims := make([]int64, len(v.Shape))
		for k, d := range v.Shape {
			n, ok := d.Const()
			if !ok {
				n = AnyExtent
			}
			dims[k] = n
		}
		out[i] = Port{v.Name, v.DType, dims}
	}
	return out
}

// FindPort returns the port of that name, nil if there is none.
func FindPort(ports []Port, name string) *Port {
	for i := range ports {
		if ports[i].Name == name {
			return &ports[i]
		}
	}
	return nil
}

// PortList names ports with their types, for messages.
func PortList(ports []Port) string {
	names := make([]string, len(ports))
	for i, p := range ports {
		names[i] = fmt.Sprintf("%s (%v%s)", p.Name, p.DType, p.Shape())
	}
	return strings.Join(names, ", ")
}

// Shape prints the port's dims, such as "[1,3,?]".
func (p *Port) Shape() string {
	parts := make([]string, len(p.Dims))
	for i, n := range p.Dims {
		parts[i] = strconv.FormatInt(n, 10)
		if n == AnyExtent {
			parts[i] = "?"
		}
	}
	return "[" + strings.Join(parts, ",") + "]"
}

// accepts returns an error that says why t cannot be a value of p, nil if it can.
func (p *Port) accepts(t *ir.Tensor) error {
	same := t.DType == p.DType && len(t.Dims) == len(p.Dims)
	for i := 0; same && i < len(p.Dims); i++ {
		same = p.Dims[i] == AnyExtent || p.Dims[i] == t.Dims[i]
	}
	if !same {
		return fmt.Errorf("is %v%v, want %v%s", t.DType, ir.Dims(t.Dims...), p.DType, p.Shape())
	}
	return nil
}

// ReadInputs reads --input NAME=FILE flags (.npy, .pb, or .npz with :MEMBER) for the given ports. Every port needs
// a value; for an unknown name the error lists the valid ones.
func ReadInputs(ports []Port, specs []string) (Tensors, error) {
	var l diag.List
	in := Tensors{}
	for _, s := range specs {
		name, file, ok := strings.Cut(s, "=")
		if !ok {
			l.Add(diag.New("bad-flag", "--input %q: want NAME=FILE", s))
			continue
		}
		if in[name] != nil {
			l.Add(diag.New("bad-flag", "--input %s is given twice", name))
			continue
		}
		p := FindPort(ports, name)
		if p == nil {
			l.Add(&diag.Diagnostic{
				ID: "unknown-input", Message: fmt.Sprintf("there is no input %q", name), Help: "inputs are " + PortList(ports),
			})
			continue
		}
		t, err := tensorio.Read(file, name)
		if err == nil {
			err = p.accepts(t)
		}
		if err != nil {
			l.Add(badInput(file, "input "+name, err))
			continue
		}
		in[name] = t
	}
	for _, p := range ports {
		if in[p.Name] == nil && l.Errors() == 0 {
			d := missingInput(p.Name)
			d.Help += " or --random SEED"
			l.Add(d)
		}
	}
	return in, l.Err()
}

func badInput(file, port string, err error) *diag.Diagnostic {
	return &diag.Diagnostic{ID: "bad-input", File: file, Port: port, Message: diag.Reason(err).Error()}
}

func missingInput(name string) *diag.Diagnostic {
	return &diag.Diagnostic{
		ID: "missing-input", Port: "input " + name, Message: "has no value", Help: "give --input " + name + "=FILE",
	}
}
