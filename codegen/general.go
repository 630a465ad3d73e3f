package codegen

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/rammerc/rammerc/ir/axes"
	"github.com/rammerc/rammerc/roperator"
)

// general reports whether the program is a general one: whether only a run knows some extents, or it keeps states, or
// looks at the values of operands.
func (l *layout) general() bool {
	return l.plan.Graph != nil && len(l.plan.Graph.Ranges) > 0 || len(l.visible()) < len(l.outputs) ||
		slices.ContainsFunc(l.parts, (*layout).general)
}

// visible are the outputs of the model, without states and those that tell the host extents or what is wrong.
func (l *layout) visible() []port {
	n := slices.IndexFunc(l.outputs, func(p port) bool { return p.Counts > 0 || p.State != nil || p.Requires != "" })
	if n < 0 {
		return l.outputs
	}
	return l.outputs[:n]
}

// countOutput is the number of the output that tells the host the extent of a range that the device finds, or -1.
func (l *layout) countOutput(r int) int {
	return slices.IndexFunc(l.outputs, func(p port) bool { return p.Counts == r+1 })
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
		rows[i] = fmt.Sprintf("    {%s, %d, %d, %s, %d, %v, %v, %v, %d},\n", name.text(0), r.Lo, r.Hi, values,
			len(r.Values),
			r.Counted, r.Derived(), s.grows(i), s.countOutput(i))
	}
	s.printf("const rt::Range ranges[] = {\n%s    {},\n};\n\n", strings.Join(rows, ""))
	s.generalPorts("input", s.inputs)
	s.generalPorts("output", s.visible())
	s.printf("// Tells the rules of an rOperator the extents of a run that the host knows.\n"+
		"void set_rules(rt::LiveRule (&live)[%d], const int64_t* extents) {\n"+
		"  for (rt::LiveRule& r : live) {\n"+
		"    if (r.found == rt::kKnown) r.extent = static_cast<uint32_t>(extents[r.range]);\n  }\n}\n\n", s.live.rules)
	s.applyExtents()
	s.deriveExtents()
	s.statePorts()
	s.requirements()
	specials, name := s.specialRows(), stringTree("", jsonText(s.extentsText()))
	prompt := "nullptr"
	if s.opt.Prompt != nil {
		prompt = fmt.Sprintf("&specials[%d]", len(s.opt.Specials))
	}
	s.printf("const rt::General general = {%s, %d, ranges, input_axes, %d, output_axes, apply_extents, "+
		"derive_extents, %d, states, advance_extents, requirements, %d, %s, %v, %s};\n\n",
		name.text(0), len(g.Ranges), len(s.visible()), len(s.states()), len(s.opt.Specials), specials, s.opt.Apart,
		prompt)
}

// requirements writes the rows of the outputs that must be 0, and with which message a run fails otherwise.
func (s *source) requirements() {
	s.printf("const rt::Requirement requirements[] = {\n")
	for i, p := range s.outputs {
		if p.Requires != "" {
			message := stringTree("", p.Requires)
			s.printf("    {%d, %s},\n", i, message.text(0))
		}
	}
	s.printf("    {},\n};\n\n")
}

