package driver

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/graphopt"
	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/engine"
	"github.com/rammerc/rammerc/internal/runner"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/axes"
	"github.com/rammerc/rammerc/ir/onnx"
	"github.com/rammerc/rammerc/roperator"
)

// mostExtent is the largest extent that a range may have: places in tensors have 32 bits.
const mostExtent = 1 << 30

// parseDim reads the value of --dim NAME=VALUE: a number, a range such as 1..512, or a list such as 1,4,16. Lo and Hi
// of a number are the same.
func parseDim(name, text string) (axes.Range, error) {
	r := axes.Range{Name: name}
	lo, hi, isRange := strings.Cut(text, "..")
	parts := []string{lo, hi}
	if !isRange {
		parts = strings.Split(text, ",")
	}
	var list []int64
	for _, p := range parts {
		n, err := strconv.ParseInt(p, 10, 64)
		if err != nil || n < 0 {
			return r, errors.New("want NAME=NUMBER, NAME=1..512 or NAME=1,4,16")
		}
		list = append(list, n)
	}
	if isRange && list[0] > list[1] {
		return r, errors.New("a range begins with its smallest extent")
	}
	slices.Sort(list)
	list = slices.Compact(list)
	r.Lo, r.Hi = list[0], list[len(list)-1]
	if len(list) > 1 && r.Hi > mostExtent {
		return r, fmt.Errorf("the extents of a range are at most %d", mostExtent)
	}
	if !isRange && len(list) > 1 {
		r.Values = list
	}
	return r, nil
}

