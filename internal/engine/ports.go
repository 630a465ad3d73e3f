package engine

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/limits"
	"github.com/rammerc/rammerc/internal/runner"
	"github.com/rammerc/rammerc/internal/tensorio"
	"github.com/rammerc/rammerc/ir"
)

// Port is an input or output of a model or a library.
type Port struct {
	Name  string
	DType ir.DType
	Dims  []int64 // AnyExtent where only an inference tells the extent
	// Symbols are the names and ranges of the dims that have ranges; nil for other dims, and at the end.
	Symbols []*runner.Symbol
	// Domain is where the input's numbers must lie by what the model does with them; nil if nothing is known.
	Domain *Domain
	// Strings is what the numbers of a port of strings stand for; nil for other ports.
	Strings *ir.Strings
}

// symbol is the symbol of dim d, nil if it has none.
func (p *Port) symbol(d int) *runner.Symbol {
	if d < len(p.Symbols) {
		return p.Symbols[d]
	}
	return nil
}

// WithSymbols tells ports the symbols of their dims; dims spells those of each port: a number, a symbol, or a sum such as
// past+1.
func WithSymbols(ports []Port, symbols []runner.Symbol, dims func(port, dim int) string) {
	for i := range ports {
		p := &ports[i]
		p.Symbols = make([]*runner.Symbol, len(p.Dims))
		for d := range p.Dims {
			if s := symbolOf(symbols, dims(i, d)); s != nil {
				p.Symbols[d], p.Dims[d] = s, AnyExtent
			}
		}
	}
}

// symbolOf is the symbol that a dim is, or one that stands for a sum of several; nil for other dims.
func symbolOf(symbols []runner.Symbol, text string) *runner.Symbol {
	for k := range symbols {
		if symbols[k].Name == text {
			return &symbols[k]
		}
	}
	sum, err := ir.ParseDim(text)
	if err != nil {
		return nil
	}
	s, names := &runner.Symbol{Name: text}, map[string]bool{}
	sum.Symbols(names)
	for k := range symbols {
		if names[symbols[k].Name] {
			s.Parts = append(s.Parts, &symbols[k])
			delete(names, symbols[k].Name)
		}
	}
	if len(s.Parts) == 0 || len(names) > 0 {
		return nil
	}
	i := sum.Bounds(func(name string) (ir.Interval, bool) {
		for _, x := range s.Parts {
			if x.Name == name {
				return ir.Interval{Lo: x.Min, Hi: x.Max}, true
			}
		}
		return ir.Interval{}, false
	})
	s.Min, s.Max = i.Lo, i.Hi
	return s
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
		out[i] = Port{Name: v.Name, DType: v.DType, Dims: dims}
	}
	return out
}

// WithDomains tells the inputs of a graph, or of a library that was made of it, where their numbers must lie.
func WithDomains(inputs []Port, g *ir.Graph) {
	domains := Domains(g)
	for i := range inputs {
		if d, ok := domains[inputs[i].Name]; ok {
			inputs[i].Domain = &d
		}
	}
}

// InputPorts describes the inputs of a graph.
func InputPorts(g *ir.Graph) []Port {
	ports := GraphPorts(g.Inputs)
	WithDomains(ports, g)
	return ports
}

// Fits reports whether a port of a library is this port of its model: the compiler may know extents that the model's
// own shapes leave to an inference.
func (m *Port) Fits(library Port) bool {
	return m.DType == library.DType && slices.EqualFunc(m.Dims, library.Dims, func(model, compiled int64) bool {
		return model == compiled || model == AnyExtent
	})
}

