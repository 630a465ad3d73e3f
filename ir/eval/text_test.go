package eval_test

import (
	"reflect"
	"testing"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/eval"
)

// TestTexts computes with strings; ONNX's own tests have the usual cases.
func TestTexts(t *testing.T) {
	for _, c := range []struct {
		name, op string
		attrs    ir.Attrs
		in       [][]string
		want     []string
		dims     []int64
	}{
		{"all are stopwords", "StringNormalizer", ir.Attrs{"stopwords": {Kind: ir.AttrStrings, Strs: []string{"The"}}},
			[][]string{{"THE", "the"}}, []string{""}, []int64{1}},
		{"upper case beyond ASCII", "StringNormalizer", ir.Attrs{"case_change_action": ir.StringAttr("UPPER")},
			[][]string{{"ä", "ж"}}, []string{"Ä", "Ж"}, []int64{2}},
		{"white space at both ends", "StringSplit", nil, [][]string{{"  a b\t\nc "}}, []string{"a", "b", "c"}, []int64{1, 3}},
		{"the rest keeps its white space", "StringSplit", ir.Attrs{"maxsplit": ir.IntAttr(1)}, [][]string{{"a b  c", "d"}},
			[]string{"a", "b  c", "d", ""}, []int64{2, 2}},
		{"nothing between delimiters", "StringSplit", ir.Attrs{"delimiter": ir.StringAttr(",")}, [][]string{{"a,,b"}},
			[]string{"a", "", "b"}, []int64{1, 3}},
		{"one of several", "StringConcat", nil, [][]string{{"a", "b"}, {"!"}}, []string{"a!", "b!"}, []int64{2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			list := ir.NewStrings(nil)
			n := &ir.Node{Op: c.op, Attrs: c.attrs, Outputs: []*ir.Value{{Name: "y"}}}
			var in []*ir.Tensor
			for _, texts := range c.in {
				x := ir.NewTensor(ir.Int64, int64(len(texts)))
				for i, s := range texts {
					ir.Slice[int64](x)[i] = list.Number(s)
				}
				in, n.Inputs = append(in, x), append(n.Inputs, &ir.Value{Name: "x"})
			}
			out, err := eval.NodeWith(n, in, eval.Options{Strings: list})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, k := range ir.Slice[int64](out[0]) {
				s, _ := list.Text(k)
				got = append(got, s)
			}
			if !reflect.DeepEqual(got, c.want) || !reflect.DeepEqual(out[0].Dims, c.dims) {
				t.Errorf("got %q %v, want %q %v", got, out[0].Dims, c.want, c.dims)
			}
			if _, err := eval.Node(n, in); err == nil {
				t.Error("strings are computed without a list")
			}
			ir.Slice[int64](in[0])[0] = 99
			if _, err := eval.NodeWith(n, in, eval.Options{Strings: list}); err == nil {
				t.Error("a number that stands for no string is computed with")
			}
		})
	}
}
