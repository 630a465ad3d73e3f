// Package rkernels has the rKernels, which are CUDA source files (.cuh) with a manifest in YAML each, and the Go
// types with which the rest of the compiler chooses and binds them.
//
// To add an rKernel, copy the two files of the smallest one in its family, <family>/<variant>.cuh and
// <family>/<variant>.yaml. Manifests are found by the ending of their name; nothing else in this folder has to
// change.
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

	"go.yaml.in/yaml/v3"

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
	// Serves lists the operators that the rKernel can carry out, for documentation and `rammerc inspect`.
	Serves  []string `yaml:"serves"`
	Params  []Param  `yaml:"params"`
	MinArch int      `yaml:"min_arch,omitempty"` // smallest compute capability × 10, e.g. 80; 0 for any
	// OnlyArch is the one compute capability × 10 whose GPUs run the rKernel, 0 where later ones do, too: it uses
	// instructions that a generation has for itself, such as wgmma of sm_90a.
	OnlyArch int `yaml:"only_arch,omitempty"`
	// ThreadsText, SharedText and RegistersText are formulas over the int parameters: the threads of one rTask, its
	// bytes of shared memory, and an estimate of the registers of a thread.
	ThreadsText   string `yaml:"threads"`
	SharedText    string `yaml:"shared"`
	RegistersText string `yaml:"registers"`
	// Resident says that an rTask of the rKernel keeps something on chip from step to step. Consecutive steps of one
	// vEU that run the same rTask are then carried out in one loop (rt/exec/mode_resident.cuh): the class has a
	// struct Resident, which load() fills when the loop starts; prepare() is called in each step before the operands
	// have arrived in the import area, and compute_rtask() after.
	Resident bool `yaml:"resident,omitempty"`
	// Near says that the rKernel is made for vEUs in a cluster: its threads take the operands straight from the slots
	// in shared memory to which other vEUs of the cluster write them (rt/exec/mode_near.cuh).
	Near bool `yaml:"near,omitempty"`
	// Direct is how many operands a thread of the rKernel polls by itself in direct steps, which hand over nothing
	// but tagged words (rt/exec/mode_direct.cuh). It is 0 for rKernels without such steps.
	Direct int `yaml:"direct,omitempty"`
	// StreamsText, if there is one, is a formula for how many bytes of weights the rKernel takes at a time from the
	// ring of its vEU (Task::stream). It must equal the class's kStreamStep.
	StreamsText string `yaml:"streams,omitempty"`
	// Fuses says, for operators that the rKernel may carry out, what the fusing passes may give it to do before and
	// after.
	Fuses map[string]*Fusing `yaml:"fuses,omitempty"`
	// Packing describes the order into which constants are packed. The code that does it is beside the lowering.
	Packing string `yaml:"packing,omitempty"`
	// WholeConstants says that packed constants of float32 are whole numbers of float32 even where three products make up
	// one: the rKernel makes their parts itself.
	WholeConstants bool `yaml:"whole_constants,omitempty"`
	// Custom is what only the manifests of converted kernels say.
	Custom *Custom `yaml:"custom,omitempty"`

	Source                              string   `yaml:"-"` // path of the .cuh in Files
	folder                              string   // of a kernel that a user has brought, else ""
	threads, shared, registers, streams *Formula `yaml:"-"`
}

// Load reads every manifest of fsys. The result is sorted by name.
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
	return sorted(out), err
}

func sorted(kernels []*Kernel) []*Kernel {
	sort.Slice(kernels, func(i, j int) bool { return kernels[i].Name < kernels[j].Name })
	return kernels
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
	}{{k.ThreadsText, &k.threads}, {k.SharedText, &k.shared}, {k.RegistersText, &k.registers},
		{k.StreamsText, &k.streams}} {
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
	return &Catalogue{kernels: ks, fusing: fusing}, nil
}

// BuiltIn is the catalogue of the kernels that are part of the compiler. It is read once.
var BuiltIn = sync.OnceValues(func() (*Catalogue, error) { return NewCatalogue(Files) })

// Find returns the kernel called name.
func (c *Catalogue) Find(name string) (*Kernel, error) {
	i, ok := slices.BinarySearchFunc(c.kernels, name, func(k *Kernel,
		name string) int {
		return strings.Compare(k.Name, name)
	})
	if !ok {
		return nil, fmt.Errorf("there is no rKernel %s", name)
	}
	return c.kernels[i], nil
}

// Bind makes an instance. The values are for Params, in order: an int, int64 or bool for kind int, the name of a C++
// class or an element type (ir.DType) for kind type, a *functor.Functor for kind functor. To bind a value that the
// manifest does not allow is a mistake of a lowering.
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
	in.needs()
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
