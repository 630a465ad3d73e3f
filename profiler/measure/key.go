package measure

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"sort"
	"strings"
	"sync"

	"github.com/rammerc/rammerc/codegen/backend"
	"github.com/rammerc/rammerc/codegen/rt"
	"github.com/rammerc/rammerc/profiler/db"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/roperator"
)

// Keys makes database keys for one machine and one set of rKernels.
type Keys struct {
	machine db.Machine
	kernels fs.FS

	mu      sync.Mutex
	sources map[string]string // by header: the hash of it and of all that it includes
}

// NewKeys makes keys for the machine, whose RunTime is filled in.
func NewKeys(machine db.Machine, kernels fs.FS) (*Keys, error) {
	k := &Keys{machine: machine, kernels: kernels, sources: map[string]string{}}
	text := ""
	for _, name := range []string{"machine/entry.cuh", "machine/device.cuh", "machine/machine.cu", "machine/evict.cu"} {
		data, err := fs.ReadFile(machineSources, name)
		if err != nil {
			panic("BUG: " + err.Error())
		}
		text += string(data)
	}
	around, err := k.closure("rt/host/harness.cuh")
	k.machine.RunTime = db.Hash(text + around)
	return k, err
}

// Machine is what the keys have in common.
func (k *Keys) Machine() db.Machine { return k.machine }

// Of is the key of a candidate of g.
func (k *Keys) Of(g *roperator.Graph, c *roperator.Candidate) (db.Key, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	header := c.Inst.Kernel.Source
	k.kernels = c.Inst.Kernel.Sources(k.kernels)
	source, ok := k.sources[header]
	if !ok {
		var err error
		if source, err = k.closure(header); err != nil {
			return db.Key{}, err
		}
		k.sources[header] = source
	}
	return db.Key{Machine: k.machine, Source: db.Hash(source + c.Inst.Key()), Args: db.Hash(argsText(g, c))}, nil
}

var includeLine = regexp.MustCompile(`(?m)^\s*#\s*include\s*"([^"]+)"`)

// closure is the hash of a header and of all project headers that it includes, directly or not.
func (k *Keys) closure(header string) (string, error) {
	texts := map[string]string{}
	if err := k.collect(header, texts); err != nil {
		return "", err
	}
	names := make([]string, 0, len(texts))
	for name := range texts {
		names = append(names, name)
	}
	sort.Strings(names)
	var b strings.Builder
	for _, name := range names {
		fmt.Fprintf(&b, "%s %d\n%s", name, len(texts[name]), texts[name])
	}
	return db.Hash(b.String()), nil
}

func (k *Keys) collect(header string, texts map[string]string) error {
	if _, ok := texts[header]; ok {
		return nil
	}
	data, err := k.read(header)
	if err != nil {
		return fmt.Errorf("BUG: header %s is not there: %w", header, err)
	}
	texts[header] = string(data)
	for _, m := range includeLine.FindAllStringSubmatch(string(data), -1) {
		name := m[1]
		if _, err := k.read(name); err != nil {
			name = path.Join(path.Dir(header), name)
		}
		if err := k.collect(name, texts); err != nil {
			return err
		}
	}
	return nil
}

func (k *Keys) read(name string) ([]byte, error) {
	if rest, ok := strings.CutPrefix(name, "rt/"); ok {
		return fs.ReadFile(rt.Files, rest)
	}
	if rest, ok := strings.CutPrefix(name, "backend/"); ok {
		return fs.ReadFile(backend.Files, rest)
	}
	return fs.ReadFile(k.kernels, name)
}

// argsText is what of a candidate's arguments makes a difference to its time: numbers, and of references the size and
// kind of the buffer, whether two are to the same one, and the offset.
func argsText(g *roperator.Graph, c *roperator.Candidate) string {
	a := &argsWriter{g: g, numbers: map[int]int{}}
	fmt.Fprintf(&a.b, "%d rTasks;", c.Tasks)
	for _, f := range c.Args {
		a.value(f.Name, f.Value)
	}
	if len(c.Imports)+len(c.Exports) > 0 {
		fmt.Fprintf(&a.b, "%d imports in %d words, %d exports;", len(c.Imports), c.ImportArea(), len(c.Exports))
	}
	if c.Stream != nil {
		ref, n := c.Stream(0)
		a.value("stream", ref)
		fmt.Fprintf(&a.b, "%d bytes;", n)
	}
	return a.b.String()
}

type argsWriter struct {
	g       *roperator.Graph
	numbers map[int]int // of buffers, in the order in which arguments name them
	b       strings.Builder
}

func (a *argsWriter) value(name string, v rkernels.ArgValue) {
	switch v := v.(type) {
	case rkernels.Int, rkernels.Float:
		fmt.Fprintf(&a.b, "%s=%v;", name, v)
	case rkernels.Ref:
		n, ok := a.numbers[v.Buffer]
		if !ok {
			n = len(a.numbers)
			a.numbers[v.Buffer] = n
		}
		buf := a.g.Buffers[v.Buffer]
		fmt.Fprintf(&a.b, "%s=b%d %v %v[%d]+%d;", name, n, buf.Kind == roperator.Const, buf.DType, buf.Elems, v.Offset)
	case rkernels.TiledMatrix:
		a.value(name, v.Matrix)
		fmt.Fprintf(&a.b, "%dx%d by %d in %d;", v.Rows, v.Columns, v.RowBytes, v.BoxRows)
		if v.Images.Count > 0 {
			fmt.Fprintf(&a.b, "%v;", v.Images)
		}
	case rkernels.List:
		fmt.Fprintf(&a.b, "%s=[", name)
		for _, x := range v {
			a.value("", x)
		}
		a.b.WriteString("]")
	case rkernels.Struct:
		fmt.Fprintf(&a.b, "%s={", name)
		for _, x := range v {
			a.value(x.Name, x.Value)
		}
		a.b.WriteString("}")
	default:
		panic(fmt.Sprintf("BUG: argument value %T", v))
	}
}
