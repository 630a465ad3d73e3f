package eval

import (
	"regexp"
	"slices"
	"strings"

	"github.com/rammerc/rammerc/ir"
)

// texts are the strings whose numbers are in input i.
func (c *call) texts(i int) []string {
	list := c.strings()
	numbers := ir.Slice[int64](c.arg(i))
	out := make([]string, len(numbers))
	for k, n := range numbers {
		text, ok := list.Text(n)
		if !ok {
			fail("input %d: the model knows no string of the number %d, and nothing else says what it is", i, n)
		}
		out[k] = text
	}
	return out
}

// strings is the list that says which number a string has.
func (c *call) strings() *ir.Strings {
	if c.run.opt.Strings == nil {
		fail("operators on strings run only where there is a list of strings")
	}
	return c.run.opt.Strings
}

// numbered is a tensor of the numbers of strings.
func (c *call) numbered(texts []string, dims []int64) *ir.Tensor {
	t := c.alloc(ir.Int64, dims)
	data := ir.Slice[int64](t)
	for i, s := range texts {
		data[i] = c.strings().Number(s)
	}
	return t
}

// stringNormalizer is ONNX's StringNormalizer. Cases are those of Unicode in all locales.
func stringNormalizer(c *call) []*ir.Tensor {
	x := c.arg(0)
	rank := len(x.Dims)
	if rank != 1 && rank != 2 || rank == 2 && x.Dims[0] != 1 {
		fail("the dims are %v, want [C] or [1,C]", x.Dims)
	}
	fold := func(s string) string {
		if c.Attr("is_case_sensitive").I != 0 {
			return s
		}
		return strings.ToLower(s)
	}
	stop := map[string]bool{}
	for _, s := range c.Attr("stopwords").Strs {
		stop[fold(s)] = true
	}
	var out []string
	for _, s := range c.texts(0) {
		if stop[fold(s)] {
			continue
		}
		switch c.Attr("case_change_action").S {
		case "LOWER":
			s = strings.ToLower(s)
		case "UPPER":
			s = strings.ToUpper(s)
		}
		out = append(out, s)
	}
	if len(out) == 0 {
		out = []string{""}
	}
	dims := slices.Clone(x.Dims)
	dims[rank-1] = int64(len(out))
	return one(c.numbered(out, dims))
}

// stringConcat is ONNX's StringConcat.
func stringConcat(c *call) []*ir.Tensor {
	dims := broadcastDims(c.arg(0).Dims, c.arg(1).Dims)
	x, y := c.spread(0, dims), c.spread(1, dims)
	for i := range x {
		x[i] += y[i]
	}
	return one(c.numbered(x, dims))
}

// spread are the strings of input i, broadcast to dims.
func (c *call) spread(i int, dims []int64) []string {
	texts := ir.FromSlice(ir.String, c.texts(i), c.arg(i).Dims...)
	return ir.Slice[string](broadcastTo(c, texts, dims))
}

// stringSplit is ONNX's StringSplit.
func stringSplit(c *call) []*ir.Tensor {
	x := c.arg(0)
	parts := make([][]string, x.Len())
	counts := c.alloc(ir.Int64, x.Dims)
	most := 0
	for i, s := range c.texts(0) {
		parts[i] = c.split(s)
		ir.Slice[int64](counts)[i] = int64(len(parts[i]))
		most = max(most, len(parts[i]))
	}
	var out []string
	for _, p := range parts {
		out = append(append(out, p...), make([]string, most-len(p))...)
	}
	return []*ir.Tensor{c.numbered(out, append(slices.Clone(x.Dims), int64(most))), counts}
}

// split divides a string at delimiters, or without one at white space, at most maxsplit times.
func (c *call) split(s string) []string {
	most := -1
	if c.HasAttr("maxsplit") {
		most = int(c.Attr("maxsplit").I) + 1
	}
	delimiter := c.Attr("delimiter").S
	if delimiter != "" {
		if s == "" {
			return nil
		}
		return strings.SplitN(s, delimiter, most)
	}
	var out []string
	for s = strings.TrimSpace(s); s != ""; s = strings.TrimSpace(s) {
		end := strings.IndexFunc(s, func(r rune) bool { return strings.TrimSpace(string(r)) == "" })
		if end < 0 || len(out)+1 == most {
			return append(out, s)
		}
		out, s = append(out, s[:end]), s[end:]
	}
	return out
}

// regexFullMatch is ONNX's RegexFullMatch.
func regexFullMatch(c *call) []*ir.Tensor {
	pattern, err := regexp.Compile("^(?:" + c.Attr("pattern").S + ")$")
	if err != nil {
		fail("attribute pattern: %v", err)
	}
	out := c.alloc(ir.Bool, c.arg(0).Dims)
	for i, s := range c.texts(0) {
		ir.Slice[bool](out)[i] = pattern.MatchString(s)
	}
	return one(out)
}
