// Package rkernels holds the rKernels: real CUDA source files (.cuh) with YAML manifests, and the Go
// types that bind their template parameters.
//
// To add a variant, copy the smallest neighbour's pair of files <family>/<variant>.cuh and .yaml; the
// manifest is found by its ending, nothing else has to be touched here.
package rkernels

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"sort"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/rkernels/functor"
)

// Files holds every .cuh and .yaml below this folder. Sources include each other with paths relative
// to it, e.g. #include "common/math.cuh".
//
//go:embed */*.cuh */*.yaml
var Files embed.FS

// ParamKind says what a template parameter is.
type ParamKind string

const (
	ParamInt     ParamKind = "int"
	ParamType    ParamKind = "type"
	ParamFunctor ParamKind = "functor"
)

// Param is a template parameter, in template order.
type Param struct {
	Name   string    `yaml:"name"`
	Kind   ParamKind `yaml:"kind"`
	Values []int64   `yaml:"values,omitempty"` // legal values of an int; empty allows any
	Types  []string  `yaml:"types,omitempty"`  // legal C++ types of a type; empty allows any
	Doc    string    `yaml:"doc"`
}

// Kernel is a manifest: what an rKernel needs to be chosen, scheduled and emitted.
type Kernel struct {
	Name   string `yaml:"name"`   // unique, e.g. "gemm_tiled"
	Family string `yaml:"family"` // "gemm", "conv", "map", …
	Type   string `yaml:"type"`   // C++ class template, e.g. "rk::GemmTiled"
	Doc    string `yaml:"doc"`
	// Serves lists the operators it can carry out, for docs and `rammerc inspect`.
	Serves  []string `yaml:"serves"`
	Params  []Param  `yaml:"params"`
	MinArch int      `yaml:"min_arch,omitempty"` // smallest compute capability × 10, e.g. 80; 0 for any
	// Threads, Shared and Registers are formulas over the int parameters: threads and bytes of shared
	// memory of one rTask, and an estimate of registers a thread.
	ThreadsText   string `yaml:"threads"`
	SharedText    string `yaml:"shared"`
	RegistersText string `yaml:"registers"`
	// Resident says that steps of the rKernel on one vEU are run in a loop that keeps something on chip:
	// its class has a struct Resident; load() at the start of a run; and for each step prepare(), before
	// operands have come through the import area, and compute_rtask() (rt/exec/mode_resident.cuh).
	Resident bool `yaml:"resident,omitempty"`
	// Near says that the rKernel is for data that stay in a cluster: it is picked where its operands come
	// through the shared memory of vEUs, whose threads take them from there (rt/exec/mode_near.cuh).
	Near bool `yaml:"near,omitempty"`
	// Direct says that steps which hand over nothing but tagged data may be direct (rt/exec/mode_direct.cuh): every
	// thread polls its own operands, one element of up to so many. 0 for rKernels that have no such steps.
	Direct int `yaml:"direct,omitempty"`
	// StreamsText, if there is one, says that the rKernel takes its packed weights from the vEU's ring
	// (Task::stream), and how many bytes at a time: its kStreamStep, a formula like those above.
	StreamsText string `yaml:"streams,omitempty"`
	// Fuses says, by operator, what the fusing passes may put around it when this rKernel may carry it out.
	Fuses map[string]*Fusing `yaml:"fuses,omitempty"`
	// Packing names how constant operands are re-ordered, in words; the code is beside the lowering.
	Packing string `yaml:"packing,omitempty"`

	Source                              string   `yaml:"-"` // path of the .cuh in Files
	threads, shared, registers, streams *Formula `yaml:"-"`
}

// Load parses every manifest of fsys, sorted by name.
func Load(fsys fs.FS) ([]*Kernel, error) {
	var out []*Kernel
	names := map[string]string{}
	err := fs.WalkDir(fsys, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(p) != ".yaml" {
			return err
		}
		k, err := loadOne(fsys, p)
		if err != nil {
			return err
		}
		if other, ok := names[k.Name]; ok {
			return fmt.Errorf("%s: kernel %s is also in %s", p, k.Name, other)
		}
		names[k.Name] = p
		out = append(out, k)
		return nil
	})
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out, err
}

