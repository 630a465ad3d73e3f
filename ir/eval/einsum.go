package eval

import (
	"slices"
	"strings"

	"github.com/rammerc/rammerc/ir"
)

// label identifies an index of the equation: a letter by its code, or an axis of an ellipsis by its place counted from
// the right. Axes of ellipses are aligned at the right and broadcast.
type label = int

// ellipsis is the label of the rightmost axis of an ellipsis; the axis before it has ellipsis+1, and so on.
const ellipsis label = 1 << 16

// einsum multiplies the operands from the left, two at a time. A label that neither the output nor a later operand has
// is summed over as soon as possible.
func einsum(c *call) []*ir.Tensor {
	ts := c.args()
	operands, output := parseEinsum(c.Attr("equation").S, ts)
	to := ts[0].DType
	acc := term{ts[0], operands[0]}
	if len(ts) > 2 && to.IsFloat() { // so that the intermediate products are not rounded
		acc.t = castTo(c, acc.t, ir.Float64)
	}
	if len(ts) == 1 {
		unit := ir.NewTensor(ir.Float64)
		unit.Data = []float64{1}
		return one(contract(c, acc, term{castTo(c, unit, to), nil}, output, extents(acc)).t)
	}
	all := map[label]int64{}
	for i, t := range ts {
		for l, n := range extents(term{t, operands[i]}) {
			if old, seen := all[l]; !seen || old == 1 {
				all[l] = n
			}
		}
	}
	for i := 1; i < len(ts); i++ {
		next := term{castTo(c, ts[i], acc.t.DType), operands[i]}
		keep := output
		if i+1 < len(ts) {
			keep = neededLater(acc.labels, next.labels, output, operands[i+1:])
		}
		acc = contract(c, acc, next, keep, all)
	}
	return one(castTo(c, acc.t, to))
}

// term is a tensor with a label for each axis.
type term struct {
	t      *ir.Tensor
	labels []label
}

// neededLater lists the labels of a and b that the output or an operand of rest has, each once.
func neededLater(a, b, output []label, rest [][]label) []label {
	var keep []label
	for _, l := range slices.Concat(a, b) {
		later := slices.Contains(output, l)
		for _, r := range rest {
			later = later || slices.Contains(r, l)
		}
		if later && !slices.Contains(keep, l) {
			keep = append(keep, l)
		}
	}
	return keep
}

// extents returns the extent of each label of x, checking that repeated labels agree.
func extents(x term) map[label]int64 {
	m := map[label]int64{}
	for i, l := range x.labels {
		if n, seen := m[l]; seen && n != x.t.Dims[i] {
			fail("a label has two different extents, %d and %d", n, x.t.Dims[i])
		}
		m[l] = x.t.Dims[i]
	}
	return m
}

// contract multiplies a and b and sums over all labels that are not in keep. Each label has one of four roles, which
// makes this a batch of matrix products: batch (kept, in both operands), row (kept, in a only), column (kept, in b
// only), or summed (not kept).
func contract(c *call, a, b term, keep []label, n map[label]int64) term {
	var batch, rows, cols, sums []label
	for _, l := range slices.Concat(a.labels, b.labels) {
		inA, inB := slices.Contains(a.labels, l), slices.Contains(b.labels, l)
		group := &sums
		switch kept := slices.Contains(keep, l); {
		case kept && inA && inB:
			group = &batch
		case kept && inA:
			group = &rows
		case kept:
			group = &cols
		}
		if !slices.Contains(*group, l) {
			*group = append(*group, l)
		}
	}
	da, sa := labelled(a, slices.Concat(batch, rows, sums), n)
	db, sb := labelled(b, slices.Concat(batch, sums, cols), n)
	ta, tb := viewOf(c, a.t, 0, da, sa), viewOf(c, b.t, 0, db, sb)
	count := func(ls []label) int {
		p := 1
		for _, l := range ls {
			p *= int(n[l])
		}
		return p
	}
	order := slices.Concat(batch, rows, cols)
	dims := make([]int64, len(order))
	for i, l := range order {
		dims[i] = n[l]
	}
	m, k, w := count(rows), count(sums), count(cols)
	p := multiplication2D{
		batch: count(batch), m: m, k: k, n: w, a: ta, b: tb, out: c.alloc(a.t.DType, dims),
		rowA: k, colA: 1, rowB: w, colB: 1,
	}
	for i := range p.batch {
		p.offA, p.offB = append(p.offA, i*m*k), append(p.offB, i*k*w)
	}
	p.run(c)
	perm := make([]int, len(keep))
	for i, l := range keep {
		perm[i] = slices.Index(order, l)
	}
	return term{permuted(c, p.out, perm), keep}
}

