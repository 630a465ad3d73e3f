package codegen

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/rammerc/rammerc/ir/axes"
)

// general reports whether the program is a general one: whether only a run knows some extents.
func (l *layout) general() bool {
	for _, p := range l.parts {
		if p.general() {
			return true
		}
	}
	return l.plan.Graph != nil && len(l.plan.Graph.Ranges) > 0
}

// generalTables writes the rows from which the host run time takes and sets the extents of a run.
func (s *source) generalTables() {
	g := s.plan.Graph
	rows := make([]string, len(g.Ranges))
	for i, r := range g.Ranges {
		values := "nullptr"
		if r.Values != nil {
			values = fmt.Sprintf("range_values_%d", i)
			s.printf("const int64_t %s[] = {%s};\n", values, joinInts(r.Values))
		}
		name := stringTree("", r.Name)
		rows[i] = fmt.Sprintf("    {%s, %d, %d, %s, %d},\n", name.text(0), r.Lo, r.Hi, values, len(r.Values))
	}
	s.printf("const rt::Range ranges[] = {\n%s};\n\n", strings.Join(rows, ""))
	s.generalPorts("input", s.inputs)
	s.generalPorts("output", s.outputs)
	s.applyExtents()
	s.printf("const rt::General general = {%d, ranges, input_axes, output_axes, apply_extents};\n\n", len(g.Ranges))
}

func joinInts(list []int64) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(list), " ", ", "), "[]")
}

// portAxes are the axes of a port, also of one that is the same in all runs.
func portAxes(p port) []axes.Axis {
	if p.Axes != nil {
		return p.Axes
	}
	return axes.StaticAxes(p.Dims)
}

// generalPorts writes the factors of the dims of inputs or outputs.
func (s *source) generalPorts(side string, ports []port) {
	rows := make([]string, len(ports))
	for i, p := range ports {
		cuts, factors := []int64{0}, []string{}
		for _, a := range portAxes(p) {
			for _, f := range a {
				factors = append(factors, fmt.Sprintf("{%d, %d}", f.N, f.Symbol))
			}
			cuts = append(cuts, int64(len(factors)))
		}
		s.printf("const int %s_cuts_%d[] = {%s};\n", side, i, joinInts(cuts))
		s.printf("const rt::Factor %s_factors_%d[] = {%s};\n", side, i, wrap(append(factors, "{}"), 4))
		name := stringTree("", p.Name)
		rows[i] = fmt.Sprintf("    {%s, %d, %d, %s_cuts_%d, %s_factors_%d},\n", name.text(0), p.DType.Size(),
			len(p.Dims), side, i, side, i)
	}
	s.printf("const rt::GeneralPort %s_axes[] = {\n%s    {},\n};\n\n", side, strings.Join(rows, ""))
}

// applyExtents writes the function that puts the extents of a run into Args.
func (s *source) applyExtents() {
	s.printf("// Writes the extents of a run into the Args of the rOperators that must know them.\n" +
		"void apply_extents([[maybe_unused]] char* const* args, [[maybe_unused]] const int64_t* extents) {\n")
	for i, u := range s.ops {
		for _, live := range u.cand.Live {
			s.printf("  reinterpret_cast<kernels::%s::Args*>(args[%d])->%s = static_cast<int32_t>(%s);\n",
				s.instances[u.instance].alias, i, live.Member, extentText(live.Axis))
		}
	}
	s.printf("}\n\n")
}

// extentText is the extent of an axis in C++.
func extentText(a axes.Axis) string {
	parts := make([]string, len(a))
	for i, f := range a {
		parts[i] = fmt.Sprint(f.N)
		if f.Symbol != axes.Static {
			parts[i] = fmt.Sprintf("extents[%d]", f.Symbol)
		}
	}
	return strings.Join(parts, " * ")
}

// dimsInfo is what NAME_dims_info tells.
func (l *layout) dimsInfo() string {
	if !l.general() {
		return ""
	}
	type symbol struct {
		Name   string  `json:"name"`
		Min    int64   `json:"min"`
		Max    int64   `json:"max"`
		Values []int64 `json:"values,omitempty"`
	}
	type tensor struct {
		Name string   `json:"name"`
		Dims []string `json:"dims"`
	}
	var info struct {
		Symbols []symbol `json:"symbols"`
		Inputs  []tensor `json:"inputs"`
		Outputs []tensor `json:"outputs"`
	}
	ranges := l.plan.Graph.Ranges
	for _, r := range ranges {
		info.Symbols = append(info.Symbols, symbol{r.Name, r.Lo, r.Hi, r.Values})
	}
	tensors := func(ports []port) []tensor {
		out := make([]tensor, len(ports))
		for i, p := range ports {
			out[i] = tensor{p.Name, make([]string, len(p.Dims))}
			for d, a := range portAxes(p) {
				out[i].Dims[d] = a.Text(ranges)
			}
		}
		return out
	}
	info.Inputs, info.Outputs = tensors(l.inputs), tensors(l.outputs)
	data, err := json.Marshal(info)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return string(data)
}

// generalContext adds to a context of a general program what the C interface tells of its tensors.
const generalContext = `class GeneralContext : public rt::GeneralContext<Program> {
 public:
  GeneralContext(const rt::Model& m, const rt::General& g, const rt::Options& o)
      : rt::GeneralContext<Program>(m, g, o), general_(g) {
    describe();
  }
  void set_dims(const int64_t* const* dims) {
    rt::GeneralContext<Program>::set_dims(dims);
    describe();
  }
  const @NAME@_io* io() const { return &io_; }

 private:
  // A tensor with the extents of the next inference.
  struct Described {
    std::vector<std::vector<int64_t>> dims;
    std::vector<@NAME@_tensor> tensors;
  };
  void describe() {
    describe(inputs_, input_tensors, general_.inputs, model_.input_count);
    describe(outputs_, output_tensors, general_.outputs, model_.output_count);
    io_ = {model_.input_count, inputs_.tensors.data(), model_.output_count, outputs_.tensors.data()};
  }
  void describe(Described& to, const @NAME@_tensor* largest, const rt::GeneralPort* ports, int count) {
    to.dims.resize(static_cast<size_t>(count)), to.tensors.assign(largest, largest + count);
    for (int i = 0; i < count; ++i) {
      std::vector<int64_t>& dims = to.dims[static_cast<size_t>(i)];
      @NAME@_tensor& t = to.tensors[static_cast<size_t>(i)];
      dims.clear();
      t.bytes = ports[i].element;
      for (int d = 0; d < ports[i].rank; ++d) {
        dims.push_back(extent(ports[i], d));
        t.bytes *= static_cast<size_t>(dims.back());
      }
      t.dims = dims.data();
    }
  }

  const rt::General& general_;
  Described inputs_, outputs_;
  @NAME@_io io_ = {};
};
`

// generalFunctions are the functions that only libraries of general programs have.
const generalFunctions = `
extern "C" {

int @NAME@_set_dims(@NAME@_ctx* ctx, const int64_t* const dims[]) {
  if (!ctx) return @NAME@_BAD_ARGUMENT;
  return rt::guarded([&] { @IN@context_of(ctx).set_dims(dims); },
                     [ctx](const std::string& text) { @IN@context_of(ctx).set_error(text); });
}

const @NAME@_io* @NAME@_ctx_io(const @NAME@_ctx* ctx) { return ctx ? @IN@context_of(ctx).io() : nullptr; }

const char* @NAME@_dims_info(void) {
  return
      @DIMS_INFO@;
}

}  // extern "C"
`
