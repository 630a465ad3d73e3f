package codegen

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/rammerc/rammerc/codegen/abi"
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
	if l.weightBytes/abi.StreamUnit > math.MaxUint32 {
		return problem("too-large", "the constants have %d bytes, the program tables can refer to %d", l.weightBytes, abi.StreamUnit*math.MaxUint32)
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
		l.staging.raise(staging{slots: mover.kept + vdevice.KeptParts*mover.keeps})
	}
	additions := p.Contributors()
	var steps, waits, moves []byte
	le := binary.LittleEndian
	for v, vs := range rows {
		runs := p.Runs(v)
		direct, near := p.Direct(v, runs), mover.near(v, vs, runs)
		for i, s := range vs {
			waits = padTo(waits, 16) // the executor copies waits in pairs
			if n := len(s.Waits) + len(s.Counters); n > math.MaxUint16 {
				return problem("too-many-waits", "a step waits for %d others, the program tables hold %d", n, math.MaxUint16)
			}
			imports, exports := mover.of(s.Task, v)
			if near[i] > 0 {
				imports, exports = mover.readied(imports, exports, i)
			}
			l.staging.moves = max(l.staging.moves, len(imports)+len(exports))
			steps = l.appendStep(steps, s, stepPlace{
				wait: len(waits) / abi.WaitBytes, move: len(moves) / abi.MoveBytes,
				imports: len(imports), exports: len(exports), run: runs[i], direct: direct[i], near: near[i], counters: t.veus,
			})
			for _, m := range imports {
				moves = m.append(moves)
			}
			for _, m := range exports {
				moves = m.append(moves)
			}
			for _, w := range s.Waits {
				waits = le.AppendUint32(le.AppendUint32(waits, uint32(w.VEU)), uint32(w.Order))
			}
			for _, c := range s.Counters {
				waits = le.AppendUint32(le.AppendUint32(waits, abi.CounterWait|uint32(t.veus)+uint32(c)), uint32(len(additions[c])))
			}
		}
	}
	waits = padTo(append(waits, make([]byte, 16)...), 16)
	t.waitCount = len(waits) / abi.WaitBytes
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
		x.ranges, x.chunks = put(d.ranges), d.mostChunks(l.rings)
		t.launches = append(t.launches, x)
	}
	t.moveCount = len(moves) / abi.MoveBytes
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

func (l *layout) appendStep(b []byte, s vdevice.Step, at stepPlace) []byte {
	le := binary.LittleEndian
	op := l.opIndex[s.Task.Op]
	b = le.AppendUint32(b, uint32(op))
	b = le.AppendUint32(b, uint32(s.Task.Index))
	b = le.AppendUint32(b, 0) // args, at load
	b = le.AppendUint32(b, uint32(at.wait))
	b = le.AppendUint16(b, uint16(len(s.Waits)+len(s.Counters)))
	b = le.AppendUint16(b, uint16(l.ops[op].instance))
	b = le.AppendUint16(b, 0) // args_words, at load
	signal := uint16(0)
	if s.Signal {
		signal = 1
	}
	b = le.AppendUint16(b, signal)
	stream := l.stream(op, s.Task.Index)
	b = le.AppendUint32(le.AppendUint32(b, stream.at), stream.words)
	b = le.AppendUint32(b, uint32(at.move))
	b = le.AppendUint16(le.AppendUint16(b, uint16(at.imports)), uint16(at.exports))
	b = le.AppendUint32(b, uint32(at.run))
	add := uint32(0)
	if s.Adds > 0 {
		add = uint32(at.counters) + uint32(s.Adds) - 1
	}
	b = le.AppendUint32(b, add)
	b = le.AppendUint32(le.AppendUint32(b, stream.chunkWords), stream.chunks)
	return le.AppendUint32(le.AppendUint32(b, uint32(at.direct)), at.near)
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
		at: uint32((l.constAt[ref.Buffer] + ref.Offset) / abi.StreamUnit), words: uint32(n / abi.StreamUnit),
		chunkWords: uint32(chunk / abi.StreamUnit), chunks: uint32((n + int64(chunk) - 1) / int64(chunk)),
	}
}

func padTo(b []byte, align int) []byte {
	for len(b)%align != 0 {
		b = append(b, 0)
	}
	return b
}