// ranges are the dims of --dim that have more than one extent, by name. Flags that make no sense are not among them;
// onnxOptions reports them.
func (o *ModelOptions) ranges() []axes.Range {
	var out []axes.Range
	for _, s := range o.Dims {
		if name, text, ok := cutLast(s, "="); ok {
			if r, err := parseDim(name, text); err == nil && r.Lo < r.Hi {
				out = append(out, r)
			}
		}
	}
	slices.SortFunc(out, func(a, b axes.Range) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// with is o with one extent for each range.
func (o ModelOptions) with(ranges []axes.Range, extents []int64) ModelOptions {
	var dims []string
	for _, s := range o.Dims {
		name, _, _ := cutLast(s, "=")
		if i := slices.IndexFunc(ranges, func(r axes.Range) bool { return r.Name == name }); i >= 0 {
			s = fmt.Sprintf("%s=%d", name, extents[i])
		}
		dims = append(dims, s)
	}
	o.Dims = dims
	return o
}

// LoadOpen is Load for the evaluator, which takes any extents: dims with ranges stay symbols.
func LoadOpen(job *Job, o ModelOptions) (*onnx.Model, error) {
	if len(o.ranges()) == 0 {
		return Load(job, o, true)
	}
	return loadSymbols(job, o)
}

// loadSymbols reads a model whose dims stay symbols unless they are given one extent.
func loadSymbols(job *Job, o ModelOptions) (*onnx.Model, error) {
	ranges := o.ranges()
	o.Dims = slices.DeleteFunc(slices.Clone(o.Dims), func(s string) bool {
		name, _, _ := cutLast(s, "=")
		return slices.ContainsFunc(ranges, func(r axes.Range) bool { return r.Name == name })
	})
	return Load(job, o, false)
}

// Ports are the inputs and outputs of a model that LoadOpen has read. Dims with ranges have their symbols.
func (o *ModelOptions) Ports(g *ir.Graph) (inputs, outputs []engine.Port) {
	var symbols []runner.Symbol
	for _, r := range o.ranges() {
		symbols = append(symbols, runner.Symbol{Name: r.Name, Min: r.Lo, Max: r.Hi, Values: r.Values})
	}
	side := func(values []*ir.Value) []engine.Port {
		ports := engine.GraphPorts(values)
		engine.WithSymbols(ports, symbols, func(i, d int) string { return values[i].Shape[d].String() })
		return ports
	}
	inputs, outputs = side(g.Inputs), side(g.Outputs)
	engine.WithDomains(inputs, g)
	return inputs, outputs
}

// noRanges refuses dims with ranges for what only knows models of fixed extents.
func (o *ModelOptions) noRanges(what string) error {
	if r := o.ranges(); len(r) > 0 {
		return &diag.Diagnostic{ID: "bad-flag", File: o.Path,
			Message: fmt.Sprintf("--dim %s: %s needs one extent", r[0], what)}
	}
	return nil
}

// someElements refuses dims that have no elements in any run of a program.
func (o *ModelOptions) someElements() error {
	var l diag.List
	for _, s := range o.Dims {
		name, text, _ := cutLast(s, "=")
		if r, err := parseDim(name, text); err == nil && r.Hi == 0 {
			l.Add(diag.New("bad-flag", "--dim %q: a dim without elements leaves nothing to compute", s))
		}
	}
	return l.Err()
}

// HasRanges reports whether dims have ranges, so that the model becomes a general program.
func (o *ModelOptions) HasRanges() bool { return len(o.ranges()) > 0 }

// LowerGeneral runs the stages from a model whose dims have ranges to its rOperators.
func LowerGeneral(job *Job, opt CompileOptions, spec *device.Spec) (*roperator.Graph, error) {
	c := &Compilation{opt: opt, spec: spec}
	ops, err := c.general(job)
	if err == nil {
		return ops, nil
	}
	points := opt.apart(err)
	for _, p := range points { // of which the last one is the largest
		if c, err = fixedProgram(opt, spec, opt.ranges(), p, job); err != nil {
			return nil, err
		}
		if ops, err = c.lowered(&Job{}); err != nil {
			return nil, Explain(err, c.model)
		}
	}
	return ops, err
}

// general runs the stages from the model to its rOperators.
func (c *Compilation) general(job *Job) (*roperator.Graph, error) {
	if err := c.prepare(job); err != nil {
		return nil, err
	}
	ops, err := lowerStateful(job, c.graph, c.axes, c.lowerStates(), c.spec, c.opt)
	return ops, Explain(err, c.model)
}

// prepareGeneral is prepare for a model whose dims have ranges. The graph is that of the largest extents.
func (c *Compilation) prepareGeneral(job *Job, ranges []axes.Range) error {
	asked := c.opt.ModelOptions
	if c.opt.ErrorBudget > 0 {
		return asked.noRanges("--error-budget")
	}
	open, err := LoadOpen(&Job{}, asked)
	if err != nil {
		return err
	}
	if err := knownSymbols(open, ranges); err != nil {
		return diag.InFile(err, asked.Path)
	}
	if err := c.findStates(open.Graph, ranges); err != nil {
		return diag.InFile(err, asked.Path)
	}
	shapes := open.Graph.Inputs
	if c.grows() {
		_, err := c.opened(job, asked, ranges, shapes)
		return err
	}
	if err = axes.CheckFunctions(open.Graph, ranges); err == nil {
		err = c.closed(job, asked, ranges, shapes)
	} else {
		err = Explain(diag.InFile(err, asked.Path), open)
	}
	if err == nil || !onlyDynamic(err) {
		return err
	}
	if made, again := c.opened(job, asked, ranges, shapes); made {
		return again
	}
	return err
}

// onlyDynamic reports whether all problems are with extents that differ between runs.
func onlyDynamic(err error) bool {
	all := diag.All(err)
	for _, d := range all {
		if !strings.HasPrefix(d.ID, "dynamic-") {
			return false
		}
	}
	return len(all) > 0
}

// closed compiles the model with the largest extents, and shows that it is right for all others. inputs are those of
// the model with symbols.
func (c *Compilation) closed(job *Job, asked ModelOptions, ranges []axes.Range, inputs []*ir.Value) error {
	c.opt.ModelOptions = asked.with(ranges, largest(ranges))
	c.opt.FindExtents()
	err := c.optimised(job)
	c.opt.ModelOptions = asked
	if err != nil {
		return err
	}
	return c.proveGeneral(job, asked, ranges, nil, inputs)
}

// opened is closed for a model that computes with extents, or takes another part of a tensor in each run. Its operators
// are made to do so on the device, while extents are symbols. made is false if there are none.
func (c *Compilation) opened(job *Job, asked ModelOptions, ranges []axes.Range, inputs []*ir.Value) (made bool,
	err error) {
	c.open = &openGraph{ranges: ranges, extents: largest(ranges), check: true}
	c.opt.FindExtents()
	if err = c.optimised(job); c.open.unchanged || err != nil {
		return !c.open.unchanged, err
	}
	var sums []axes.Range
	for _, d := range c.open.sums {
		if r := axes.SumRange(ranges, d); r.Hi <= mostExtent && r.Lo < r.Hi {
			sums = append(sums, r)
		}
	}
	return true, c.proveGeneral(job, asked, ranges, sums, inputs)
}

// openGraph is how a model is opened (graphopt.OpenExtents).
type openGraph struct {
	ranges    []axes.Range
	extents   []int64  // that the symbols are given then
	sums      []ir.Dim // among the extents of its values
	unchanged bool     // nothing was to be done
	check     bool     // whether to look for numbers that are other functions of extents (axes.CheckFunctions)
}

// load imports the model, opens it, and gives extents to its symbols.
func (o *openGraph) load(job *Job, opt CompileOptions) (*onnx.Model, error) {
	m, err := LoadOpen(job, opt.ModelOptions)
	if err == nil && opt.generation != nil {
		err = diag.InFile(graphopt.Generate(m.Graph, *opt.generation, opt.passes(opt.PrecisionChoice())), opt.Path)
	}
	if err != nil {
		return nil, err
	}
	bounds, extents := map[string]ir.Interval{}, map[string]int64{}
	for i, r := range o.ranges {
		bounds[r.Name], extents[r.Name] = ir.Interval{Lo: r.Lo, Hi: r.Hi}, o.extents[i]
	}
	changed, err := graphopt.OpenExtents(m.Graph, bounds, opt.passes(opt.PrecisionChoice()))
	if err != nil || !changed {
		o.unchanged = !changed
		return m, diag.InFile(err, opt.Path)
	}
	if o.check {
		if err := axes.CheckFunctions(m.Graph, o.ranges); err != nil {
			return m, Explain(diag.InFile(err, opt.Path), m)
		}
	}
	o.sums = graphopt.ExtentSums(m.Graph)
	return m, diag.InFile(graphopt.BindExtents(m.Graph, extents), opt.Path)
}

// proveGeneral shows that the graph, which has the largest extents, is right for all of them. The model is imported and
// optimised again at a few others, which shows what depends on the extents: on those of ranges, on their sums, and on
// those that a run finds. inputs are those of the model with symbols.
func (c *Compilation) proveGeneral(job *Job, asked ModelOptions, ranges, sums []axes.Range, inputs []*ir.Value) error {
	all := slices.Concat(ranges, sums, c.opt.found.Ranges)
	known := len(ranges) + len(sums)
	var points []axes.Point
	for k, extents := range axes.Extents(all) {
		if k == 0 {
			points = append(points, axes.Point{Graph: c.graph, Extents: extents})
			continue
		}
		d := &Compilation{opt: c.opt, spec: c.spec, states: c.states}
		d.opt.ModelOptions, d.opt.Dump = asked.with(ranges, extents), ""
		if c.open != nil {
			d.opt.ModelOptions = asked
			d.open = &openGraph{ranges: ranges, extents: extents[:len(ranges)]}
		}
		d.opt.found = &axes.Found{At: map[string]int64{}}
		for i, r := range all[known:] {
			d.opt.found.At[r.Name] = extents[known+i]
		}
		if err := d.optimised(&Job{}); err != nil {
			return err
		}
		points = append(points, axes.Point{Graph: d.graph, Extents: extents})
	}
	done := job.Stage("axes")
	x, err := axes.Analyse(all, c.inputShapes(c.graph, inputs), points)
	if err != nil {
		return Explain(diag.InFile(err, asked.Path), c.model)
	}
	c.axes = x.Used(c.graph)
	done("%s, shown to hold for all by the rules of %d operators", rangesText(c.axes.Ranges), len(c.graph.Nodes))
	return nil
}

func rangesText(ranges []axes.Range) string {
	parts := make([]string, len(ranges))
	for i, r := range ranges {
		parts[i] = r.String()
	}
	return strings.Join(parts, " ")
}

// knownSymbols refuses ranges of symbols that no input has.
func knownSymbols(m *onnx.Model, ranges []axes.Range) error {
	var l diag.List
	symbols := map[string]bool{}
	for _, v := range m.Graph.Inputs {
		for _, d := range v.Shape {
			d.Symbols(symbols)
		}
	}
	for _, r := range ranges {
		if !symbols[r.Name] {
			l.Add(diag.New("unknown-dim", "--dim %s: no input has a dim of that name; there are %s", r,
				strings.Join(m.Dims, ", ")))
		}
	}
	return l.Err()
}

// FixDims narrows the symbols of a library to what --dim says of them, for one inference or several.
func FixDims(symbols []runner.Symbol, dims []string) error {
	var l diag.List
	for _, text := range dims {
		name, value, _ := cutLast(text, "=")
		r, err := parseDim(name, value)
		i := slices.IndexFunc(symbols, func(s runner.Symbol) bool { return s.Name == name })
		switch {
		case err != nil:
			l.Add(diag.New("bad-flag", "--dim %q: %v", text, err))
		case i < 0:
			l.Add(diag.New("unknown-dim", "--dim %s: the library has no dim with a range of that name", text))
		case r.Lo < symbols[i].Min || r.Hi > symbols[i].Max:
			l.Add(diag.New("bad-flag", "--dim %s: the library takes %d to %d", text, symbols[i].Min, symbols[i].Max))
		default:
			symbols[i].Min, symbols[i].Max, symbols[i].Values = r.Lo, r.Hi, r.Values
		}
	}
	return l.Err()
}
