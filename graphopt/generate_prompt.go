package graphopt

import "github.com/rammerc/rammerc/ir"

// A prompt is known before the search begins, so its tokens need not be taken one by one. The program of a prompt takes
// the first of them at once and leaves their keys and values in the caches; the search goes on from there, with the
// last token of the prompt or an earlier one. It computes nothing else: neither logits nor what only they depend on.
//
//	prompt a b c d, answer x y             program of the prompt: a b c       steps: d, x, y

// PassedInput is the last input of the program of a prompt. How long it is says how many tokens the program takes; its
// elements do not count.
const PassedInput = "generate.passed"

// passPrompt makes a decoder take the tokens of the prompts from those on that the caches have, and give out the caches
// alone.
func (s *stepMaker) passPrompt() {
	s.promptInputs()
	passed := &ir.Value{Name: PassedInput, DType: ir.Bool, Shape: ir.Shape{s.ids.Shape[1]}}
	s.g.Inputs = append(s.g.Inputs, passed)
	s.step = s.node("Gather", nil, s.node("Shape", nil, s.past), s.ints(int64(s.pastAxis)))
	count := s.node("Shape", nil, passed)
	s.after = s.node("Add", nil, s.step, count)
	along := ir.Attrs{"axis": ir.IntAttr(0)}
	rows := func(columns *ir.Value) *ir.Value { return s.node("Concat", along, s.ints(s.batch), columns) }
	ids := s.node("Slice", nil, s.prompt, s.step, s.after, s.ints(1))
	if s.batch != s.prompts {
		ids = s.node("Expand", nil, ids, rows(count))
	}
	s.replaceAs(s.ids, ids, ir.Int64)
	if v := s.positions; v != nil {
		scalar := func(v *ir.Value) *ir.Value { return s.node("Reshape", nil, v, s.ints()) }
		at := s.node("Range", nil, scalar(s.step), scalar(s.after), scalar(s.ints(1)))
		if len(v.Shape) > 1 {
			at = s.node("Expand", nil, at, rows(count))
		}
		s.replaceAs(v, at, ir.Int64)
	}
	s.replaceMask(rows(s.after))
	s.g.Outputs = s.caches()
}

// promptInputs adds the inputs that the caller of a program that generates sees.
func (s *stepMaker) promptInputs() {
	s.prompt = s.input(PromptInput, ir.Int64, s.prompts, s.spec.Tokens)
	s.lengths = s.input(LengthsInput, ir.Int64, s.prompts)
	s.limit = s.input(LimitInput, ir.Int64, 1)
}

// replaceAs is replace with a value of type t, which the input may not have.
func (s *stepMaker) replaceAs(input, v *ir.Value, t ir.DType) {
	if input.DType != t {
		v = s.cast(v, input.DType)
	}
	s.replace(input, v)
}

// replaceMask lets the decoder see every place of a mask of the given shape.
func (s *stepMaker) replaceMask(shape *ir.Value) {
	if s.mask != nil {
		one := ir.TensorAttr(ir.FromSlice(ir.Int64, []int64{1}, 1))
		s.replaceAs(s.mask, s.node("ConstantOfShape", ir.Attrs{"value": one}, shape), ir.Int64)
	}
}

// caches are the outputs of the decoder that are its caches.
func (s *stepMaker) caches() (list []*ir.Value) {
	for _, p := range s.spec.States {
		for _, v := range s.g.Outputs {
			if v.Name == p[1] {
				list = append(list, v)
			}
		}
	}
	return list
}