func loadOne(fsys fs.FS, p string) (*Kernel, error) {
	data, err := fs.ReadFile(fsys, p)
	if err != nil {
		return nil, err
	}
	k := &Kernel{Source: strings.TrimSuffix(p, ".yaml") + ".cuh"}
	dec := yaml.NewDecoder(strings.NewReader(string(data)))
	dec.KnownFields(true)
	if err := dec.Decode(k); err != nil {
		return nil, fmt.Errorf("%s: %v", p, err)
	}
	if _, err := fs.Stat(fsys, k.Source); err != nil {
		return nil, fmt.Errorf("%s: no source file %s", p, k.Source)
	}
	for _, f := range []struct {
		text string
		dst  **Formula
	}{{k.ThreadsText, &k.threads}, {k.SharedText, &k.shared}, {k.RegistersText, &k.registers}, {k.StreamsText, &k.streams}} {
		if f.text == "" && f.dst == &k.streams {
			continue
		}
		if *f.dst, err = ParseFormula(f.text); err != nil {
			return nil, fmt.Errorf("%s: %v", p, err)
		}
	}
	return k, nil
}

// Catalogue is a set of kernels, by name.
type Catalogue struct {
	kernels []*Kernel // sorted by name
	fusing  map[string]*Fusing
}

// NewCatalogue reads every manifest of fsys.
func NewCatalogue(fsys fs.FS) (*Catalogue, error) {
	ks, err := Load(fsys)
	var fusing map[string]*Fusing
	if err == nil {
		fusing, err = joinFusing(ks)
	}
	if err != nil {
		return nil, &diag.Diagnostic{ID: "bad-kernel-manifest", Message: err.Error()}
	}
	return &Catalogue{ks, fusing}, nil
}

// BuiltIn is the catalogue of the kernels that are part of the compiler. It is read once.
var BuiltIn = sync.OnceValues(func() (*Catalogue, error) { return NewCatalogue(Files) })

// Find returns the kernel called name.
func (c *Catalogue) Find(name string) (*Kernel, error) {
	i, ok := slices.BinarySearchFunc(c.kernels, name, func(k *Kernel, name string) int { return strings.Compare(k.Name, name) })
	if !ok {
		return nil, fmt.Errorf("there is no rKernel %s", name)
	}
	return c.kernels[i], nil
}

// Bind makes an instance; values follow Params: int64, int or bool for int; the name of a
// C++ class or an element type for type; *functor.Functor for functor. A value the manifest does not allow is a BUG of the lowering.
func (k *Kernel) Bind(values ...any) *Instance {
	if len(values) != len(k.Params) {
		panic(fmt.Sprintf("BUG: %s takes %d parameters, got %d", k.Name, len(k.Params), len(values)))
	}
	in := &Instance{Kernel: k, Values: make([]Value, len(values))}
	for i, v := range values {
		p := k.Params[i]
		switch v := v.(type) {
		case int:
			in.Values[i].Int = int64(v)
		case int64:
			in.Values[i].Int = v
		case bool:
			if v {
				in.Values[i].Int = 1
			}
		case string:
			in.Values[i].Text = v
		case ir.DType:
			in.Values[i].Text = ElementType(v)
		case *functor.Functor:
			in.Values[i].Functor = v
		default:
			panic(fmt.Sprintf("BUG: %s.%s bound to %T", k.Name, p.Name, v))
		}
		if !p.allows(in.Values[i]) {
			panic(fmt.Sprintf("BUG: %s.%s does not allow %v", k.Name, p.Name, v))
		}
	}
	return in
}

func (p Param) allows(v Value) bool {
	switch p.Kind {
	case ParamFunctor:
		return v.Functor != nil
	case ParamType:
		for _, t := range p.Types {
			if t == v.Text {
				return true
			}
		}
		return len(p.Types) == 0 && v.Text != ""
	}
	for _, n := range p.Values {
		if n == v.Int {
			return true
		}
	}
	return len(p.Values) == 0
}
