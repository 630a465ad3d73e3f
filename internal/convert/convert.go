// Package convert makes rKernels of kernels that are written in CUDA for a launch of their own (Rammer §4.1.4). The
// body of a kernel stays as it is. What changes is where a thread learns who it is, and with whom it meets: blocks
// become rTasks, the threads of a block the threads of the rTask, __syncthreads a barrier of the rTask's threads, and
// variables in shared memory places in the rTask's shared memory.
//
//	__global__ void scale(float* y, int n) {              RT_DEVICE void scale(Launch& launch, float* y, int n) {
//	  int i = blockIdx.x * blockDim.x + threadIdx.x;        int i = launch.blockIdx.x * launch.blockDim.x + …;
//	  if (i < n) y[i] *= 2;                                 if (i < n) y[i] *= 2;
//	}                                                     }
package convert

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/limits"
	"github.com/rammerc/rammerc/internal/outdir"
)

// Options says what to convert.
type Options struct {
	Source string // a .cu or .cuh file
	Spec   string // a YAML file
	Python string // that has the parser; "" for process.Python
}

// Result is an rKernel.
type Result struct {
	Spec     *Spec
	Header   string // the source, NAME.cuh
	Manifest string // NAME.yaml
	// Leaves says that threads of a block may end before others meet, so that barriers count those who are left.
	Leaves bool
	// Static is the bytes of static shared memory.
	Static int64

	original  original
	reference string // a file in Python that goes beside the manifest; "" for none
}

// original is the unchanged kernel with what it needs, for the comparison.
type original struct {
	items, macros string // as program.print gives them
	call          string // the kernel, with template arguments, as it is called in the namespace of the items
	namespaces    []string
	headers       []string
	dynamic       []dynamicArray
	parameters    []parameter
}

// Convert makes an rKernel of a kernel.
func Convert(ctx context.Context, o Options) (*Result, error) {
	spec, err := ReadSpec(o.Spec)
	if err != nil {
		return nil, err
	}
	p := &program{spec: spec}
	if err := p.read(ctx, o.Python, o.Source, 0); err != nil {
		return nil, err
	}
	if err := p.find(); err != nil {
		return nil, err
	}
	p.take()
	var l diag.List
	p.refuse(&l)
	p.checkArguments(&l, o.Spec)
	if err := l.Err(); err != nil {
		return nil, err
	}
	r := &rewriter{p: p, u: p.analyse(), l: &l, launch: p.launchName(), shared: &shared{}, edits: map[*source]*edits{}}
	r.leaves = p.leaves(r.u)
	r.rewrite()
	if err := l.Err(); err != nil {
		return nil, err
	}
	out := &Result{Spec: spec, Leaves: r.leaves, Static: r.shared.bytes}
	if ref := spec.Reference; ref != nil {
		out.reference = filepath.Join(filepath.Dir(o.Spec), ref.Python)
	}
	out.Header = r.header()
	if out.Manifest, err = r.manifest(); err != nil {
		return nil, err
	}
	out.original = p.unchanged()
	out.original.dynamic = r.shared.dynamic
	return out, nil
}

// unchanged is the kernel as it was, with what it needs.
func (p *program) unchanged() original {
	o := original{namespaces: namespacesOf(p.kernel.it), headers: p.headers, parameters: p.parameters()}
	o.items, o.macros = p.print(func(src *source, n *node) string { return src.text[n.start:n.end] })
	o.call = p.call(strings.Join(append(slices.Clone(o.namespaces), ""), "::"))
	return o
}

// mostIncluded is how deep headers beside the source are followed.
const mostIncluded = 8

// read parses a source and the headers beside it that it includes, which come before it.
func (p *program) read(ctx context.Context, python, path string, depth int) error {
	for _, f := range p.files {
		if f.path == path {
			return nil
		}
	}
	s, err := read(ctx, python, path, p.spec.Blank)
	if err != nil {
		return err
	}
	for _, n := range s.root.children {
		if n.kind != "preproc_include" {
			continue
		}
		name := s.of(n.child("path"))
		beside := filepath.Join(filepath.Dir(path), strings.Trim(name, `"`))
		if _, err := os.Stat(beside); err == nil && strings.HasPrefix(name, `"`) && depth < mostIncluded {
			if err := p.read(ctx, python, beside, depth+1); err != nil {
				return err
			}
			continue
		}
		p.include(name)
	}
	p.files = append(p.files, s)
	p.items = append(p.items, collect(s, s.root, nil)...)
	return nil
}

