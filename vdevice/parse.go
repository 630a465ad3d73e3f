package vdevice

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/schema"
)

const (
	maxParseErrors = 50      // reported of one file
	maxLine        = 1 << 16 // bytes; a step that waits for every vEU of a large device has a tenth
)

// ParsePlan reads the text form of a plan of g on spec. It checks form and names; Verify says whether
// the plan is legal. file is for messages only.
func ParsePlan(file string, text []byte, g *roperator.Graph, spec *device.Spec) (*Plan, error) {
	p := &planParser{file: file, plan: &Plan{Spec: spec, Graph: g}, seen: map[string]bool{}, veu: -1}
	p.plan.Pick, p.plan.Arena, p.plan.Words = make([]int, len(g.Ops)), make([]int64, len(g.Buffers)), make([]int64, len(g.Buffers))
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
		p.fail(`want "rprogram 1" first, the file is empty`)
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

	rest string // of the statement
	bad  bool   // the statement is in error already
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
		p.fail(`want "rprogram 1" first, found %q`, word)
		return
	}
	switch word {
	case "rprogram":
		p.header()
	case "graph":
		p.graph()
	case "device":
		p.device()
	case "arena":
		p.once(word)
		p.plan.ArenaLen = p.number(0, math.MaxInt64)
	case "words":
		p.once(word)
		p.plan.WordsLen = p.number(0, math.MaxInt64)
	case "buffer":
		p.buffer(p.plan.Arena)
	case "tagged":
		p.buffer(p.plan.Words)
	case "carry":
		p.carry()
	case "segment":
		p.segment()
	case "op":
		p.op()
	case "slot":
		p.slot()
	case "node":
		p.node()
	case "veu":
		p.startVEU()
	default:
		p.fail("unknown statement %.20q", word)
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
	if v := p.number(0, math.MaxInt64); v != 1 {
		p.fail("version is %d, this rammerc reads version 1", v)
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

func (p *planParser) carry() {
	prog := p.program()
	id := p.number(0, int64(len(p.plan.Arena))-1)
	word := p.word()
	for p.rest != "" && p.rest[0] == '-' {
		p.rest = p.rest[1:]
		word += "-" + p.word()
	}
	if p.bad {
		return
	}
	if prog.Carry == nil {
		prog.Carry = make([]Carry, len(p.plan.Arena))
	}
	switch word {
	case Tagged.String():
		prog.Carry[id] = Tagged
	case TaggedAndPlain.String():
		prog.Carry[id] = TaggedAndPlain
	default:
		p.fail("unknown way to travel %.20q, want %v or %v", word, Tagged, TaggedAndPlain)
	}
}

func (p *planParser) segment() {
	kind := p.segmentKind()
	p.keyword("veus")
	most := int64(p.plan.Spec.VEUs())
	if kind == Parallel {
		most *= int64(max(1, len(p.plan.Graph.Ops))) // a stream for each
	}
	veus := p.number(1, most)
	p.keyword("waves")
	waves, counters := p.number(0, math.MaxInt32), int64(0)
	if p.optional("counters") {
		counters = p.number(0, math.MaxInt32)
	}
	cluster := int64(0)
	if p.optional("cluster") {
		cluster = p.number(1, most)
	}
	if p.bad {
		veus, waves, counters = 1, 0, 0 // what follows still has a place
	}
	prog := &Program{
		Spec: p.plan.Spec, Ops: p.plan.Graph.Ops,
		Pick: make([]int, len(p.plan.Pick)), Steps: make([][]Step, veus), Waves: int(waves), Counters: int(counters),
		Cluster: int(cluster),
	}
	for i := range prog.Pick {
		prog.Pick[i] = -1
	}
	s := Segment{Kind: kind, Program: prog}
	switch w := p.word(); w {
	case "":
	case "serial":
		s.Serial = true
	default:
		p.fail("want serial or the end of the line, found %.20q", w)
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

// slot reads where in its shared memory a vEU takes elements.
func (p *planParser) slot() {
	prog := p.program()
	if p.bad {
		return
	}
	s := Slot{VEU: int32(p.number(0, int64(len(prog.Steps))-1))}
	p.keyword("buffer")
	s.Buf = int32(p.number(0, int64(len(p.plan.Arena))-1))
	p.keyword("from")
	s.Lo = p.number(0, math.MaxInt64)
	p.keyword("to")
	s.Hi = p.number(0, math.MaxInt64)
	p.keyword("at")
	s.At = int32(p.number(0, maxSlotWords))
	p.keyword("gate")
	s.Gate = int32(p.number(0, schema.Gates-1))
	if !p.bad {
		prog.Slots = append(prog.Slots, s)
	}
}

// node reads what a parallel segment says of a launch.
func (p *planParser) node() {
	prog := p.program()
	if p.bad {
		return
	}
	if kind := p.plan.Segments[len(p.plan.Segments)-1].Kind; kind != Parallel {
		p.fail("a %v segment has no nodes", kind)
		return
	}
	if got, want := p.number(0, math.MaxInt32), len(prog.Nodes); int(got) != want {
		p.fail("node %d comes where node %d is due", got, want)
	}
	p.keyword("stream")
	n := Node{Stream: int32(p.number(0, int64(max(1, len(p.plan.Graph.Ops))-1)))}
	switch w := p.word(); w {
	case "":
	case "after":
		n.After = p.nodeNumbers()
	default:
		p.fail("want after or the end of the line, found %.20q", w)
	}
	if !p.bad {
		prog.Nodes = append(prog.Nodes, n)
	}
}

func (p *planParser) nodeNumbers() []int32 {
	var out []int32
	for p.space(); !p.bad && p.rest != ""; p.space() {
		out = append(out, int32(p.number(0, math.MaxInt32)))
	}
	if len(out) == 0 {
		p.fail("after names no node")
	}
	return out
}

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
	p.keyword("wave")
	s.Wave = int32(p.number(0, math.MaxInt32))
	if p.optional("wait") {
		s.Waits = p.waits()
	}
	if p.optional("follow") {
		s.Follows = p.waits()
	}
	if p.optional("counters") {
		s.Counters = p.counters()
	}
	if p.optional("adds") {
		s.Adds = int32(p.number(0, int64(prog.Counters)-1)) + 1
	}
	s.Signal = p.optional("signal")
	if word := p.word(); word != "" {
		p.fail("want wait, follow, counters, adds or signal, found %.20q", word)
	}
	if !p.bad {
		prog.Steps[p.veu] = append(prog.Steps[p.veu], s)
	}
}

func (p *planParser) waits() []At {
	var out []At
	for p.space(); !p.bad && p.rest != "" && p.rest[0] >= '0' && p.rest[0] <= '9'; p.space() {
		v := p.number(0, math.MaxInt32)
		p.char(':')
		out = append(out, At{int32(v), int32(p.number(0, math.MaxInt32))})
	}
	if len(out) == 0 {
		p.fail("no step is named")
	}
	return out
}

func (p *planParser) counters() []int32 {
	var out []int32
	for p.space(); !p.bad && p.rest != "" && p.rest[0] >= '0' && p.rest[0] <= '9'; p.space() {
		out = append(out, int32(p.number(0, math.MaxInt32)))
	}
	if len(out) == 0 {
		p.fail("counters names no counter")
	}
	return out
}

func (p *planParser) space() {
	p.rest = strings.TrimLeft(p.rest, " \t\r")
	if strings.HasPrefix(p.rest, "#") {
		p.rest = ""
	}
}

func (p *planParser) word() string {
	p.space()
	n := 0
	for n < len(p.rest) && p.rest[n] >= 'a' && p.rest[n] <= 'z' {
		n++
	}
	w := p.rest[:n]
	p.rest = p.rest[n:]
	return w
}

// optional skips the word if it comes next.
func (p *planParser) optional(want string) bool {
	rest := p.rest
	if !p.bad && p.word() == want {
		return true
	}
	p.rest = rest
	return false
}

func (p *planParser) keyword(want string) {
	if w := p.word(); w != want {
		p.fail("want %s, found %.20q", want, w+p.rest)
	}
}

func (p *planParser) char(c byte) {
	if p.bad || p.rest == "" || p.rest[0] != c {
		p.fail("want %q, found %.20q", c, p.rest)
		return
	}
	p.rest = p.rest[1:]
}

// number reads a decimal in [lo, hi]; after an error it returns lo without reading.
func (p *planParser) number(lo, hi int64) int64 {
	p.space()
	n := 0
	for n < len(p.rest) && p.rest[n] >= '0' && p.rest[n] <= '9' {
		n++
	}
	if p.bad || n == 0 {
		p.fail("want a number, found %.20q", p.rest)
		return lo
	}
	x, err := strconv.ParseInt(p.rest[:n], 10, 64)
	if err != nil || x < lo || x > hi {
		p.fail("%.30s is out of range, want %d … %d", p.rest[:n], lo, hi)
		return lo
	}
	p.rest = p.rest[n:]
	return x
}

func (p *planParser) quoted() string {
	p.space()
	q, err := strconv.QuotedPrefix(p.rest)
	if err != nil || q[0] != '"' {
		p.fail("want a quoted name, found %.20q", p.rest)
		return ""
	}
	p.rest = p.rest[len(q):]
	s, err := strconv.Unquote(q)
	if err != nil {
		p.fail("bad quoting of %.20q", q)
	}
	return s
}

func (p *planParser) agree(what, got, want string) {
	if got != want {
		p.fail("%s %.60q here and %.60q in the graph", what, got, want)
	}
}

func (p *planParser) agreeNumber(what string, got, want int64) {
	if got != want {
		p.fail("%d %s here and %d in the graph", got, what, want)
	}
}