// CheckMemory returns an error if the values of ports take more memory together than the process may use for them.
func CheckMemory(what string, ports []Port) error {
	total := int64(0)
	for _, p := range ports {
		bytes := int64(max(p.DType.Size(), 1))
		for d, n := range p.Dims {
			if s := p.symbol(d); s != nil {
				n = s.Max
			}
			if n = max(n, 1); bytes > math.MaxInt64/n {
				bytes = math.MaxInt64
				break
			}
			bytes *= n
		}
		total += min(bytes, math.MaxInt64-total)
	}
	if err := limits.CheckMemory("the model's "+what, total); err != nil {
		return &diag.Diagnostic{ID: "too-large", Message: err.Error()}
	}
	return nil
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

// accepts returns an error that says why a tensor of a type and shape cannot be a value of p, nil if it can.
func (p *Port) accepts(d ir.DType, dims []int64) error {
	same := (d == p.DType || d == ir.String && p.Strings != nil) && len(dims) == len(p.Dims)
	for i := 0; same && i < len(p.Dims); i++ {
		same = p.Dims[i] == AnyExtent || p.Dims[i] == dims[i]
	}
	if !same {
		return fmt.Errorf("is %v%v, want %v%s", d, ir.Dims(dims...), p.DType, p.Shape())
	}
	return nil
}

// ReadInputs reads --input flags for the given ports: NAME=FILE with a .npy, .pb or .npz file (FILE.npz:MEMBER for one
// of several arrays), or FILE.npz whose arrays have the names of inputs. Inputs that no flag gives are taken from
// drawn; where that is nil every port needs a value. For an unknown name the error lists the valid ones.
func ReadInputs(ports []Port, specs []string, drawn Tensors) (Tensors, error) {
	var l diag.List
	in := Tensors{}
	for _, s := range specs {
		name, file, ok := strings.Cut(s, "=")
		switch {
		case ok:
			var accept tensorio.Accept
			if p := FindPort(ports, name); p != nil {
				accept = p.accepts
			}
			t, err := tensorio.Read(file, name, accept)
			addInput(&l, in, ports, name, file, t, err)
		case strings.HasSuffix(s, ".npz"):
			all, err := tensorio.ReadAll(s, func(name string, d ir.DType, dims []int64) bool {
				p := FindPort(ports, name)
				if p == nil {
					return false
				}
				err := p.accepts(d, dims)
				if err != nil {
					l.Add(badInput(s, "input "+name, err))
				}
				return err == nil
			})
			if err != nil {
				l.Add(&diag.Diagnostic{ID: "bad-input", File: s, Message: diag.Reason(err).Error()})
			}
			for _, name := range slices.Sorted(maps.Keys(all)) {
				addInput(&l, in, ports, name, s, all[name], nil)
			}
		default:
			l.Add(diag.New("bad-flag", "--input %q: want NAME=FILE or FILE.npz", s))
		}
	}
	for _, p := range ports {
		switch {
		case in[p.Name] != nil || l.Errors() > 0:
		case drawn != nil:
			in[p.Name] = drawn[p.Name]
		default:
			d := missingInput(p.Name)
			d.Help += " or --random SEED"
			l.Add(d)
		}
	}
	return in, l.Err()
}

// addInput adds the tensor that was read for an input, or what is wrong with it; err is that of reading.
func addInput(l *diag.List, in Tensors, ports []Port, name, file string, t *ir.Tensor, err error) {
	p := FindPort(ports, name)
	switch {
	case in[name] != nil:
		l.Add(diag.New("bad-flag", "--input %s is given twice", name))
		return
	case p == nil:
		l.Add(&diag.Diagnostic{
			ID: "unknown-input", Message: fmt.Sprintf("there is no input %q", name), Help: "inputs are " +
				PortList(ports),
		})
		return
	case err == nil && t == nil:
		return // what is wrong with it has been said
	case err == nil:
		err = p.accepts(t.DType, t.Dims)
	}
	if err != nil {
		l.Add(badInput(file, "input "+name, err))
		return
	}
	in[name] = p.numbered(t)
}

func badInput(file, port string, err error) *diag.Diagnostic {
	return &diag.Diagnostic{ID: "bad-input", File: file, Port: port, Message: diag.Reason(err).Error()}
}

func missingInput(name string) *diag.Diagnostic {
	return &diag.Diagnostic{
		ID: "missing-input", Port: "input " + name, Message: "has no value", Help: "give --input " + name + "=FILE",
	}
}
