package vdevice

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"strings"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/roperator"
)

const (
	maxParseErrors = 50      // reported of one file
	maxLine        = 1 << 16 // bytes; a step that waits for every vEU of a large device has a tenth
)

// ParsePlan reads the text form of a plan of g on spec. It checks form and names; Verify says whether
// the plan is legal. file is for messages only.
func ParsePlan(file string, text []byte, g *roperator.Graph, spec *device.Spec) (*Plan, error) {
	p := &planParser{file: file, plan: &Plan{Spec: spec, Graph: g}, seen: map[string]bool{}, veu: -1,
		statements: planStatements()}
	for k := range edgeRows {
		maps.Copy(p.statements, edgeRows[k].statements())
	}
	p.plan.Pick, p.plan.Arena, p.plan.Words = make([]int, len(g.Ops)), make([]int64, len(g.Buffers)),
		make([]int64, len(g.Buffers))
	for i := range p.plan.Pick {
		p.plan.Pick[i] = -1
	}
	for i := range p.plan.Arena {
		p.plan.Arena[i], p.plan.Words[i] = -1, -1
	}
	for len(text) > 0 && p.l.Errors() < maxParseErrors {
		line := text
		if i := bytes.IndexByte(text[:min(len(text), maxLine)], '\n'); i >= 0 {
			line, text = text[:i], text[i+1:]
		} else if len(text) > maxLine {
			p.line++
			p.fail("the line has more than %d bytes", maxLine)
			break
		} else {
			text = nil
		}
		p.line++
		p.statement(string(line))
	}
	if !p.seen["rprogram"] && p.l.Errors() == 0 {
		p.fail(`want "rprogram %d" first, the file is empty`, textVersion)
	}
	if err := p.l.Err(); err != nil {
		return nil, err
	}
	return p.plan, nil
}

type planParser struct {
	file string
	line int
	l    diag.List
	plan *Plan
	seen map[string]bool // statements that may come once
	veu  int             // that steps belong to, -1 before the first of a segment

	statements map[string]func(*planParser) // by first word
	rest       string                       // of the statement
	bad        bool                         // the statement is in error already
}

func (p *planParser) fail(format string, args ...any) {
	if !p.bad {
		p.l.Add(&diag.Diagnostic{ID: "bad-rprog", File: p.file, Line: p.line, Message: fmt.Sprintf(format, args...)})
	}
	p.bad = true
}

func (p *planParser) statement(line string) {
	p.rest, p.bad = line, false
	p.space()
	if p.rest == "" {
		return
	}
	if c := p.rest[0]; c >= '0' && c <= '9' {
		p.step()
	} else {
		p.keywordStatement(p.word())
	}
	if p.space(); p.rest != "" {
		p.fail("%.20q is too much", p.rest)
	}
}

func (p *planParser) keywordStatement(word string) {
	if word != "rprogram" && !p.seen["rprogram"] {
		p.fail(`want "rprogram %d" first, found %q`, textVersion, word)
		return
	}
	read := p.statements[word]
	if read == nil {
		p.fail("unknown statement %.20q", word)
		return
	}
	read(p)
}

// planStatements are the statements that belong to no kind of edge, by their first word.
func planStatements() map[string]func(*planParser) {
	return map[string]func(*planParser){
		"rprogram": (*planParser).header,
		"graph":    (*planParser).graph,
		"device":   (*planParser).device,
		"arena": func(p *planParser) {
			p.once("arena")
			p.plan.ArenaLen = p.number(0, math.MaxInt64)
		},
		"buffer":  func(p *planParser) { p.buffer(p.plan.Arena) },
		"segment": (*planParser).segment,
		"op":      (*planParser).op,
		"veu":     (*planParser).startVEU,
	}
}

// once reports a statement that comes again.
func (p *planParser) once(word string) {
	if p.seen[word] {
		p.fail("%s comes twice", word)
	}
	p.seen[word] = true
}

func (p *planParser) header() {
	p.once("rprogram")
	if v := p.number(0, math.MaxInt64); v != textVersion {
		p.fail("version is %d, this rammerc reads version %d", v, textVersion)
	}
}

func (p *planParser) graph() {
	p.once("graph")
	g := p.plan.Graph
	p.agree("the graph is called", p.quoted(), g.Name)
	p.keyword("ops")
	p.agreeNumber("rOperators", p.number(0, math.MaxInt64), int64(len(g.Ops)))
	p.keyword("buffers")
	p.agreeNumber("buffers", p.number(0, math.MaxInt64), int64(len(g.Buffers)))
}

func (p *planParser) device() {
	p.once("device")
	p.agree("the device is", p.quoted(), p.plan.Spec.Name)
}

// buffer reads where a buffer is, in the arena or among the tagged words.
func (p *planParser) buffer(places []int64) {
	id := p.number(0, int64(len(places))-1)
	p.keyword("at")
	off := p.number(0, math.MaxInt64)
	name := p.quoted()
	if p.bad {
		return
	}
	p.agree("the buffer is called", name, p.plan.Graph.Buffers[id].Name)
	if places[id] >= 0 {
		p.fail("buffer %d comes twice", id)
		return
	}
	places[id] = off
}

