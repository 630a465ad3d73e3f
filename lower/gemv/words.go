package gemv

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/contraction"
	"github.com/rammerc/rammerc/lower/tails"
	"github.com/rammerc/rammerc/roperator"
)

// What the parameter Words of the kernels is the sum of.
const (
	inputInWords  = 1
	resultInWords = 2
)

// mostRowWords is the most words of the input that each rTask polls. It is the longest row that was measured to come
// sooner in this way.
const mostRowWords = 4096

// pollable reports whether an rTask can take elements of the buffer out of tagged words, which another rTask stores in
// every run.
func pollable(b *build.Builder, v roperator.View) bool {
	per := roperator.PerWord(v.DType())
	return v.Buf.Kind == roperator.Arena && !v.Buf.State && per > 0 && v.Offset%per == 0 && b.InWords(v.Buf)
}

// rowInWords reports whether the kernels can poll p's only row in runs of so many values, of which one load brings v.
func rowInWords(b *build.Builder, p *contraction.Product, v, run int64) bool {
	if p.Parts != nil || p.Norm() > 1 || v == 1 || p.K%run != 0 || !pollable(b, p.A) {
		return false
	}
	return p.K/roperator.PerWord(p.A.DType()) <= mostRowWords
}

// wordBuffers lists the buffers that may travel in words where rTasks with so many columns carry out p with the tail t:
// that of the input, those of operands, and that of the result.
func wordBuffers(b *build.Builder, p *contraction.Product, t *tails.Tail, v, run, columns int64) []*roperator.Buffer {
	if p.M != 1 || ir.Count(p.Batch) != 1 || !b.AlwaysRuns() {
		return nil
	}
	var list []*roperator.Buffer
	if rowInWords(b, p, v, run) {
		list = append(list, p.A.Buf)
	}
	for _, o := range t.Operands() {
		// A buffer whose row the kernel cannot poll is no operand in words either.
		if pollable(b, o) && !slices.Contains(list, o.Buf) && o.Buf != stored(p).Buf {
			list = append(list, o.Buf)
		}
	}
	if t.MayLeaveInWords(columns) && !slices.Contains(list, t.Out.Buf) {
		list = append(list, t.Out.Buf)
	}
	return list
}

// inWords are the candidates that differ from `like` in that some of the buffers travel in words, whichever of them it
// is. with makes the candidate for a tail and the kernel's parameter Words.
func inWords(like *roperator.Candidate, p *contraction.Product, t *tails.Tail, buffers []*roperator.Buffer,
	with func(t *tails.Tail, words int64) *roperator.Candidate) []*roperator.Candidate {
	var out []*roperator.Candidate
	for set := 1; set < 1<<len(buffers); set++ {
		var chosen []*roperator.Buffer
		for i, buf := range buffers {
			if set>>i&1 != 0 {
				chosen = append(chosen, buf)
			}
		}
		words := int64(0)
		if p.Parts == nil && slices.Contains(chosen, p.A.Buf) {
			words += inputInWords
		}
		if slices.Contains(chosen, t.Out.Buf) {
			words += resultInWords
		}
		c := with(t.InWords(chosen), words)
		c.Like = like
		for i := range c.Reads {
			if slices.Contains(chosen, c.Reads[i].View.Buf) {
				c.Polls = append(c.Polls, i)
			}
		}
		for i := range c.Writes {
			if slices.Contains(chosen, c.Writes[i].View.Buf) {
				c.Gives = append(c.Gives, i)
			}
		}
		out = append(out, c)
	}
	return out
}