// labelled returns the extents and strides of a window of x whose axes have the given labels. A label that x has twice
// takes the diagonal: its stride is the sum of both. A label that x does not have, or has with extent 1, is broadcast.
func labelled(x term, axes []label, n map[label]int64) (dims, strides []int64) {
	own := rowMajor(x.t.Dims)
	for _, l := range axes {
		stride := int64(0)
		for i, m := range x.labels {
			if m != l {
				continue
			}
			if d := x.t.Dims[i]; d == n[l] {
				stride += own[i]
			} else if d != 1 {
				fail("a label has two different extents, %d and %d", d, n[l])
			}
		}
		dims, strides = append(dims, n[l]), append(strides, stride)
	}
	return dims, strides
}

// parseEinsum returns the labels of the axes of each operand and of the output. Without an arrow the output has the
// axes of ellipses and then the letters that occur once, in alphabetical order. It is independent of ir.ParseEinsum, so
// that an error there does not pass unnoticed.
func parseEinsum(equation string, ts []*ir.Tensor) (operands [][]label, output []label) {
	left, right, explicit := strings.Cut(strings.ReplaceAll(equation, " ", ""), "->")
	terms := strings.Split(left, ",")
	if len(terms) != len(ts) {
		fail("equation %q has %d terms for %d inputs", equation, len(terms), len(ts))
	}
	widest := 0
	for i, s := range terms {
		rank := len(ts[i].Dims)
		ls := parseTerm(equation, s, rank-letters(s))
		if len(ls) != rank {
			fail("equation %q: term %q does not fit rank %d", equation, s, rank)
		}
		operands = append(operands, ls)
		if strings.Contains(s, "...") {
			widest = max(widest, rank-letters(s))
		}
	}
	if !explicit {
		return operands, implicitOutput(operands, widest)
	}
	output = parseTerm(equation, right, widest)
	for i, l := range output {
		if slices.Contains(output[:i], l) || !slices.Contains(slices.Concat(operands...), l) {
			fail("equation %q: a label of the output occurs twice, or no term has it", equation)
		}
	}
	return operands, output
}

func letters(s string) int { return len(strings.ReplaceAll(s, "...", "")) }

// parseTerm returns the labels of one term; dots is the number of axes that its ellipsis stands for.
func parseTerm(equation, s string, dots int) []label {
	var out []label
	if before, after, ok := strings.Cut(s, "..."); ok {
		out = parseTerm(equation, before, 0)
		for i := dots; i > 0; i-- {
			out = append(out, ellipsis+i-1)
		}
		return append(out, parseTerm(equation, after, 0)...)
	}
	for _, r := range s {
		if r < 'A' || r > 'z' || r > 'Z' && r < 'a' {
			fail("equation %q: %q is not a label", equation, r)
		}
		out = append(out, label(r))
	}
	return out
}

func implicitOutput(operands [][]label, dots int) []label {
	var out, once []label
	for i := dots; i > 0; i-- {
		out = append(out, ellipsis+i-1)
	}
	all := slices.Concat(operands...)
	for i, l := range all {
		if l < ellipsis && !slices.Contains(all[:i], l) && !slices.Contains(all[i+1:], l) {
			once = append(once, l)
		}
	}
	slices.Sort(once)
	return append(out, once...)
}
