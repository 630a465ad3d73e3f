package driver

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/tensorio"
	"github.com/rammerc/rammerc/ir"
)

// port is an input or output of a model or a library.
type port struct {
	name  string
	dtype ir.DType
	dims  []int64 // anyExtent for what only running tells, in outputs
}

// anyExtent is the extent of an output dim that depends on data.
const anyExtent = -1

func graphPorts(vs []*ir.Value) []port {
	out := make([]port, len(vs))
	for i, v := range vs {
		dims := make([]int64, len(v.Shape))
		for k, d := range v.Shape {
			n, ok := d.Const()
			if !ok {
				n = anyExtent
			}
			dims[k] = n
		}
		out[i] = port{v.Name, v.DType, dims}
	}
	return out
}

// readInputs reads --input NAME=FILE flags (.npy, .pb, or .npz with :MEMBER) for the given ports.
// Every input needs a value; unknown names are errors that list the valid ones.
func readInputs(ports []port, specs []string) (map[string]*ir.Tensor, error) {
	var l diag.List
	in := map[string]*ir.Tensor{}
	for _, s := range specs {
		name, file, ok := strings.Cut(s, "=")
		if !ok {
			l.Add(usage("bad-flag", "--input %q: want NAME=FILE", s))
			continue
		}
		if in[name] != nil {
			l.Add(usage("bad-flag", "--input %s is given twice", name))
			continue
		}
		p := findPort(ports, name)
		if p == nil {
			l.Add(&diag.Diagnostic{ID: "unknown-input", Message: fmt.Sprintf("there is no input %q", name), Help: "inputs are " + portList(ports)})
			continue
		}
		t, err := tensorio.Read(file, name)
		if err == nil {
			err = fits(p, t)
		}
		if err != nil {
			l.Add(&diag.Diagnostic{ID: "bad-input", File: file, Port: "input " + name, Message: bare(err).Error()})
			continue
		}
		in[name] = t
	}
	for _, p := range ports {
		if in[p.name] == nil && l.Errors() == 0 {
			l.Add(&diag.Diagnostic{ID: "missing-input", Port: "input " + p.name, Message: "has no value", Help: "give --input " + p.name + "=FILE or --random SEED"})
		}
	}
	return in, l.Err()
}

func findPort(ports []port, name string) *port {
	for i := range ports {
		if ports[i].name == name {
			return &ports[i]
		}
	}
	return nil
}

func portList(ports []port) string {
	names := make([]string, len(ports))
	for i, p := range ports {
		names[i] = fmt.Sprintf("%s (%v%s)", p.name, p.dtype, p.shape())
	}
	return strings.Join(names, ", ")
}

// shape prints the port's dims.
func (p *port) shape() string {
	parts := make([]string, len(p.dims))
	for i, n := range p.dims {
		parts[i] = strconv.FormatInt(n, 10)
		if n == anyExtent {
			parts[i] = "?"
		}
	}
	return "[" + strings.Join(parts, ",") + "]"
}

// fits reports how t is not a value of p.
func fits(p *port, t *ir.Tensor) error {
	same := t.DType == p.dtype && len(t.Dims) == len(p.dims)
	for i := 0; same && i < len(p.dims); i++ {
		same = p.dims[i] == anyExtent || p.dims[i] == t.Dims[i]
	}
	if !same {
		return fmt.Errorf("is %v%v, want %v%s", t.DType, ir.Dims(t.Dims...), p.dtype, p.shape())
	}
	return nil
}

func sortedNames[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}

// randomInputs draws inputs from a seed: floats uniform in [-1, 1), integers in [0, limit), bools.
func randomInputs(ports []port, seed uint64, limit int64) map[string]*ir.Tensor {
	in := map[string]*ir.Tensor{}
	for i, p := range ports {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		t := ir.NewTensor(p.dtype, p.dims...)
		fillRandom(t, r, limit)
		in[p.name] = t
	}
	return in
}

func fillRandom(t *ir.Tensor, r *rand.Rand, limit int64) {
	switch d := t.Data.(type) {
	case []float32:
		for i := range d {
			d[i] = 2*r.Float32() - 1
		}
	case []float64:
		for i := range d {
			d[i] = 2*r.Float64() - 1
		}
	case []uint16:
		for i := range d {
			d[i] = randomBits(t.DType, r, limit)
		}
	case []bool:
		for i := range d {
			d[i] = r.IntN(2) == 1
		}
	case []int8:
		fillInts(d, r, min(limit, math.MaxInt8))
	case []int16:
		fillInts(d, r, min(limit, math.MaxInt16))
	case []int32:
		fillInts(d, r, min(limit, math.MaxInt32))
	case []int64:
		fillInts(d, r, limit)
	case []uint8:
		fillInts(d, r, min(limit, math.MaxUint8))
	case []uint32:
		fillInts(d, r, min(limit, math.MaxUint32))
	case []uint64:
		fillInts(d, r, limit)
	}
}

// randomBits are the bits of a float16 or bfloat16 in [0.5, 1) or its negative, or a uint16 in [0, limit).
func randomBits(t ir.DType, r *rand.Rand, limit int64) uint16 {
	switch t {
	case ir.Float16:
		return uint16(14<<10) | uint16(r.IntN(1<<10)) | uint16(r.IntN(2))<<15
	case ir.BFloat16:
		return uint16(126<<7) | uint16(r.IntN(1<<7)) | uint16(r.IntN(2))<<15
	}
	return uint16(r.Int64N(min(limit, 1<<16)))
}

func fillInts[T int8 | int16 | int32 | int64 | uint8 | uint32 | uint64](d []T, r *rand.Rand, limit int64) {
	for i := range d {
		d[i] = T(r.Int64N(limit))
	}
}

// writeTensors writes NAME.npy for each tensor into dir, which is made when missing, and returns the
// paths in order. Names that make the same file name get a number.
func writeTensors(dir string, tensors map[string]*ir.Tensor) ([]string, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, &diag.Diagnostic{ID: "cannot-write", File: dir, Message: bare(err).Error()}
	}
	var paths []string
	for _, name := range sortedNames(tensors) {
		path := filepath.Join(dir, fileName(name)+".npy")
		for i := 2; slices.Contains(paths, path); i++ {
			path = filepath.Join(dir, fmt.Sprintf("%s-%d.npy", fileName(name), i))
		}
		if err := tensorio.WriteNPY(path, tensors[name]); err != nil {
			return nil, &diag.Diagnostic{ID: "cannot-write", File: path, Message: bare(err).Error()}
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// fileName replaces what cannot stand in a file's name.
func fileName(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '/' || r == '\\' || r == ':' || r < ' ' {
			return '_'
		}
		return r
	}, name)
}
