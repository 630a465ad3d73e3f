package driver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/tensorio"
	"github.com/rammerc/rammerc/ir"
)

// bound reads the --bind flags, NAME=NUMBERS or NAME=@FILE.
func (o *ModelOptions) bound(l *diag.List) map[string]*ir.Tensor {
	out := map[string]*ir.Tensor{}
	for _, s := range o.Binds {
		name, text, ok := cutBind(s)
		if !ok {
			l.Add(diag.New("bad-flag", "--bind %q: want NAME=[1,2] or NAME=@FILE", s))
			continue
		}
		if out[name] != nil {
			l.Add(diag.New("bad-flag", "--bind %s is given twice", name))
			continue
		}
		if file, isFile := strings.CutPrefix(text, "@"); isFile {
			t, err := tensorio.Read(file, name, nil)
			if err != nil {
				l.Add(&diag.Diagnostic{ID: "bad-input", File: file, Port: "input " + name,
					Message: diag.Reason(err).Error()})
				continue
			}
			out[name] = t
			continue
		}
		t, err := parseNumbers(text)
		if err != nil {
			l.Add(diag.New("bad-flag", "--bind %s: %v", s, err))
			continue
		}
		out[name] = t
	}
	return out
}

// cutBind splits NAME=VALUE. Names may hold "=" too, so it splits at the first "=@", or else at the last "=", which no
// list of numbers holds.
func cutBind(s string) (name, text string, ok bool) {
	if name, text, ok = strings.Cut(s, "=@"); ok {
		return name, "@" + text, name != ""
	}
	name, text, ok = cutLast(s, "=")
	return name, text, ok && name != ""
}

// parseNumbers reads a number, true or false, or nested lists of these. The tensor is of int64 when all numbers are
// whole, and of float64 otherwise. The importer converts it to the type of the input.
func parseNumbers(text string) (*ir.Tensor, error) {
	dec := json.NewDecoder(bytes.NewReader([]byte(text)))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, errors.New("want a number or a list like [1,2]")
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is something behind the number or list")
	}
	var n numberList
	if err := n.read(v, 0); err != nil {
		return nil, err
	}
	if n.whole {
		return ir.FromSlice(ir.Int64, n.ints, n.dims...), nil
	}
	return ir.FromSlice(ir.Float64, n.floats, n.dims...), nil
}

// numberList collects the numbers of nested lists, which must have the same lengths at each depth.
type numberList struct {
	dims   []int64
	leaf   int // depth of the numbers + 1, 0 before the first one
	whole  bool
	ints   []int64
	floats []float64
}

func (n *numberList) read(v any, depth int) error {
	switch v := v.(type) {
	case []any:
		return n.list(v, depth)
	case bool:
		if v {
			return n.number("1", depth)
		}
		return n.number("0", depth)
	case json.Number:
		return n.number(v, depth)
	}
	return fmt.Errorf("%v is neither a number nor a list", v)
}

func (n *numberList) list(v []any, depth int) error {
	switch {
	case n.leaf > 0 && depth >= n.leaf-1:
		return errors.New("there are numbers and lists side by side")
	case depth == len(n.dims):
		n.dims = append(n.dims, int64(len(v)))
	case n.dims[depth] != int64(len(v)):
		return fmt.Errorf("there are lists of %d and of %d elements side by side", n.dims[depth], len(v))
	}
	if len(v) == 0 && n.leaf == 0 {
		n.whole = true
	}
	for _, x := range v {
		if err := n.read(x, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (n *numberList) number(x json.Number, depth int) error {
	if n.leaf == 0 {
		n.leaf, n.whole = depth+1, true
	}
	if n.leaf != depth+1 || depth != len(n.dims) {
		return errors.New("there are numbers and lists side by side")
	}
	f, err := x.Float64()
	if err != nil {
		return fmt.Errorf("%v is out of range", x)
	}
	i, err := x.Int64()
	n.whole = n.whole && err == nil
	n.ints, n.floats = append(n.ints, i), append(n.floats, f)
	return nil
}
