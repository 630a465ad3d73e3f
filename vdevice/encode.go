package vdevice

import "github.com/rammerc/rammerc/schema"

// Encoder makes the entries of the program tables for a program's steps: what the kinds of edges and the modes of steps
// say of them. Package codegen lays the tables out.
//
// An rProgram has a step array in global memory: a line for each vEU, with its flag, and behind them a line for each
// meeting point of every kind of edge, by kind and number.
type Encoder struct {
	p         *Program
	moves     *Moves
	firstLine []int   // per kind of edge: the line of its first meeting point
	arriving  [][]int // per kind and meeting point: how many steps announce themselves there
	lines     int     // of the step array
	waits     []schema.Wait
}

// NewEncoder is an encoder for a program that is launched with so many vEUs.
func NewEncoder(p *Program, veus int, at Addresses) *Encoder {
	e := &Encoder{p: p, moves: NewMoves(p, at), lines: veus}
	for k := range edgeRows {
		points := p.Contributors(EdgeKind(k))
		e.firstLine = append(e.firstLine, e.lines)
		counts := make([]int, len(points))
		for i, at := range points {
			counts[i] = len(at)
		}
		e.arriving = append(e.arriving, counts)
		e.lines += len(points)
	}
	return e
}

// Lines is how many lines the step array has for vEUs and meeting points.
func (e *Encoder) Lines() int { return e.lines }

// SharedWords is how many words of shared memory a vEU has for slots and what near steps keep behind them.
func (e *Encoder) SharedWords() int { return e.moves.SharedWords() }

// Entries are the entries of one step. Waits are valid until the next call.
type Entries struct {
	Jumps            []schema.Jump
	Waits            []schema.Wait
	Imports, Exports []schema.Move
}

// Step fills in the fields of a step's row that its edges and its mode decide, and lists its waits and moves.
func (e *Encoder) Step(at At, row *schema.Step) Entries {
	s := e.p.stepAt(at)
	e.waits = e.waits[:0]
	for k := range edgeRows {
		edgeRows[k].encode(e, s, row)
	}
	e.moves.EncodeMode(at, row)
	imports, exports := e.moves.Of(at)
	return Entries{e.jumps(at), e.waits, imports, exports}
}

// awaitFlag adds an entry to the step's waits: the flag of at's vEU must say that the step at at is complete.
func (e *Encoder) awaitFlag(at At) {
	e.waits = append(e.waits, schema.Wait{VEU: uint32(at.VEU), Order: uint32(at.Order)})
}

// awaitSum adds an entry to the step's waits: every step that announces itself at the edge's meeting point must have
// added one to its line.
func (e *Encoder) awaitSum(to Edge) {
	e.waits = append(e.waits, schema.Wait{VEU: schema.CounterWait | e.line(to),
		Order: uint32(e.arriving[to.Kind][to.Number()])})
}

// line is the line of the edge's meeting point in the step array.
func (e *Encoder) line(to Edge) uint32 { return uint32(e.firstLine[to.Kind]) + uint32(to.Number()) }
