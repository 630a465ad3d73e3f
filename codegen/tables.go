package codegen

import (
	"math"
	"slices"

	"github.com/rammerc/rammerc/schema"
	"github.com/rammerc/rammerc/vdevice"
)

// segmentTables are a segment's program tables, in the form the executor reads (rt/exec/executor.cuh), and
// where they stand in the tables part of the weights file.
type segmentTables struct {
	kind                                      vdevice.SegmentKind
	veus, waves, streams                      int
	counters, firstLine, cluster              int
	maxSteps, stepCount, waitCount, moveCount int
	steps, waits, moves                       int64 // offsets
	launches                                  []launch
	data                                      []byte
	at                                        int64 // offset of data
}

func (l *layout) addSegment(segment int) error {
	if l.weightBytes/schema.StreamUnit > math.MaxUint32 {
		return problem("too-large", "the constants have %d bytes, the program tables can refer to %d", l.weightBytes, schema.StreamUnit*math.MaxUint32)
	}
	seg := l.plan.Segments[segment]
	p := seg.Program
	rows := usedVEUs(p)
	t := segmentTables{
		kind: seg.Kind, veus: len(rows), waves: p.Waves, streams: seg.Streams(), at: l.tableBytes, firstLine: l.lines,
	}
	if seg.Kind == vdevice.RProgram { // others need no step array
		t.counters, t.cluster = p.Counters, p.Cluster
		l.lines += t.veus + t.counters + 1 // the guard's
	}
	for _, steps := range rows {
		t.stepCount += len(steps)
		t.maxSteps = max(t.maxSteps, len(steps))
	}
	l.staging.raise(staging{slots: p.SlotWords()})
	mover := l.mover(p)
	mover.findNear(rows)
	if mover.apart {
		l.staging.raise(staging{slots: mover.kept + schema.KeptParts*mover.keeps})
	}
	additions := p.Contributors(vdevice.EdgeCounter)
	var steps, waits, moves []byte
	for v, vs := range rows {
		runs := p.Runs(v)
		direct, near := p.Direct(v, runs), mover.near(v, vs, runs)
		for i, s := range vs {
			waits = padTo(waits, 16) // the executor copies waits in pairs
			if n := s.Polls(); n > math.MaxUint16 {
				return problem("too-many-waits", "a step waits for %d others, the program tables hold %d", n, math.MaxUint16)
			}
			imports, exports := mover.of(s.Task, v)
			if near[i] > 0 {
				imports, exports = mover.readied(imports, exports, i)
			}
			l.staging.moves = max(l.staging.moves, len(imports)+len(exports))
			steps = l.stepRow(s, stepPlace{
				wait: len(waits) / schema.WaitBytes, move: len(moves) / schema.MoveBytes,
				imports: len(imports), exports: len(exports), run: runs[i], direct: direct[i], near: near[i], counters: t.veus,
			}).Append(steps)
			for _, m := range imports {
				moves = m.Append(moves)
			}
			for _, m := range exports {
				moves = m.Append(moves)
			}
			for _, w := range s.InOf(vdevice.EdgeFlag) {
				waits = schema.Wait{VEU: uint32(w.VEU), Order: uint32(w.Order)}.Append(waits)
			}
			for _, c := range s.InOf(vdevice.EdgeCounter) {
				waits = schema.Wait{VEU: schema.CounterWait | uint32(t.veus) + uint32(c.Number()), Order: uint32(len(additions[c.Number()]))}.Append(waits)
			}
		}
	}
	waits = padTo(append(waits, make([]byte, 16)...), 16)
	t.waitCount = len(waits) / schema.WaitBytes
	put := func(b []byte) int64 {
		t.data = padTo(t.data, 16)
		at := t.at + int64(len(t.data))
		t.data = append(t.data, b...)
		return at
	}
	t.steps, t.waits, t.moves = put(steps), put(waits), put(moves)
	for i, d := range dispatches(l.plan, segment, rows) {
		d.op = -1
		if op, ok := d.only(p); ok && (i > 0 || seg.Kind != vdevice.RProgram) {
			d.op = l.opIndex[op]
			d.first, d.stride = d.strideOf()
			blocks := make([]weightBlock, d.grid)
			for b, task := range d.tasks {
				blocks[b] = l.stream(d.op, task.Index)
			}
			d.weights = blockStreamOf(blocks)
		}
		x := d.launch
		var ranges []byte
		for _, r := range d.ranges {
			ranges = r.Append(ranges)
		}
		x.ranges, x.chunks = put(ranges), d.mostChunks(l.rings)
		t.launches = append(t.launches, x)
	}
	t.moveCount = len(moves) / schema.MoveBytes
	t.data = padTo(t.data, 16)
	l.tableBytes += int64(len(t.data))
	l.segments = append(l.segments, t)
	return nil
}

