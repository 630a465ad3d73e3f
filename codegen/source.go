package codegen

import (
	"bufio"
	"fmt"
	"io"
	"io/fs"
	"sort"
	"strings"

	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/rkernels/functor"
	"github.com/rammerc/rammerc/schema"
)

// source is the writer of NAME.cu; print errors surface when the buffer is flushed.
type source struct {
	*layout
	w *bufio.Writer
}

func (s *source) printf(format string, args ...any) { fmt.Fprintf(s.w, format, args...) }

// writeSource writes NAME.cu.
func (l *layout) writeSource(w io.Writer) error {
	s := &source{l, bufio.NewWriterSize(w, 1<<18)}
	program := s
	if l.shared != nil {
		program = &source{l.shared, s.w}
	}
	run, err := program.amalgamate()
	if err != nil {
		return err
	}
	s.opening()
	if !l.opt.cubin {
		s.printf("#include \"%s.h\"\n\n", l.opt.Name)
	}
	s.printf("%s", run.includes())
	s.printf("\n%s", unusedFunctions)
	s.printf("// Two libraries made like this one can be linked into one program: all but the C interface is internal.\n" +
		"namespace {\n\n")
	s.printf("%s", run.body.String())
	s.ports()
	program.functorStructs()
	program.instanceAliases()
	program.program()
	for _, p := range l.specials {
		s.partTables(p)
	}
	if l.opt.cubin {
		s.printf("}  // namespace\n\n")
		s.cubinCode()
		return s.w.Flush()
	}
	s.arguments()
	s.model()
	s.printf("}  // namespace\n\n")
	s.interfaceCode()
	return s.w.Flush()
}

// unusedFunctions keeps nvcc from warning of functions that a program does not use.
const unusedFunctions = `#if defined(__CUDACC__)
#pragma nv_diag_suppress 177  // the run time has functions that this program does not use
#endif

`

// functorHeaders declare what generated functors call.
var functorHeaders = []string{"common/math.cuh", "common/operand.cuh"}

// amalgamate joins the run time and the headers of the used rKernels.
func (l *layout) amalgamate() (*amalgam, error) {
	names := []string{"rt/device/device.cuh", "rt/host/context.h"}
	switch {
	case l.opt.cubin:
		names[1] = "rt/host/cubin.h"
	case l.general():
		names[1] = "rt/host/special.h"
	}
	if len(l.functors) > 0 {
		for _, h := range functorHeaders {
			if _, err := fs.Stat(l.sources, h); err == nil { // a set of kernels may do without
				names = append(names, h)
			}
		}
	}
	for _, in := range l.instances {
		names = append(names, in.inst.Kernel.Source)
	}
	sort.Strings(names[2:])
	a := newAmalgam(l.sources, l.usedParts())
	for _, n := range names {
		if err := a.add(n, nil); err != nil {
			return nil, err
		}
	}
	return a, nil
}

func (s *source) ports() {
	if len(s.inputs)+len(s.outputs) == 0 {
		return
	}
	s.printf("// The model's inputs and outputs, as address spaces.\nenum Port : uint64_t {\n")
	n := schema.FirstPortSpace
	for _, ps := range [][]port{s.inputs, s.outputs} {
		for _, p := range ps {
			s.printf("%s", noteLines("  // ", comment(fmt.Sprintf("%s %s%v", p.Name, p.DType, p.Dims))))
			s.printf("  %s = %d,\n", p.space, n)
			n++
		}
	}
	s.printf("};\n\n")
}

// functorStructs writes the functors that the instances are bound to.
func (s *source) functorStructs() {
	if len(s.functors) == 0 {
		return
	}
	const most = 8
	s.printf("// What fusion put before, behind and into the rKernels, with the ONNX nodes that it computes.\n" +
		"namespace functors {\n\n")
	for _, f := range s.functors {
		for _, n := range f.notes[:min(len(f.notes), most)] {
			s.note("", "%s", n)
		}
		if more := len(f.notes) - most; more > 0 {
			s.printf("// … and %d more\n", more)
		}
		s.printf("struct %s {\n%s};\n\n", f.name, indented(FunctorBody(f.Functor)))
	}
	s.printf("}  // namespace functors\n\n")
}

// indented shifts a functor's body to the right when its author left it at the margin.
func indented(body string) string {
	var b strings.Builder
	shift := ""
	if body != "" && !strings.HasPrefix(body, " ") {
		shift = "  "
	}
	for _, line := range strings.Split(strings.Trim(body, "\n"), "\n") {
		if strings.TrimSpace(line) != "" {
			b.WriteString(shift + strings.TrimRight(line, " "))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// instanceAliases names the instances. Above each is what reports call it, with the values of its parameters.
func (s *source) instanceAliases() {
	if len(s.instances) == 0 {
		return
	}
	s.printf("// The distinct rKernel instances of the program.\nnamespace kernels {\n\n")
	for _, in := range s.instances {
		s.note("", "%s, of %s", in.label, count(len(in.ops), "rOperator"))
		head := fmt.Sprintf("using %s = ", in.alias)
		if typ := InstanceType(in.inst, s.functorType); len(head)+len(typ) < lineWidth {
			s.printf("%s%s;\n\n", head, typ)
		} else {
			s.printf("%s\n    %s;\n\n", head[:len(head)-1], wrappedType(in.inst, s.functorType))
		}
	}
	s.printf("}  // namespace kernels\n\n")
}

// wrappedType is an instance's type over several lines, behind four spaces.
func wrappedType(in *rkernels.Instance, spell func(*functor.Functor) string) string {
	args := templateArguments(in, spell)
	head := in.Kernel.Type + "<"
	return head + wrap(args, 4+len(head)) + ">"
}

// arguments writes one array of Args for each instance, an element for each rOperator. Those that the host
// reads are not const: wherever the address of an element of a constant array is taken, nvcc's front end
// looks at all of it, and thousands of rOperators would take minutes.
func (s *source) arguments() {
	s.printf("// Arguments of the rOperators.\n")
	for _, in := range s.instances {
		if len(in.ops) == 0 { // another model of the bundle has it
			continue
		}
		if s.opt.cubin {
			s.printf("RT_CUBIN_VARIABLE %s %s[] = {\n", s.argsType(in), cubinArgs(s.opt.Name, in))
		} else {
			s.printf("static %s %s[] = {\n", s.argsType(in), argsName(in))
		}
		for _, i := range in.ops {
			u := s.ops[i]
			s.printf("%s", noteLines("    // ", comment(s.opTitle(u))))
			args := s.argsTree(u.cand.Args)
			if s.live.rules > 0 {
				args = tree{list: true, items: append([]tree{{head: ".args = ", list: true, items: args.items}},
					s.liveTrees(u)...)}
			}
			s.printf("    %s,\n", args.text(4))
		}
		s.printf("};\n\n")
	}
}

func argsName(in instance) string { return "args_" + in.alias }

// opTitle says what an rOperator is and where it comes from.
func (l *layout) opTitle(u usedOp) string {
	tasks, nodes := count(u.cand.Tasks, "rTask"), nodeNames(u.op.Origins)
	return fmt.Sprintf("%s: %s, %s; ONNX nodes: %s", u.op.Name, u.op.Kind, tasks, nodes)
}