// systemHeaders are headers that a kernel may need, and whether only CUDA's compiler has them; the emulator brings what
// they declare.
var systemHeaders = map[string]bool{
	"<cuda_fp16.h>": true, "<cuda_bf16.h>": true, "<math_constants.h>": true, "<math.h>": false, "<cmath>": false,
	"<stdint.h>": false, "<cstdint>": false, "<float.h>": false, "<cfloat>": false, "<limits.h>": false,
	"<climits>": false, "<limits>": false, "<type_traits>": false, "<utility>": false, "<stdio.h>": false,
	"<cstdio>": false, "<assert.h>": false, "<cassert>": false, "<stddef.h>": false, "<cstddef>": false,
	"<algorithm>": false, "<cstring>": false, "<string.h>": false,
}

func (p *program) include(name string) {
	name = strings.ReplaceAll(name, `"cuda_fp16.h"`, "<cuda_fp16.h>")
	list := &p.dropped
	if _, ok := systemHeaders[name]; ok {
		list = &p.headers
	}
	if !slices.Contains(*list, name) {
		*list = append(*list, name)
	}
}

// checkArguments compares the specification with the kernel's parameters.
func (p *program) checkArguments(l *diag.List, spec string) {
	params, args := p.parameters(), p.spec.Passed()
	if len(params) != len(args) {
		l.Add(p.kernel.it.src.at(p.kernel.node, "bad-kernel-spec", "list all of them under arguments, in order",
			"%s has %d parameters, and %s has %d arguments", p.kernel.name, len(params), spec, len(args)))
		return
	}
	for i, param := range params {
		a := args[i]
		switch {
		case param.pointer != a.Role.Tensor():
			l.Add(p.kernel.it.src.at(param.node, "bad-kernel-spec", "",
				"%s is a pointer: %v; %s gives it the role %s", param.name, param.pointer, spec, a.Role))
		case !param.pointer && a.Type == "" && p.numberType(param) == "":
			l.Add(p.kernel.it.src.at(param.node, "not-convertible",
				"only pointers and numbers can be parameters; of a "+
					"number the specification can give the type",
				"the type of parameter %s is not known as a number: %s", param.name, param.text))
		}
	}
}

// numberType is the member of Args that holds a number that is passed for a parameter, "" if it is no number.
func (p *program) numberType(param parameter) string {
	c := scope{p.kernel.it.src, p.kernel.node, p.kernel.name}
	text := strings.Join(strings.Fields(param.text), " ")
	if kind, value := p.templateArgument(c, text); kind == typeParameter && value != "" {
		text = value
	}
	switch text {
	case "float", "half", "__half", "__nv_bfloat16":
		return "float32"
	case "double":
		return "float64"
	}
	switch size := typeSizes[text]; {
	case size == 0 || size > 8 || strings.ContainsAny(text, "234") && !strings.Contains(text, "int"):
		return ""
	case size == 8:
		return "int64"
	}
	return "int32"
}

// namespacesOf lists the namespaces around an item.
func namespacesOf(it *item) []string {
	var out []string
	for _, w := range it.around {
		if name, ok := strings.CutPrefix(w.before, "namespace "); ok {
			if name = strings.TrimSpace(strings.TrimSuffix(name, "{")); name != "" {
				out = append(out, name)
			}
		}
	}
	return out
}

// Write puts the rKernel into a folder: the header, its manifest, and the reference in Python if there is one.
func (r *Result) Write(dir string) ([]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	var out []string
	files := map[string]string{r.Spec.Name + ".cuh": r.Header, r.Spec.Name + ".yaml": r.Manifest}
	if r.reference != "" {
		text, err := limits.Read(r.reference, maxSpec)
		if err != nil {
			return nil, unreadable(r.reference, err)
		}
		files[r.Spec.Reference.Python] = string(text)
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := outdir.WriteFile(path, []byte(text)); err != nil {
			return nil, fmt.Errorf("cannot write: %w", err)
		}
		out = append(out, path)
	}
	slices.Sort(out)
	return out, nil
}