// usedVEUs are the program's vEUs up to the last that has steps, at least one.
func usedVEUs(p *vdevice.Program) [][]vdevice.Step {
	n := len(p.Steps)
	for n > 1 && len(p.Steps[n-1]) == 0 {
		n--
	}
	if n == 0 {
		return make([][]vdevice.Step, 1)
	}
	if p.Cluster > 1 { // a launch is of whole clusters
		n = (n + p.Cluster - 1) / p.Cluster * p.Cluster
		return append(slices.Clone(p.Steps), make([][]vdevice.Step, p.Cluster)...)[:n]
	}
	return p.Steps[:n]
}

// mostVEUs is the most vEUs that have to be on the device at once.
func (l *layout) mostVEUs() int {
	n := 1
	for _, seg := range l.plan.Segments {
		if seg.Kind == vdevice.RProgram {
			n = max(n, len(usedVEUs(seg.Program)))
		}
	}
	for _, p := range l.parts {
		n = max(n, p.mostVEUs())
	}
	return n
}

// stepPlace is what a step's entry says beside the step itself.
type stepPlace struct {
	wait, move       int // first of its waits and moves
	imports, exports int
	run              int32
	direct           int32
	near             uint32
	counters         int // line of the first counter, behind the vEUs'
}

func (l *layout) stepRow(s vdevice.Step, at stepPlace) schema.Step {
	op := l.opIndex[s.Task.Op]
	stream := l.stream(op, s.Task.Index)
	row := schema.Step{
		Op: uint32(op), RTask: uint32(s.Task.Index), Instance: uint16(l.ops[op].instance),
		WaitBegin: uint32(at.wait), WaitCount: uint16(s.Polls()), Signal: s.Signals(),
		Stream: stream.at, StreamWords: stream.words, ChunkWords: stream.chunkWords, Chunks: stream.chunks,
		MoveBegin: uint32(at.move), Imports: uint16(at.imports), Exports: uint16(at.exports),
		Run: uint32(at.run), Direct: uint32(at.direct), Near: at.near,
	}
	if c, ok := s.Adds(); ok {
		row.Add = uint32(at.counters) + uint32(c)
	}
	return row
}

// weightBlock is what a step streams, in units of 16 bytes: where it stands among the constants, how long
// it is, and in what chunks it comes.
type weightBlock struct{ at, words, chunkWords, chunks uint32 }

func (l *layout) stream(op int, rtask int32) weightBlock {
	c := l.ops[op].cand
	if c.Stream == nil {
		return weightBlock{}
	}
	ref, n := c.Stream(int(rtask))
	chunk := l.rings.Chunk(c.Inst.StreamStep())
	return weightBlock{
		at: uint32((l.constAt[ref.Buffer] + ref.Offset) / schema.StreamUnit), words: uint32(n / schema.StreamUnit),
		chunkWords: uint32(chunk / schema.StreamUnit), chunks: uint32((n + int64(chunk) - 1) / int64(chunk)),
	}
}

func padTo(b []byte, align int) []byte {
	for len(b)%align != 0 {
		b = append(b, 0)
	}
	return b
}
