package codegen

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"

	"github.com/rammerc/rammerc/codegen/abi"
	"github.com/rammerc/rammerc/schema"
	"github.com/rammerc/rammerc/vdevice"
)

// Cubin is a program for callers of CUDA's driver interface, whose source was emitted. When that is compiled, Finish
// writes what callers need beside the cubin.
type Cubin struct {
	l    *layout
	told told
	args []argsPlace // of each rOperator
}

// argsPlace is where the Args of an rOperator are among those of all, in bytes, and their length in units of 16 bytes.
type argsPlace struct{ at, words int }

// EmitCubin writes the source of a program without host code, to be compiled into a cubin, or for the emulator into a
// shared library; its weights; and NAME.plan.json. Programs with dims that have ranges, with states, or with loops, are
// refused: what changes from run to run and from turn to turn is set by the C++ run time.
func EmitCubin(plan *vdevice.Plan, opt Options, sink Sink) (*Cubin, error) {
	opt.Name, opt.cubin = abi.Identifier(opt.Name), true
	l, err := newLayout(plan, opt, opt.sources(plan))
	if err != nil {
		return nil, err
	}
	if l.general() || opt.beside() {
		return nil, problem("cubin-general", "some extents are known to a run alone, or states are kept: "+
			"the C++ run time of a library does that, and a cubin has none")
	}
	if len(plan.Graph.Loops) > 0 {
		return nil, problem("cubin-general", "a part of the program is repeated, for a recurrence of many steps: "+
			"the C++ run time of a library does that, and a cubin has none")
	}
	if l.mostCallerMaps() > 0 {
		return nil, problem("cubin-general", "copy engines read an input or output of the model, whose tensor maps the C++ "+
			"run time of a library makes for each inference, and a cubin has none")
	}
	if l.hash, err = writeFile(sink, opt.Name+".weights", l.writeWeights); err != nil {
		return nil, err
	}
	n := opt.Name
	list := append(besideHeaders(), file{n + ".cu", l.writeSource}, file{n + ".map", text(exportMap(n))},
		file{n + ".plan.json", l.writePlan})
	return &Cubin{l: l}, writeFiles(sink, list)
}

// told are the variables in which a cubin tells the compiler what follows from C++'s layout of types (rt/host/cubin.h).
type told struct {
	parameter map[string]int
	limits    [][]uint32 // of each kernel: rt::KernelLimits
	sizes     [][]uint32 // of each launch: rt::LaunchSize
}

// parameterFields are the members of rt::ParameterLayout in order.
var parameterFields = []string{
	"bytes", "steps", "waits", "moves", "args", "ranges", "op_args", "op_words", "first_step", "step_stride", "weights",
	"persistent", "segment", "launch", "first_veu", "cluster", "shared", "stages", "flags", "tagged", "max_steps",
	"reports", "bases", "report_bytes", "line_bytes",
}

// Variables of a cubin, behind the program's name.
const (
	toldParameter = "_parameter_layout"
	toldLimits    = "_kernel_limits"
	toldSizes     = "_launch_sizes"
	toldArgsBytes = "_args_bytes"
)

// entryName is the name by which callers ask for a kernel of a cubin.
func entryName(name string, kernel int) string { return fmt.Sprintf("%s_kernel%d", name, kernel) }

// cubinCode writes the kernels under names that callers can ask for, and the variables that the compiler reads.
func (s *source) cubinCode() {
	n := s.opt.Name
	s.printf("// Kernels for callers of the driver's interface, and variables from which the compiler learns their sizes.\n" +
		"extern \"C\" {\n\n")
	for k := range s.kernels {
		s.printf("RT_CUBIN_KERNEL(%s, %s)\n", entryName(n, k), kernelName(k))
	}
	s.printf("\nRT_CUBIN_VARIABLE rt::ParameterLayout %s%s = rt::parameter_layout<Program>();\n", n, toldParameter)
	s.printf("RT_CUBIN_VARIABLE rt::KernelLimits %s%s[] = {\n", n, toldLimits)
	for k := range s.kernels {
		s.printf("    rt::kernel_limits<Program, %s>(),\n", kernelName(k))
	}
	s.printf("};\nRT_CUBIN_VARIABLE rt::LaunchSize %s%s[] = {\n", n, toldSizes)
	for i := range s.segments {
		t := &s.segments[i]
		for k, x := range t.launches {
			s.printf("    rt::launch_size<%s>(%d, %d, %v, %v),\n", kernelName(x.kernel), x.shared, x.chunks,
				t.whole(k), x.overlap && x.alone)
		}
	}
	s.printf("};\nRT_CUBIN_VARIABLE uint32_t %s%s[] = {\n", n, toldArgsBytes)
	for _, in := range s.instances {
		s.printf("    sizeof(%s),\n", s.argsType(in))
	}
	s.printf("};\n\n")
	s.arguments()
	s.printf("}  // extern \"C\"\n")
}