// specialRows writes the rows of the special programs, and returns their name.
func (s *source) specialRows() string {
	if len(s.specials) == 0 {
		return "nullptr"
	}
	s.printf("// The special programs, the smallest first, and that of the prompt.\nconst rt::Special specials[] = {\n")
	for _, p := range s.specials {
		s.printf("    {&%s::model, &%s::general},\n", p.opt.Name, p.opt.Name)
	}
	s.printf("};\n")
	return "specials"
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

// applyExtents writes the function that puts the extents of a run into Args, and into the rules of live rTasks.
func (s *source) applyExtents() {
	s.printf("// Writes the extents of a run into the Args of the rOperators that must know them, and into their rules.\n" +
		"void apply_extents(char* const* args, const int64_t* extents) {\n")
	for i, u := range s.ops {
		in := s.instances[u.instance]
		known := slices.DeleteFunc(slices.Clone(u.cand.Live), func(l roperator.LiveArg) bool {
			return s.foundFactor(l.Axis) >= 0
		})
		if len(known) > 0 {
			s.printf("  {\n    auto& row = *reinterpret_cast<%s*>(args[%d]);\n", s.argsType(in), i)
			for _, live := range known {
				s.printf("    row.args.%s = static_cast<int32_t>(%s);\n", live.Member, extentText(live.Axis))
			}
			s.printf("  }\n")
		}
	}
	for _, in := range s.instances {
		for _, i := range in.ops {
			s.printf("  set_rules(reinterpret_cast<%s*>(args[%d])->live, extents);\n", s.argsType(in), i)
		}
	}
	s.printf("}\n\n")
}

// deriveExtents writes the function that computes the extents that are sums of others.
func (s *source) deriveExtents() {
	s.printf("// Computes the extents that are sums of others.\nvoid derive_extents(int64_t* extents) {\n")
	none := true
	for i, r := range s.plan.Graph.Ranges {
		if r.Derived() {
			none = false
			s.printf("  extents[%d] = %s;\n", i, s.sumText(r.Sum))
		}
	}
	if none {
		s.printf("  (void)extents;\n")
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

// dimTexts are the dims of a port in terms of the symbols.
func (l *layout) dimTexts(p port) []string {
	out := make([]string, len(p.Dims))
	for d, a := range portAxes(p) {
		out[d] = a.Text(l.plan.Graph.Ranges)
	}
	return out
}

// rangeTexts are the ranges of dims, as --dim spells them.
func (l *layout) rangeTexts() []string {
	var out []string
	for i, r := range l.plan.Graph.Ranges {
		if r.Derived() || l.repeats() && l.grows(i) {
			continue // others tell it, or the program counts it
		}
		if r.Counted {
			out = append(out, fmt.Sprintf("%s: 0 to %d, which the program finds", r.Name, r.Hi))
			continue
		}
		out = append(out, r.String())
	}
	return out
}

// extentsText names the program by the extents that it takes: "batch=1..8 seq=1..512".
func (l *layout) extentsText() string {
	if !l.opt.Apart {
		return strings.Join(l.rangeTexts(), " ")
	}
	var parts []string
	for _, r := range l.plan.Graph.Ranges {
		if !r.Counted {
			parts = append(parts, fmt.Sprintf("%s=%d", r.Name, r.Hi))
		}
	}
	return strings.Join(parts, " ")
}

func jsonText(text string) string {
	data, err := json.Marshal(text)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return string(data)
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
		State  bool    `json:"state,omitempty"` // it is how far a state has grown
	}
	type tensor struct {
		Name string   `json:"name"`
		Dims []string `json:"dims"`
	}
	var info struct {
		Symbols []symbol `json:"symbols"`         // that the extents of inputs tell
		Found   []symbol `json:"found,omitempty"` // that the program finds
		Inputs  []tensor `json:"inputs"`
		Outputs []tensor `json:"outputs"`
		// Programs are the extents that the special programs take, the smallest first, and those of the general one.
		Programs []string    `json:"programs"`
		States   []stateInfo `json:"states,omitempty"`
		Generate *Generation `json:"generate,omitempty"`
	}
	ranges := l.plan.Graph.Ranges
	info.Symbols = []symbol{}
	for i, r := range ranges {
		x := symbol{r.Name, r.Lo, r.Hi, r.Values, l.grows(i)}
		switch {
		case r.Derived() || l.repeats() && l.grows(i):
		case r.Counted:
			info.Found = append(info.Found, x)
		default:
			info.Symbols = append(info.Symbols, x)
		}
	}
	tensors := func(ports []port) []tensor {
		out := make([]tensor, len(ports))
		for i, p := range ports {
			out[i] = tensor{p.Name, l.dimTexts(p)}
		}
		return out
	}
	info.Inputs, info.Outputs, info.States = tensors(l.inputs), tensors(l.visible()), l.stateInfos()
	if info.Generate = l.opt.Generate; l.repeats() {
		info.States = nil // a run leaves none behind
	}
	for _, p := range append(slices.Clone(l.replacing()), l) {
		info.Programs = append(info.Programs, p.extentsText())
	}
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
      : rt::GeneralContext<Program>(m, g, o), model_(m), general_(g) {
    describe();
  }
  void set_dims(const int64_t* const* dims) {
    rt::GeneralContext<Program>::set_dims(dims);
    describe();
  }
  void run(const void* const* in, void* const* out, bool on_host) {
    rt::GeneralContext<Program>::run(in, out, on_host);
    describe();
  }
  void run_async(rt::dev::Stream stream, const void* const* in, void* const* out) {
    rt::GeneralContext<Program>::run_async(stream, in, out);
    describe();
  }
  const @NAME@_io* io() const { return &io_; }

 private:
  // Tensors with the extents of the next inference, and those that the latest one has found. Their bytes have room for
  // all that could be found.
  struct Described {
    std::vector<std::vector<int64_t>> dims;
    std::vector<@NAME@_tensor> tensors;
  };
  void describe() {
    describe(inputs_, input_tensors, general_.inputs, model_.input_count);
    describe(outputs_, output_tensors, outputs_of_run(), general_.output_count);
    io_ = {model_.input_count, inputs_.tensors.data(), general_.output_count, outputs_.tensors.data()};
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
        t.bytes *= static_cast<size_t>(extent(ports[i], d, true));
      }
      t.dims = dims.data();
    }
  }

  const rt::Model& model_;
  const rt::General& general_;
  Described inputs_, outputs_;
  @NAME@_io io_ = {};
};
`

// generalFunctions are the functions that only libraries of general programs have.
const generalFunctions = `
extern "C" {

int @NAME@_set_dims(@NAME@_ctx* ctx, const int64_t* const dims[]) {
  if (!ctx) return @IN@no_context();
  return rt::guarded([&] { @IN@context_of(ctx).set_dims(dims); },
                     [ctx](const std::string& text) { @IN@context_of(ctx).set_error(text); });
}

int @NAME@_limit_specials(@NAME@_ctx* ctx, int most) {
  if (!ctx) return @NAME@_BAD_ARGUMENT;
  return rt::guarded([&] { @IN@context_of(ctx).limit_specials(most); },
                     [ctx](const std::string& text) { @IN@context_of(ctx).set_error(text); });
}

const @NAME@_io* @NAME@_ctx_io(const @NAME@_ctx* ctx) { return ctx ? @IN@context_of(ctx).io() : nullptr; }

const char* @NAME@_dims_info(void) {
  return
      @DIMS_INFO@;
}

}  // extern "C"
`
