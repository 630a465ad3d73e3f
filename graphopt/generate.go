package graphopt

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/ir"
)

// Generation says how a decoder becomes a program that produces a whole answer.
type Generation struct {
	// States are the inputs and outputs of the decoder that are its caches.
	States [][2]string
	// Past is the symbol of how many tokens the caches have; a run counts it from 0 on.
	Past string
	// Tokens is how many tokens a row can have at most, those of its prompt among them.
	Tokens int64
	// Ends are the tokens that end an answer.
	Ends []int64
	// Beams is how many answers a search of the best one keeps (generate_beams.go); 0 for a greedy search.
	Beams int64
	// Prompt asks for the program that takes the prompt, which runs before the steps (generate_prompt.go).
	Prompt bool
}

// Names of the inputs and outputs of a program that generates, and of the values that it keeps from step to step.
const (
	PromptInput  = "prompt"
	LengthsInput = "prompt_length"
	LimitInput   = "limit"

	TokensOutput  = "tokens"
	LengthsOutput = "length"

	// RepeatState is a bool: whether another step follows. It is the last state.
	RepeatState = "generate.more"
)

// kept are the inputs that a step takes from the step before, beside the caches.
func (g *Generation) kept() []string {
	names := []string{"generate.last", "generate.length", "generate.tokens"}
	if g.Beams > 0 {
		names = append(names, "generate.scores", "generate.rows")
	}
	return append(names, RepeatState)
}

// KeptValues are the states of a program that generates, beside the caches: names of inputs and outputs.
func (g *Generation) KeptValues() (pairs [][2]string) {
	if g.Prompt {
		return nil
	}
	for _, name := range g.kept() {
		pairs = append(pairs, [2]string{name, name + ".next"})
	}
	return pairs
}

// Generate makes a step of a search out of a decoder that takes one token of each row: the token that it takes is that of
// the prompt, or the one that the step before has chosen, and the token with the largest logit is chosen for the next one.
//
//	%t = Shape(%past)[2]                                  the number of the step, as tokens are counted from 0
//	%ids = t < prompt_length ? prompt[t] : last
//	%logits, … = the decoder, of %ids
//	%next = t+1 < prompt_length ? prompt[t+1] : ArgMax(%logits)
//	%more = t+2 < limit, and some row has not ended
//
// A mask becomes ones, since the rows of a batch have no padding: a row with a longer prompt begins its answer in a later
// step. Positions are the number of the step. Inputs that do not depend on the length of the caches, such as what an
// encoder has computed, stay inputs. All other outputs of the decoder are gone.
//
// A decoder that was merged of two, for the first tokens and for those behind them, is the latter.
func Generate(g *ir.Graph, spec Generation, opts Options) error {
	s := &stepMaker{g: g, spec: spec}
	if err := s.takeBranch(opts); err != nil {
		return err
	}
	if err := s.find(); err != nil {
		return err
	}
	decoder := g.Nodes
	if spec.Prompt {
		s.passPrompt()
		g.Nodes = append(s.nodes, decoder...)
		removeDead(g)
		return ir.InferShapes(g).Err()
	}
	s.head()
	if spec.Beams > 0 {
		decoder = s.readByRow(decoder)
	}
	g.Nodes = append(s.nodes, decoder...)
	s.nodes = nil
	if spec.Beams > 0 {
		s.beamTail()
	} else {
		s.tail()
	}
	g.Nodes = append(g.Nodes, s.nodes...)
	removeDead(g)
	if err := ir.InferShapes(g).Err(); err != nil || !s.clearMasks() {
		return err
	}
	removeDead(g)
	return ir.InferShapes(g).Err()
}

// stepMaker is the state of Generate.
type stepMaker struct {
	g     *ir.Graph
	spec  Generation
	nodes []*ir.Node // made so far, in their order
	made  int

	batch, prompts                     int64 // rows of the decoder, and of the prompt
	ids, mask, positions, past, logits *ir.Value
	pastAxis                           int
	prompt, lengths, limit             *ir.Value // new inputs
	last, length, tokens               *ir.Value // of the step before
	scores, rows                       *ir.Value // of the step before, with beams; rows is brought up to date then
	step, after, inPrompt              *ir.Value // this step's number, the next one's, and whether the prompt has a token for this one
}