// whole says that a launch of a segment is an rProgram's persistent one.
func (t *segmentTables) whole(launch int) bool { return launch == 0 && t.kind == vdevice.RProgram }

// A Symbols finds the bytes that a variable of a compiled program has at first.
type Symbols interface {
	Bytes(name string) ([]byte, error)
}

// Finish writes NAME.launches.json, and NAME.tables with the program tables and the rOperators' arguments, from what the
// compiled program tells of itself. The file cubin stands beside them.
func (c *Cubin) Finish(cubin string, image Symbols, sink Sink) error {
	if err := c.read(image); err != nil {
		return err
	}
	tables, err := c.tables(image)
	if err != nil {
		return err
	}
	name := c.l.opt.Name
	list := c.list(cubin, int64(len(tables)))
	data, err := json.Marshal(list)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return writeFiles(sink, []file{
		{name + ".tables", func(w io.Writer) error { _, err := w.Write(tables); return err }},
		{name + ".launches.json", text(string(data) + "\n")},
	})
}

func (c *Cubin) read(image Symbols) error {
	rows := func(variable string, n, words int) ([][]uint32, error) {
		data, err := image.Bytes(c.l.opt.Name + variable)
		if err != nil {
			return nil, err
		}
		if len(data) != 4*n*words {
			return nil, fmt.Errorf("%s%s has %d bytes, want %d", c.l.opt.Name, variable, len(data), 4*n*words)
		}
		out := make([][]uint32, n)
		for i := range out {
			out[i] = make([]uint32, words)
			for k := range words {
				out[i][k] = binary.LittleEndian.Uint32(data[4*(words*i+k):])
			}
		}
		return out, nil
	}
	layout, err := rows(toldParameter, 1, len(parameterFields))
	if err != nil {
		return err
	}
	c.told.parameter = map[string]int{}
	for i, f := range parameterFields {
		c.told.parameter[f] = int(layout[0][i])
	}
	if c.told.limits, err = rows(toldLimits, len(c.l.kernels), 3); err != nil {
		return err
	}
	launches := 0
	for _, t := range c.l.segments {
		launches += len(t.launches)
	}
	c.told.sizes, err = rows(toldSizes, launches, 2)
	return err
}

// tables are the program tables, with the places of the rOperators' arguments filled in, and those arguments behind them.
func (c *Cubin) tables(image Symbols) ([]byte, error) {
	l := c.l
	sizes, err := image.Bytes(l.opt.Name + toldArgsBytes)
	if err != nil {
		return nil, err
	}
	var args []byte
	c.args = make([]argsPlace, len(l.ops))
	for i, u := range l.ops {
		in := l.instances[u.instance]
		rows, err := image.Bytes(cubinArgs(l.opt.Name, in))
		if err != nil {
			return nil, err
		}
		size := int(binary.LittleEndian.Uint32(sizes[4*u.instance:]))
		if len(rows) != size*len(in.ops) {
			return nil, fmt.Errorf("%s has %d bytes, want %d rows of %d", cubinArgs(l.opt.Name, in), len(rows), len(in.ops), size)
		}
		c.args[i] = argsPlace{len(args), (size + 15) / 16}
		args = padTo(append(args, rows[u.row*size:(u.row+1)*size]...), 16)
	}
	var out []byte
	for _, t := range l.segments {
		data := append([]byte(nil), t.data...)
		for k := range t.stepCount {
			row := data[t.steps-t.at+int64(k)*schema.StepBytes:]
			place := c.args[binary.LittleEndian.Uint32(row)]
			binary.LittleEndian.PutUint32(row[stepArgsAt:], uint32(place.at))
			binary.LittleEndian.PutUint16(row[stepArgsWordsAt:], uint16(place.words))
		}
		out = append(out, data...)
	}
	return append(padTo(out, schema.ConstantAlign), args...), nil
}

// Where a schema.Step has the place of its arguments and their length; rt/schema/tables.cuh asserts these offsets.
const stepArgsAt, stepArgsWordsAt = 8, 20

// cubinArgs is the variable of a cubin that has the arguments of an instance.
func cubinArgs(name string, in instance) string { return name + "_" + argsName(in) }
