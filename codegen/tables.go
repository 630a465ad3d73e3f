package codegen

import (
	"math"
	"slices"

	"github.com/rammerc/rammerc/schema"
	"github.com/rammerc/rammerc/vdevice"
)

// segmentTables are a segment's program tables, in the form the executor reads (rt/schema/tables.cuh), and
// where they stand in the tables part of the weights file.
type segmentTables struct {
	kind                                      vdevice.SegmentKind
	veus, waves, streams                      int
	counters, firstLine, cluster              int
	maxSteps, stepCount, waitCount, moveCount int
	turns, repeated                           int
	steps, waits, moves                       int64 // offsets
	launches                                  []launch
	branches                                  []schema.BranchRow
	parts                                     parts // what its steps use
	data                                      []byte
	at                                        int64 // offset of data
}

func (l *layout) addSegment(segment int) error {
	if l.weightBytes/schema.StreamUnit > math.MaxUint32 {
		return problem("too-large", "the constants have %d bytes, the program tables can refer to %d",
			l.weightBytes, schema.StreamUnit*math.MaxUint32)
	}
	seg := l.plan.Segments[segment]
	p := seg.Program
	rows := usedVEUs(p)
	t := segmentTables{
		kind: seg.Kind, veus: len(rows), waves: p.Waves, streams: seg.Streams(), at: l.tableBytes, firstLine: l.lines,
	}
	t.turns, t.repeated = l.plan.Turns(segment)
	for _, steps := range rows {
		t.stepCount += len(steps)
		t.maxSteps = max(t.maxSteps, len(steps))
	}
	e := vdevice.NewEncoder(p, t.veus, l)
	if seg.Kind == vdevice.RProgram { // others need no step array
		t.counters, t.cluster = e.Lines()-t.veus, p.Cluster
		l.lines += e.Lines() + 1 // the guard's
	}
	l.staging.raise(staging{slots: e.SharedWords()})
	t.parts.repeats = l.repeats() && len(l.plan.Segments) == 1 && seg.Kind == vdevice.RProgram && p.Cluster <= 1
	launches := dispatches(l.plan, segment, rows)
	for i := range launches {
		launches[i].kernel = l.kernelFor(launches[i].tasks)
	}
	if err := l.addSteps(&t, e, rows, launches[len(launches)-p.Waves:]); err != nil {
		return err
	}
	l.addLaunches(&t, seg, launches)
	if seg.Kind != vdevice.Parallel {
		for _, b := range p.Branches() {
			t.branches = append(t.branches, vdevice.BranchRow(b, len(launches)-p.Waves, l))
		}
	}
	t.data = padTo(t.data, 16)
	l.tableBytes += int64(len(t.data))
	l.segments = append(l.segments, t)
	return nil
}

// put adds a table to the segment's data and returns where it is among the tables of the program.
func (t *segmentTables) put(b []byte) int64 {
	t.data = padTo(t.data, 16)
	at := t.at + int64(len(t.data))
	t.data = append(t.data, b...)
	return at
}

// addSteps adds the tables of a segment's steps, vEU by vEU, and of what they wait for and move. waves are the launches
// of the segment's waves, one for each.
func (l *layout) addSteps(t *segmentTables, e *vdevice.Encoder, rows [][]vdevice.Step, waves []dispatch) error {
	var steps, waits, moves []byte
	for v, vs := range rows {
		for i := range vs {
			waits = padTo(waits, 16) // the executor copies waits in pairs
			row := l.stepRow(vs[i].Task, waves[vs[i].Wave].kernel)
			x := e.Step(vdevice.At{VEU: int32(v), Order: int32(i)}, &row)
			if n := len(x.Waits); n > math.MaxUint16-2*math.MaxUint8 {
				return problem("too-many-waits", "a step waits for %d others, the program tables hold %d",
					n, math.MaxUint16-2*math.MaxUint8)
			}
			if n := len(x.Jumps); n > math.MaxUint8 {
				return problem("too-many-waits", "a step is in %d branches, the program tables hold %d", n,
					math.MaxUint8)
			}
			l.staging.moves = max(l.staging.moves, len(x.Imports)+len(x.Exports))
			row.WaitBegin = uint32(len(waits) / schema.WaitBytes)
			if t.kind == vdevice.RProgram {
				for _, j := range x.Jumps {
					waits = j.Append(waits)
				}
				row.Jumps = uint8(len(x.Jumps))
			}
			row.WaitCount = uint16(len(waits)/schema.WaitBytes-int(row.WaitBegin)) + uint16(len(x.Waits))
			row.MoveBegin = uint32(len(moves) / schema.MoveBytes)
			row.Imports, row.Exports = uint16(len(x.Imports)), uint16(len(x.Exports))
			t.parts.noteStep(&row)
			steps = row.Append(steps)
			for _, m := range x.Imports {
				moves = m.Append(moves)
			}
			for _, m := range x.Exports {
				moves = m.Append(moves)
			}
			for _, w := range x.Waits {
				waits = w.Append(waits)
			}
		}
	}
	waits = padTo(append(waits, make([]byte, 16)...), 16)
	t.waitCount, t.moveCount = len(waits)/schema.WaitBytes, len(moves)/schema.MoveBytes
	t.steps, t.waits, t.moves = t.put(steps), t.put(waits), t.put(moves)
	return nil
}

// addLaunches adds the rows of a segment's launches, and the ranges of steps that their thread blocks walk.
func (l *layout) addLaunches(t *segmentTables, seg vdevice.Segment, launches []dispatch) {
	for i, d := range launches {
		d.op = -1
		if op, ok := d.only(seg.Program); ok && (i > 0 || seg.Kind != vdevice.RProgram) {
			d.op = l.opIndex[op]
			d.first, d.stride = d.strideOf()
			blocks := make([]weightBlock, d.grid)
			for b, task := range d.tasks {
				blocks[b] = l.stream(d.op, task.Index, d.kernel)
			}
			d.weights = blockStreamOf(blocks)
		}
		x := d.launch
		l.kernels[d.kernel].parts.noteLaunch(t, &d)
		var ranges []byte
		for _, r := range d.ranges {
			ranges = r.Append(ranges)
		}
		x.ranges, x.chunks = t.put(ranges), d.mostChunks(&l.kernels[d.kernel].Kernel)
		t.launches = append(t.launches, x)
	}
}

// usedVEUs are the steps of the program's vEUs up to the last one that has any, and of at least one vEU.
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

// mostVEUs is how many vEUs have to be on the device at once, in the segment where they are most.
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

// stepRow is a step's row of the program tables, as far as the rTask and the kernel that runs it decide it.
func (l *layout) stepRow(t vdevice.Task, kernel int) schema.Step {
	op := l.opIndex[t.Op]
	stream := l.stream(op, t.Index, kernel)
	return schema.Step{
		Op: uint32(op), RTask: uint32(t.Index), Instance: uint16(l.ops[op].instance),
		Stream: stream.at, StreamWords: stream.words, ChunkWords: stream.chunkWords, Chunks: stream.chunks,
	}
}

// weightBlock is the weights that a step streams, in units of schema.StreamUnit: their place among the constants, their
// length, the length of a chunk and the number of chunks.
type weightBlock struct{ at, words, chunkWords, chunks uint32 }

// stream is the weight block of an rTask that the given kernel runs.
func (l *layout) stream(op int, rtask int32, kernel int) weightBlock {
	c := l.ops[op].cand
	if c.Stream == nil {
		return weightBlock{}
	}
	ref, n := c.Stream(int(rtask))
	chunk := l.kernels[kernel].Chunk(c.Inst.StreamStep())
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
