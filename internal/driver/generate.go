package driver

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rammerc/rammerc/codegen"
	"github.com/rammerc/rammerc/graphopt"
	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/engine"
	"github.com/rammerc/rammerc/internal/runner"
	"github.com/rammerc/rammerc/ir"
)

// Searches lists how a library that generates chooses tokens.
func Searches() []string { return []string{"greedy", "beam=N"} }

// mostBeams is how many answers a search keeps at most.
const mostBeams = 16

// leastTokens is how many tokens a row must have room for, so that the length of the caches has a range.
const leastTokens = 4

// generateProblems adds what makes no sense in the flags of a library that generates.
func (o *CompileOptions) generateProblems(l *diag.List) {
	if o.Generate == "" {
		if len(o.EndTokens) > 0 || o.MaxTokens != 0 {
			l.Add(diag.New("bad-flag", "--end-token and --max-tokens go with --generate"))
		}
		return
	}
	n := runner.Beams(o.Generate)
	if n == 0 && o.Generate != "greedy" {
		l.Add(diag.New("bad-flag", "--generate %q: want one of %s", o.Generate, strings.Join(Searches(), ", ")))
	}
	switch {
	case n > mostBeams:
		l.Add(diag.New("bad-flag", "--generate %s: want at most %d beams", o.Generate, mostBeams))
	case o.MaxTokens < leastTokens:
		l.Add(diag.New("bad-flag", "--max-tokens %d: want how many tokens prompt and answer have together, at least %d",
			o.MaxTokens, leastTokens))
	case o.MaxTokens > mostExtent:
		l.Add(diag.New("bad-flag", "--max-tokens %d: want at most %d", o.MaxTokens, mostExtent))
	case o.asksForSpecials():
		l.Add(diag.New("bad-flag", "--typical: a library that generates has one program for all lengths"))
	}
	for _, e := range o.EndTokens {
		if e < 0 {
			l.Add(diag.New("bad-flag", "--end-token %d: tokens are numbers from 0 on", e))
		}
	}
}

// planGeneration completes the flags for --generate: the decoder takes one token of one row, unless --dim says how many
// rows, or of a row for each beam, and its caches can have any length.
func (c *Compilation) planGeneration() error {
	if c.opt.Generate == "" {
		return nil
	}
	m, err := loadSymbols(&Job{}, c.opt.ModelOptions)
	if err != nil {
		return err
	}
	if len(c.opt.States) == 0 {
		c.opt.States = []string{NamedStates}
	}
	pairs, err := c.opt.statePairs(m.Graph)
	if err != nil {
		return diag.InFile(err, c.opt.Path)
	}
	past, err := growingSymbol(m.Graph, pairs)
	if err != nil {
		return diag.InFile(err, c.opt.Path)
	}
	c.opt.generation = &graphopt.Generation{Past: past, Tokens: c.opt.MaxTokens, Ends: c.opt.EndTokens,
		Beams: runner.Beams(c.opt.Generate)}
	dims := slices.Clone(c.opt.Dims)
	set := func(d ir.Dim, text string) error {
		name, one := d.Symbol()
		if !one {
			return nil
		}
		for _, s := range dims {
			if given, value, _ := cutLast(s, "="); given == name {
				if r, _ := parseDim(given, value); r.Lo < r.Hi || text != "" && value != text {
					return diag.New("bad-flag", "--dim %s: with --generate it is %s", s, orNumber(text))
				}
				return nil
			}
		}
		if text == "" {
			text = "1"
		}
		dims = append(dims, name+"="+text)
		return nil
	}
	if err := set(ir.Sym(past), fmt.Sprintf("0..%d", c.opt.MaxTokens-2)); err != nil {
		return err
	}
	for _, v := range m.Graph.Inputs {
		if !strings.HasSuffix(v.Name, "input_ids") || len(v.Shape) != 2 {
			continue
		}
		if err := set(v.Shape[0], beamRows(c.opt.generation)); err != nil {
			return err
		}
		if err := set(v.Shape[1], "1"); err != nil {
			return err
		}
		c.opt.promptTokens, _ = v.Shape[1].Symbol()
	}
	c.opt.Dims = dims
	return nil
}

// beamRows is how many rows of the decoder a search has, "" if the caller may say that.
func beamRows(g *graphopt.Generation) string {
	if g.Beams == 0 {
		return ""
	}
	return fmt.Sprint(g.Beams)
}

func orNumber(text string) string {
	if text == "" {
		return "one number"
	}
	return text
}

// growingSymbol is the symbol of how long the caches are.
func growingSymbol(g *ir.Graph, pairs [][2]string) (string, error) {
	name := ""
	for _, p := range pairs {
		in, out := valueNamed(g.Inputs, p[0]), valueNamed(g.Outputs, p[1])
		if len(in.Shape) != len(out.Shape) {
			continue // what follows says so
		}
		for d, n := range in.Shape {
			symbol, one := n.Symbol()
			if n.Equal(out.Shape[d]) || !one {
				continue
			}
			if name != "" && name != symbol {
				return "", diag.New("bad-generate", "the caches have several lengths: %s and %s", name, symbol)
			}
			name = symbol
		}
	}
	if name == "" {
		return "", diag.New("bad-generate", "no cache grows: give --state past=present of one whose length is a symbol")
	}
	return name, nil
}

// GenerateText says how a library would produce answers; "" if it would not.
func (o *CompileOptions) GenerateText() string {
	if o.Generate == "" {
		return ""
	}
	return (&codegen.Generation{Search: o.Generate, Ends: o.EndTokens, Tokens: o.MaxTokens}).String()
}

// described is what the library says of how it produces answers; nil if it does not.
func (o *CompileOptions) described() *codegen.Generation {
	g := o.generation
	if g == nil {
		return nil
	}
	return &codegen.Generation{Search: o.Generate, Ends: g.Ends, Tokens: g.Tokens, Caches: g.States}
}

// Searching is what --generate makes of a model, for the evaluator: the search, and the inputs and outputs of the library.
func Searching(job *Job, o CompileOptions) (s *engine.Search, inputs, outputs []engine.Port, err error) {
	c := &Compilation{opt: o}
	if err := c.planGeneration(); err != nil {
		return nil, nil, nil, err
	}
	decoder, err := loadSymbols(job, c.opt.ModelOptions)
	if err != nil {
		return nil, nil, nil, err
	}
	library, err := loadSymbols(&Job{}, c.opt.ModelOptions)
	if err == nil {
		err = diag.InFile(c.findStates(library.Graph, c.opt.ranges()), o.Path)
	}
	if err != nil {
		return nil, nil, nil, err
	}
	var ins []*ir.Value
	for _, v := range library.Graph.Inputs {
		if !slices.ContainsFunc(c.states, func(s stateful) bool { return s.input == v.Name }) {
			ins = append(ins, v)
		}
	}
	inputs, outputs = engine.GraphPorts(ins), engine.GraphPorts(library.Graph.Outputs[:2])
	engine.WithPrompts(inputs, decoder.Graph)
	g := c.opt.generation
	return &engine.Search{Graph: decoder.Graph, File: o.Path,
		Generation: runner.Generation{Search: o.Generate, Ends: g.Ends,
			Tokens: g.Tokens, Caches: g.States}}, inputs, outputs, nil
}
