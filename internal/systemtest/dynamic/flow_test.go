package dynamic

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/schedule"
)

// flowText decides by computed conditions, one inside of another, and by how many elements it finds. Branches read values
// around them, and return some as they are. Loops end by a computed condition, and after a computed number of runs.
const flowText = `graph "flow" (%x: float32[8,16], %t: float32[], %w: float32[16,16]) {
  %zero = const int64[1] {0}
  %limit = const float32[] {0.5}
  %three = const int64[] {3}
  %twelve = const int64[] {12}
  %none = const int64[0] {}
  %one = const int64[1] {1}
  %column = Slice(%x, %zero, %one, %one)
  %flat = Squeeze(%column, %one)
  %sum = ReduceSum(%flat)
  %total = Reshape(%sum, %none)
  %more = Greater(%total, %t)
  %y: invalid?, %s = If(%more) {then_branch = graph "then" () {
      %p: float32[8,16] = MatMul(%x, %w)
      %far: bool[] = Greater(%total, %limit)
      %q: float32[8,16] = If(%far) {then_branch = graph "far" () {
          %a: float32[8,16] = MatMul(%p, %w)
          %b: float32[8,16] = Tanh(%a)
          return %b
        }, else_branch = graph "near" () {
          %c: float32[8,16] = Exp(%p)
          return %c
        }}
      %m: float32[8,1] = ReduceMax(%q, %one)
      return %q, %m
    }, else_branch = graph "else" () {
      %n: float32[8,1] = ReduceMin(%x, %one)
      return %x, %n
    }}
  %z = Add(%y, %s)
  %mask = Greater(%flat, %t)
  %rows = Compress(%x, %mask) {axis = 0}
  %shape = Shape(%rows)
  %count = Gather(%shape, %zero) {axis = 0}
  %number = Reshape(%count, %none)
  %many = Greater(%number, %three)
  %best = ReduceMax(%rows, %zero)
  %k = If(%many) {then_branch = graph "many" () {
      %d: float32[1,16] = MatMul(%best, %w)
      return %d
    }, else_branch = graph "few" () {
      %e: float32[1,16] = Neg(%best)
      return %e
    }}
  %often = Min(%number, %three)
  %last: invalid?, %steps = Loop(%twelve, %more, %x, %zero) {body = graph "body" (%i: int64[], %on: bool[], %v: float32[8,16],
      %before: int64[1]) {
      %u: float32[8,16] = MatMul(%v, %w)
      %g: float32[8,16] = Tanh(%u)
      %r: float32[8] = ReduceMax(%g, %one) {keepdims = 0}
      %r.all: float32[] = ReduceSum(%r) {keepdims = 0}
      %go: bool[] = Greater(%r.all, %limit)
      %after: int64[1] = Add(%before, %one)
      return %go, %g, %after
    }}
  %some = Loop(%often, _, %x) {body = graph "some" (%j: int64[], %still: bool[], %h: float32[8,16]) {
      %o: float32[8,16] = MatMul(%h, %w)
      return %still, %o
    }}
  return %y, %z, %k, %rows, %last, %steps, %some
}
`

// Programs take the branches that the evaluator takes, as rPrograms and in waves.
func TestFlow(t *testing.T) {
	findsAsEvaluator(t, flowText, schedule.PlanAuto, []float32{-9, 0, 9, 0.4, -0.4, -9})
}

// jumpsText has long branches: CHAIN is N products of all rows, each behind the one before. A branch has a branch of its
// own, whose condition it computes, and what follows the first If reads what was there before.
const jumpsText = `graph "jumps" (%x: float32[64,64], %t: float32[], %w: float32[64,64]) {
  %zero = const float32[] {0}
  %c = Greater(%t, %zero)
  %y = If(%c) {then_branch = graph "then" () {
      CHAIN(a, x, Tanh)
      %m: float32[] = ReduceMax(%aN) {keepdims = 0}
      %far: bool[] = Greater(%t, %m)
      %q: float32[64,64] = If(%far) {then_branch = graph "far" () {
          CHAIN(b, aN, Sigmoid)
          return %bN
        }, else_branch = graph "near" () {
          CHAIN(d, aN, Neg)
          return %dN
        }}
      return %q
    }, else_branch = graph "else" () {
      CHAIN(e, x, Sigmoid)
      return %eN
    }}
  %z = Add(%y, %x)
  %k = If(%c) {then_branch = graph "first" () {
      %n: float32[64,64] = MatMul(%z, %x)
      return %n
    }, else_branch = graph "second" () {
      %o: float32[64,64] = Neg(%z)
      return %o
    }}
  return %y, %z, %k
}
`

// chains writes out CHAIN(name, from, function), with n products each.
func chains(text string, n int) string {
	text = regexp.MustCompile(`\b([a-e])N\b`).ReplaceAllString(text, fmt.Sprint("${1}", n))
	for {
		before, rest, found := strings.Cut(text, "CHAIN(")
		if !found {
			return text
		}
		call, behind, _ := strings.Cut(rest, ")")
		part := strings.Split(call, ", ")
		var lines strings.Builder
		from := part[1]
		for i := 1; i <= n; i++ {
			fmt.Fprintf(&lines, "%%%[1]sp%[2]d: float32[64,64] = MatMul(%%%[3]s, %%w)\n"+
				"%%%[1]s%[2]d: float32[64,64] = %[4]s(%%%[1]sp%[2]d)\n", part[0], i, from, part[2])
			from = fmt.Sprint(part[0], i)
		}
		text = before + lines.String() + behind
	}
}

// vEUs of an rProgram jump over branches that are not taken, also over those inside of others, and agree with the
// evaluator in whatever order they do; the same program in waves does, too.
func TestJumps(t *testing.T) {
	findsAsEvaluator(t, chains(jumpsText, 5), schedule.PlanRProgram, []float32{-1, 0.5, 2, -1, 9})
}

// Launches of a long branch are conditional nodes, also those of branches inside of it: the emulator leaves out what is
// not taken, and its results are the evaluator's; they are as well where all launches run and blocks end at once.
func TestBranches(t *testing.T) {
	text := strings.Replace(chains(jumpsText, 34), "%w: float32[64,64]) {", `%v: float32[64,64]) {
  %tenth = const float32[] {0.1}
  %w = Mul(%v, %tenth)`, 1) // products of 34 such matrices are not too large
	for _, apart := range []string{"1", "0"} {
		t.Setenv("RAMMER_EMU_BRANCHES", apart)
		findsAsEvaluator(t, text, schedule.PlanWaves, []float32{-1, 0.5, 1e-9, -1, 9})
	}
}
