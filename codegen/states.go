package codegen

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/axes"
)

// States: outputs of the program that the context keeps, and that its callers do not see.

// states are the outputs that are states.
func (l *layout) states() []port {
	return slices.DeleteFunc(slices.Clone(l.outputs), func(p port) bool { return p.State == nil })
}

// grows reports whether the extent of range r is how far a state has grown.
func (l *layout) grows(r int) bool {
	return slices.ContainsFunc(l.outputs, func(p port) bool { return p.State != nil && p.State.Grows == r })
}

// repeats reports whether a run of the library is several of the program.
func (l *layout) repeats() bool {
	return l.plan.Graph != nil && l.plan.Graph.Repeats()
}

// keeps reports whether a run of the library leaves states to the next one.
func (l *layout) keeps() bool { return len(l.states()) > 0 && !l.repeats() }

// statePorts writes the rows of the states.
func (s *source) statePorts() {
	states := s.states()
	ports := make([]port, len(states))
	for i, p := range states {
		ports[i] = p
		ports[i].Name, ports[i].Axes = p.State.Input, p.State.Axes
	}
	s.generalPorts("state", ports)
	rows := make([]string, len(states))
	for i, p := range states {
		at := slices.IndexFunc(s.outputs, func(o port) bool { return o.Buffer == p.Buffer })
		rows[i] = fmt.Sprintf("    {state_axes[%d], %d, %v, %v},\n", i, at, p.State.Grows >= 0, p.State.Repeats)
	}
	s.printf("const rt::StatePort states[] = {\n%s    {},\n};\n\n", strings.Join(rows, ""))
	s.printf("// Sets the extents of states that grow to what they are behind a run.\n"+
		"void advance_extents(int64_t* extents) {\n%s}\n\n", s.advances())
}

// advances are the statements that let states grow.
func (s *source) advances() string {
	lines := map[int]string{}
	for _, p := range s.states() {
		if r := p.State.Grows; r >= 0 {
			lines[r] = fmt.Sprintf("  extents[%d] = %s;\n", r, s.sumText(p.State.Next))
		}
	}
	text := ""
	for r := range s.plan.Graph.Ranges {
		text += lines[r]
	}
	if text == "" {
		return "  (void)extents;\n"
	}
	return text
}

// sumText is a sum of products of extents in C++.
func (l *layout) sumText(d ir.Dim) string {
	terms, ok := d.Terms()
	if !ok {
		panic("BUG: no sum of products: " + d.String())
	}
	parts := make([]string, len(terms))
	for k, t := range terms {
		factors := []string{fmt.Sprint(t.Coef)}
		for _, name := range t.Symbols {
			at := slices.IndexFunc(l.plan.Graph.Ranges,
				func(r axes.Range) bool { return r.Name == name && !r.Derived() })
			factors = append(factors, fmt.Sprintf("extents[%d]", at))
		}
		if t.Coef == 1 && len(factors) > 1 {
			factors = factors[1:]
		}
		parts[k] = strings.Join(factors, " * ")
	}
	return strings.Join(parts, " + ")
}

// stateInfo is a state as NAME_dims_info tells it.
type stateInfo struct {
	Input  string   `json:"input"`
	Output string   `json:"output"`
	Dims   []string `json:"dims"`            // of the input
	Grows  string   `json:"grows,omitempty"` // the symbol that the dim has that grows
	Next   string   `json:"next,omitempty"`  // what it is behind a run
	Room   int64    `json:"room,omitempty"`  // what it can become
}

func (l *layout) stateInfos() []stateInfo {
	var out []stateInfo
	for _, p := range l.states() {
		x := stateInfo{Input: p.State.Input, Output: p.Name}
		for d, a := range p.State.Axes {
			x.Dims = append(x.Dims, a.Text(l.plan.Graph.Ranges))
			if g := p.State.Grows; g >= 0 && a.Has(g) {
				x.Grows, x.Next, x.Room = l.plan.Graph.Ranges[g].Name, p.State.Next.String(), p.Dims[d]-1
			}
		}
		out = append(out, x)
	}
	return out
}

// stateList says which states there are, for the library's README.
func (l *layout) stateList() string {
	text := ""
	if l.repeats() {
		return text
	}
	for _, t := range l.plan.Graph.StateTexts() {
		text += fmt.Sprintf("- state: %s\n", strings.ReplaceAll(comment(t), "`", "'"))
	}
	return text
}

// stateFunctions are the functions that only libraries with states have.
const stateFunctions = `
extern "C" {

int @NAME@_state_reset(@NAME@_ctx* ctx) {
  if (!ctx) return @IN@no_context();
  return rt::guarded([&] { @IN@context_of(ctx).reset_states(); },
                     [ctx](const std::string& text) { @IN@context_of(ctx).set_error(text); });
}

int @NAME@_state_save(@NAME@_ctx* ctx, void* to, size_t* bytes) {
  if (!ctx) return @IN@no_context();
  return rt::guarded(
      [&] {
        if (!bytes) throw rt::Error{rt::kBadArgument, "bytes is a null pointer"};
        @IN@context_of(ctx).save_states(to, bytes);
      },
      [ctx](const std::string& text) { @IN@context_of(ctx).set_error(text); });
}

int @NAME@_state_load(@NAME@_ctx* ctx, const void* from, size_t bytes) {
  if (!ctx) return @IN@no_context();
  return rt::guarded([&] { @IN@context_of(ctx).load_states(from, bytes); },
                     [ctx](const std::string& text) { @IN@context_of(ctx).set_error(text); });
}

int @NAME@_state_seek(@NAME@_ctx* ctx, int64_t length) {
  if (!ctx) return @IN@no_context();
  return rt::guarded([&] { @IN@context_of(ctx).seek_states(length); },
                     [ctx](const std::string& text) { @IN@context_of(ctx).set_error(text); });
}

int64_t @NAME@_state_length(const @NAME@_ctx* ctx) { return ctx ? @IN@context_of(ctx).state_length() : -1; }

}  // extern "C"
`
