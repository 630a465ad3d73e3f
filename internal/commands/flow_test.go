package commands

import (
	"testing"
)

// flowText decides by computed conditions, one inside of another, and by how many elements it finds. Branches read values
// around them, and return some as they are. Loops end by a computed condition, and after a computed number of runs.
const flowText = `graph "flow" (%x: float32[8,16], %t: float32[], %w: float32[16,16]) {
  %zero = const int64[1] {0}
  %limit = const float32[] {0.5}
  %three = const int64[] {3}
  %six = const int64[] {6}
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
  %last: invalid?, %steps = Loop(%six, %more, %x, %zero) {body = graph "body" (%i: int64[], %on: bool[], %v: float32[8,16],
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
	findsAsEvaluator(t, flowText, []float32{-9, 0, 9, 0.4, -0.4, -9})
}