func refusedGeneration(format string, args ...any) error {
	return &diag.Diagnostic{ID: "bad-generate", Message: fmt.Sprintf(format, args...),
		Help: "--generate takes decoders with the inputs input_ids, attention_mask, position_ids and past…, and the outputs " +
			"logits and present…, of one token in each step"}
}

// isCache reports whether an input is a cache.
func (s *stepMaker) isCache(v *ir.Value) bool {
	return slices.ContainsFunc(s.spec.States, func(p [2]string) bool { return p[0] == v.Name })
}

// dependsOn reports whether an extent of v follows from a symbol.
func dependsOn(v *ir.Value, symbol string) bool {
	names := map[string]bool{}
	for _, d := range v.Shape {
		d.Symbols(names)
	}
	return names[symbol]
}

// branchInput is the input that says which branch of a merged decoder runs.
const branchInput = "use_cache_branch"

// takeBranch leaves of a merged decoder the branch that takes caches, which may be empty.
func (s *stepMaker) takeBranch(opts Options) error {
	i := slices.IndexFunc(s.g.Inputs, func(v *ir.Value) bool { return v.Name == branchInput })
	if i < 0 {
		return nil
	}
	v := s.g.Inputs[i]
	dims, ok := v.Shape.Consts()
	if !ok || v.DType != ir.Bool {
		return refusedGeneration("input %s is %v%v, want a bool", v.Name, v.DType, v.Shape)
	}
	yes := ir.NewTensor(ir.Bool, dims...)
	for k := range ir.Slice[bool](yes) {
		ir.Slice[bool](yes)[k] = true
	}
	s.replace(v, s.constant(yes))
	opts.After = nil
	return runPasses(s.g, []Pass{
		{"recognize-integers", recognizeIntegers, "folding would make floats of integers"},
		{"recognize-quantized", recognizeQuantized, "folding would make floats of quantised weights"},
		{"fold-constants", foldConstants, "the condition must be known"},
		{"inline-branches", inlineBranches, "the other branch is for the first tokens"},
	}, opts)
}

// find finds the decoder's inputs and outputs by their names and shapes.
func (s *stepMaker) find() error {
	for _, v := range s.g.Inputs {
		switch {
		case s.isCache(v):
			for d, n := range v.Shape {
				if name, one := n.Symbol(); one && name == s.spec.Past && s.past == nil {
					s.past, s.pastAxis = v, d
				}
			}
		case strings.HasSuffix(v.Name, "input_ids"):
			s.ids = v
		case strings.HasSuffix(v.Name, "position_ids") || v.Name == "cache_position":
			s.positions = v
		case strings.HasSuffix(v.Name, "attention_mask") && dependsOn(v, s.spec.Past):
			s.mask = v
		case dependsOn(v, s.spec.Past):
			return refusedGeneration("input %s has %v: what it is in each step is not known", v.Name, v.Shape)
		}
	}
	for _, v := range s.g.Outputs {
		if v.Name == "logits" {
			s.logits = v
		}
	}
	switch {
	case s.ids == nil || s.logits == nil || s.past == nil:
		return refusedGeneration("the model has no input input_ids, no output logits, or no cache whose length is %s",
			s.spec.Past)
	case !s.ids.DType.IsInt() || len(s.ids.Shape) != 2 || !s.spec.Prompt && !s.ids.Shape[1].Equal(ir.D(1)):
		return refusedGeneration("input %s is %v%v, want one token of each row", s.ids.Name, s.ids.DType, s.ids.Shape)
	case !s.logits.DType.IsFloat() || len(s.logits.Shape) != 3:
		return refusedGeneration("output %s is %v%v, want [rows,1,tokens]", s.logits.Name, s.logits.DType,
			s.logits.Shape)
	}
	batch, ok := s.ids.Shape[0].Const()
	if !ok {
		return refusedGeneration("input %s has %v rows, want a number: --dim %v=1", s.ids.Name, s.ids.Shape[0],
			s.ids.Shape[0])
	}
	s.batch, s.prompts = batch, batch
	if n := s.spec.Beams; n > 0 {
		words, known := s.logits.Shape[2].Const()
		if batch != n || known && words < n {
			return refusedGeneration("a search with %d beams takes one prompt, and a decoder of at least %d tokens", n, n)
		}
		s.prompts = 1
	}
	return nil
}