func (p *planParser) segment() {
	kind := p.segmentKind()
	p.keyword("veus")
	most := int64(p.plan.Spec.VEUs())
	switch kind {
	case Parallel:
		most *= int64(max(1, len(p.plan.Graph.Ops))) // a stream for each
	case Waves:
		most *= MostCrowded
	}
	veus := p.number(1, most)
	if p.bad {
		veus = 1 // what follows still has a place
	}
	s := Segment{Kind: kind, Program: &Program{
		Spec: p.plan.Spec, Ops: p.plan.Graph.Ops, Pick: make([]int, len(p.plan.Pick)), Steps: make([][]Step, veus),
	}}
	for i := range s.Program.Pick {
		s.Program.Pick[i] = -1
	}
	if p.optional("loop") {
		s.Loop = int(p.number(1, int64(max(1, len(p.plan.Graph.Loops)))))
	}
	for k := range edgeRows {
		edgeRows[k].parseSegment(p, &s)
	}
	if w := p.word(); w != "" {
		p.fail("want the end of the line, found %.20q", w)
	}
	p.plan.Segments = append(p.plan.Segments, s)
	p.veu = -1
}

func (p *planParser) segmentKind() SegmentKind {
	w := p.word()
	for k, name := range segmentKinds {
		if w == name {
			return SegmentKind(k)
		}
	}
	p.fail("unknown kind of segment %.20q, want one of %s", w, strings.Join(segmentKinds[:], ", "))
	return RProgram
}

// numbers reads one number or more, up to something else.
func (p *planParser) numbers(none string) []int32 {
	var out []int32
	for p.space(); !p.bad && p.digit(); p.space() {
		out = append(out, int32(p.number(0, math.MaxInt32)))
	}
	if len(out) == 0 {
		p.fail("%s", none)
	}
	return out
}

// edges reads the ends of edges of one kind behind its word: steps as VEU:ORDER, or numbers of meeting points.
func (p *planParser) edges(kind EdgeKind) []Edge {
	r := &edgeRows[kind]
	var out []Edge
	for p.space(); !p.bad && p.digit(); p.space() {
		e := Meeting(kind, int32(p.number(0, math.MaxInt32)))
		if !r.meets {
			p.char(':')
			e.Order = int32(p.number(0, math.MaxInt32))
		}
		out = append(out, e)
	}
	switch {
	case len(out) > 0:
	case r.meets:
		p.fail("%s names no %s", r.in, r.name)
	default:
		p.fail("no step is named")
	}
	return out
}

// digit reports whether a number comes next.
func (p *planParser) digit() bool { return p.rest != "" && p.rest[0] >= '0' && p.rest[0] <= '9' }

func (p *planParser) program() *Program {
	if n := len(p.plan.Segments); n > 0 {
		return p.plan.Segments[n-1].Program
	}
	p.fail("want a segment first")
	return nil
}

func (p *planParser) op() {
	prog := p.program()
	id := p.number(0, int64(len(p.plan.Pick))-1)
	if p.bad {
		return
	}
	op := p.plan.Graph.Ops[id]
	p.keyword("pick")
	pick := p.number(0, int64(len(op.Candidates))-1)
	p.keyword("rtasks")
	tasks := p.number(0, math.MaxInt32)
	name, kind, inst := p.quoted(), p.quoted(), p.quoted()
	if p.bad {
		return
	}
	p.agree("the rOperator is called", name, op.Name)
	p.agree("the rOperator computes", kind, op.Kind)
	p.agree("the rKernel is", inst, op.Candidates[pick].Inst.Name())
	p.agreeNumber("rTasks", tasks, int64(op.Candidates[pick].Tasks))
	if p.plan.Pick[id] >= 0 {
		p.fail("rOperator %d comes twice", id)
	}
	if !p.bad {
		prog.Pick[id], p.plan.Pick[id] = int(pick), int(pick)
	}
}

func (p *planParser) startVEU() {
	if prog := p.program(); prog != nil {
		p.veu = int(p.number(0, int64(len(prog.Steps))-1))
		if !p.bad && len(prog.Steps[p.veu]) > 0 {
			p.fail("vEU %d comes twice", p.veu)
		}
	}
}

func (p *planParser) step() {
	if p.veu < 0 {
		p.fail("want a vEU before the first step")
		return
	}
	prog := p.program()
	var s Step
	s.Task.Op = int32(p.number(0, int64(len(p.plan.Pick))-1))
	if !p.bad && prog.Pick[s.Task.Op] < 0 {
		p.fail("rOperator %d has no op statement in this segment", s.Task.Op)
	}
	p.char('.')
	if !p.bad {
		s.Task.Index = int32(p.number(0, int64(prog.Candidate(s.Task.Op).Tasks)-1))
	}
	for k := range edgeRows {
		edgeRows[k].parseStep(p, &s)
	}
	p.mode(&s)
	if word := p.word(); word != "" {
		p.fail("want %s, found %.20q", strings.Join(stepWords(), ", "), word)
	}
	if !p.bad {
		prog.Steps[p.veu] = append(prog.Steps[p.veu], s)
	}
}

// stepWords lists the words that a step's line may have behind its wave.
func stepWords() []string {
	var out []string
	for k := range edgeRows {
		for _, w := range []string{edgeRows[k].in, edgeRows[k].out} {
			if w != "" {
				out = append(out, w)
			}
		}
	}
	for m := range modeRows {
		out = append(out, modeRows[m].name)
	}
	return out
}