// node adds a node and returns its result.
func (s *stepMaker) node(op string, attrs ir.Attrs, in ...*ir.Value) *ir.Value {
	s.made++
	v := &ir.Value{Name: fmt.Sprintf("generate/%s_%d", op, s.made)}
	v.Def = &ir.Node{Op: op, Name: "generate/" + op, Inputs: in, Outputs: []*ir.Value{v}, Attrs: attrs,
		Origins: []ir.Origin{{Name: "generate", OpType: op}}}
	s.nodes = append(s.nodes, v.Def)
	return v
}

func (s *stepMaker) constant(t *ir.Tensor) *ir.Value {
	s.made++
	v := &ir.Value{Name: fmt.Sprintf("generate/const_%d", s.made), DType: t.DType, Shape: ir.Dims(t.Dims...), Const: t}
	s.g.Consts = append(s.g.Consts, v)
	return v
}

func (s *stepMaker) ints(list ...int64) *ir.Value {
	return s.constant(ir.FromSlice(ir.Int64, list, int64(len(list))))
}

func (s *stepMaker) input(name string, t ir.DType, dims ...int64) *ir.Value {
	v := &ir.Value{Name: name, DType: t, Shape: ir.Dims(dims...)}
	s.g.Inputs = append(s.g.Inputs, v)
	return v
}

func (s *stepMaker) cast(v *ir.Value, t ir.DType) *ir.Value {
	return s.node("Cast", ir.Attrs{"to": ir.IntAttr(t.ONNX())}, v)
}

// replace lets what reads an input of the decoder read v, and takes the input away.
func (s *stepMaker) replace(input, v *ir.Value) {
	s.g.Inputs = slices.DeleteFunc(s.g.Inputs, func(x *ir.Value) bool { return x == input })
	ir.EachGraph(s.g, func(g *ir.Graph) {
		for _, n := range g.Nodes {
			for i, x := range n.Inputs {
				if x == input {
					n.Inputs[i] = v
				}
			}
		}
		for i, x := range g.Outputs {
			if x == input {
				g.Outputs[i] = v
			}
		}
	})
}

// head adds what computes the inputs of the decoder.
func (s *stepMaker) head() {
	s.promptInputs()
	kept := s.spec.kept()
	s.last = s.input(kept[0], ir.Int64, s.batch, 1)
	s.length = s.input(kept[1], ir.Int64, s.batch, 1)
	s.tokens = s.input(kept[2], ir.Int64, s.batch, s.spec.Tokens)
	if s.spec.Beams > 0 {
		s.scores = s.input(kept[3], ir.Float32, s.batch, 1)
		s.rows = s.input(kept[4], ir.Int64, s.batch, s.spec.Tokens)
	}
	s.input(RepeatState, ir.Bool, 1)

	s.step = s.node("Gather", nil, s.node("Shape", nil, s.past), s.ints(int64(s.pastAxis)))
	s.after = s.node("Add", nil, s.step, s.ints(1))
	s.limit = s.node("Min", nil, s.limit, s.ints(s.spec.Tokens))
	s.lengths = s.node("Reshape", nil, s.lengths, s.ints(s.prompts, 1))
	s.inPrompt = s.node("Less", nil, s.step, s.lengths)
	ids := s.node("Where", nil, s.inPrompt, s.promptAt(s.step), s.last)
	s.replaceAs(s.ids, ids, ir.Int64)
	if v := s.positions; v != nil {
		dims, _ := v.Shape.Consts()
		s.replaceAs(v, s.node("Expand", nil, s.step, s.ints(dims...)), ir.Int64)
	}
	s.replaceMask(s.node("Concat", ir.Attrs{"axis": ir.IntAttr(0)}, s.ints(s.batch), s.after))
}

// promptAt is the token of each row's prompt at a place.
func (s *stepMaker) promptAt(at *ir.Value) *ir.Value {
	return s.node("Gather", axisAttr(1), s.prompt, at)
}

// ends reports for each token whether it ends an answer; nil if none does.
func (s *stepMaker) ends(v *ir.Value) *ir.Value {
	var any *ir.Value
	for _, e := range s.spec.Ends {
		one := s.node("Equal", nil, v, s.ints(e))
		if any == nil {
			any = one
		} else {
			any = s.node("Or", nil, any, one)
		}
	}
	return any
}

// tail adds what chooses the next token and computes the outputs.
func (s *stepMaker) tail() {
	logits := s.logits
	if logits.DType != ir.Float32 {
		logits = s.cast(logits, ir.Float32)
	}
	next := s.node("ArgMax", ir.Attrs{"axis": ir.IntAttr(2), "keepdims": ir.IntAttr(0)}, logits)
	more := s.node("Less", nil, s.node("Add", nil, s.step, s.ints(2)), s.limit)
	length := s.node("Add", nil, s.step, s.ints(2))
	pad := s.ints(0)
	inNext := s.node("Less", nil, s.after, s.lengths)
	if ended := s.ends(s.last); ended != nil {
		pad = s.ints(s.spec.Ends[0])
		ended = s.node("And", nil, s.node("Not", nil, s.inPrompt), ended)
		next = s.node("Where", nil, ended, pad, next)
		length = s.node("Where", nil, ended, s.length, length)
	}
	length = s.node("Expand", nil, length, s.ints(s.batch, 1))
	next = s.node("Where", nil, inNext, s.promptAt(s.after), next)
	if ends := s.ends(next); ends != nil {
		going := s.node("Or", nil, inNext, s.node("Not", nil, ends))
		some := s.node("ReduceMax", ir.Attrs{"keepdims": ir.IntAttr(0)}, s.cast(going, ir.Int32), s.ints(0, 1))
		more = s.node("And", nil, more, s.cast(some, ir.Bool))
	}
	tokens := s.list(s.tokens, next, pad)
	s.finish(tokens, s.node("Reshape", nil, length, s.ints(s.batch)), next, length, tokens,
		s.node("Reshape", nil, more, s.ints(1)))
}

// places are the numbers of all places that a row has for tokens.
func (s *stepMaker) places() *ir.Value {
	return s.constant(ir.FromSlice(ir.Int64, upTo(s.spec.Tokens), 1, s.spec.Tokens))
}

// upTo are the numbers from 0 on.
func upTo(n int64) []int64 {
	list := make([]int64, n)
	for i := range list {
		list[i] = int64(i)
	}
	return list
}

// list are the tokens of all rows so far: the prompts, what was chosen before, and what is chosen now.
func (s *stepMaker) list(before, next, pad *ir.Value) *ir.Value {
	at := s.places()
	v := s.node("Where", nil, s.node("Equal", nil, at, s.after), next, pad)
	v = s.node("Where", nil, s.node("Less", nil, at, s.after), before, v)
	return s.node("Where", nil, s.node("Less", nil, at, s.lengths), s.prompt, v)
}

// finish makes the outputs: those of the caller, the caches, and the kept values, which the next step takes.
func (s *stepMaker) finish(tokens, length *ir.Value, kept ...*ir.Value) {
	caches := s.caches()
	named := func(name string, v *ir.Value) *ir.Value {
		out := s.node("Identity", nil, v)
		out.Name = name
		return out
	}
	s.g.Outputs = append([]*ir.Value{named(TokensOutput, tokens), named(LengthsOutput, length)}, caches...)
	for i, name := range s.spec.kept() {
		s.g.Outputs = append(s.g.Outputs, named(name+".next", kept[i]))
	}
}
