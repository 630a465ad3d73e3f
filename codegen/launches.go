package codegen

import (
	"slices"

	"github.com/rammerc/rammerc/schema"
	"github.com/rammerc/rammerc/vdevice"
)

// launch is a kernel launch, as rt::LaunchRow tells it.
type launch struct {
	grid, threads, shared int
	chunks                int // of streamed weights: the most of any block
	overlap               bool
	alone                 bool  // no more than VEUsPerSM of its blocks share a multiprocessor
	firstVEU              int   // the vEU of block 0
	ranges                int64 // offset of a StepRange a block

	stream  int
	after   []int32 // launches of the segment, on other streams
	awaited bool    // by a launch on another stream

	// Where every block runs one step, all of rOperator op; otherwise op is -1 and the rest says nothing.
	op            int
	first, stride uint32 // block b's step is first + b·stride, unless stride is 0
	weights       schema.BlockStream
}

// dispatch is a launch with the steps of its blocks.
type dispatch struct {
	launch
	ranges  []schema.StepRange // of each block
	streams [][]piece          // for each block that streams weights: those of its rTasks
	tasks   []vdevice.Task
}

// dispatches lists the launches of a plan's segment: of an rProgram the persistent one, then one a wave,
// which are its fall-back. rows are the steps of the vEUs, one vEU behind the other in the step table. A
// wave gets as many blocks as the highest vEU that it uses asks for, and threads and shared memory for its
// own rTasks only: blocks of launches that overlap have to find room beside each other. Those that compute for longer
// than an overlapping launch takes to start are alone on a multiprocessor.
func dispatches(plan *vdevice.Plan, segment int, rows [][]vdevice.Step) []dispatch {
	seg := plan.Segments[segment]
	var out []dispatch
	if seg.Kind == vdevice.RProgram {
		d := dispatch{launch: launch{grid: len(rows)}}
		first := 0
		for _, steps := range rows {
			d.add(seg.Program, steps, first)
			first += len(steps)
		}
		out = append(out, d)
	}
	parts := waves(seg.Program, rows)
	if seg.Kind == vdevice.Parallel {
		onStreams(parts, seg)
	} else {
		for w := range parts {
			parts[w].overlap = w > 0 && !seg.Serial || w == 0 && plan.Overlaps(segment)
		}
		for _, w := range seg.Program.Alone {
			parts[w].alone = true
		}
	}
	return append(out, parts...)
}

// waves lists one launch a wave.
func waves(p *vdevice.Program, rows [][]vdevice.Step) []dispatch {
	out := make([]dispatch, p.Waves)
	for w, n := range p.Nodes {
		out[w].firstVEU = int(n.Stream) * p.Spec.VEUs()
	}
	first := 0
	for v, steps := range rows {
		for from := 0; from < len(steps); {
			wave := steps[from].Wave
			to := from + 1
			for to < len(steps) && steps[to].Wave == wave {
				to++
			}
			d := &out[wave]
			for d.firstVEU+d.grid < v { // vEUs that the wave does not use
				d.add(p, nil, 0)
				d.grid++
			}
			d.add(p, steps[from:to], first+from)
			d.grid++
			from = to
		}
		first += len(steps)
	}
	for w := range out {
		if out[w].grid == 0 { // a wave of no steps
			out[w].grid = 1
			out[w].add(p, nil, 0)
		}
	}
	return out
}

// onStreams puts the launches on their streams. One that waits for nothing but the one before it on its
// stream may come while that one ends.
func onStreams(parts []dispatch, seg vdevice.Segment) {
	begun := map[int32]bool{}
	for w, n := range seg.Program.Nodes {
		d := &parts[w]
		d.stream, d.after = int(n.Stream), n.After
		d.overlap = !seg.Serial && begun[n.Stream] && len(n.After) == 0
		begun[n.Stream] = true
		for _, x := range n.After {
			parts[x].awaited = true
		}
	}
}

// add appends a block that runs steps, the first of which is so far into the step table.
func (d *dispatch) add(p *vdevice.Program, steps []vdevice.Step, first int) {
	d.ranges = append(d.ranges, schema.StepRange{First: uint32(first), Last: uint32(first + len(steps))})
	var streamed []piece
	for _, s := range steps {
		d.tasks = append(d.tasks, s.Task)
		c := p.Candidate(s.Task.Op)
		in := c.Inst
		if n := c.StreamBytes(int(s.Task.Index)); n > 0 {
			streamed = append(streamed, piece{n, in.StreamStep()})
		}
		d.threads, d.shared = max(d.threads, in.Threads()), max(d.shared, in.Shared())
	}
	d.threads = max(d.threads, 32)
	if streamed != nil {
		d.streams = append(d.streams, streamed)
	}
}

// only is the rOperator that the launch is of, if every block runs one step of it and it has no operands to
// be brought.
func (d *dispatch) only(p *vdevice.Program) (op int32, ok bool) {
	if len(d.tasks) != d.grid || slices.ContainsFunc(d.tasks, func(t vdevice.Task) bool { return t.Op != d.tasks[0].Op }) {
		return 0, false
	}
	if slices.ContainsFunc(d.ranges, func(r schema.StepRange) bool { return r.Last != r.First+1 }) {
		return 0, false
	}
	c := p.Candidate(d.tasks[0].Op)
	return d.tasks[0].Op, len(c.Imports)+len(c.Exports) == 0 && c.Resident == nil
}

// strideOf finds the distance in the step table from a block's step to the next one's; 0: there are several.
func (d *dispatch) strideOf() (first, stride uint32) {
	first, stride = d.ranges[0].First, 1
	if d.grid > 1 {
		stride = d.ranges[1].First - first
	}
	for b, r := range d.ranges {
		if r.First != first+uint32(b)*stride {
			return 0, 0
		}
	}
	return first, stride
}

// blockStreamOf finds the rule by which the blocks of a launch stream, one weight block each. There is none
// where their places are not at equal distances, or others than the last differ in length.
func blockStreamOf(blocks []weightBlock) schema.BlockStream {
	first, last := blocks[0], blocks[len(blocks)-1]
	s := schema.BlockStream{
		At: first.at, Words: first.words, ChunkWords: first.chunkWords, Last: uint32(len(blocks) - 1), LastWords: last.words,
	}
	if len(blocks) > 1 {
		s.Stride = blocks[1].at - first.at // modulo 2³², as the device computes
	}
	for b, x := range blocks {
		words := s.Words
		if uint32(b) == s.Last {
			words = s.LastWords
		}
		if x.at != s.At+uint32(b)*s.Stride || x.words != words || x.words == 0 || x.chunkWords != s.ChunkWords {
			return schema.BlockStream{}
		}
	}
	return s
}

// piece is a weight block that an rTask streams, a number of steps.
type piece struct {
	bytes int64
	step  int
}

// mostChunks is the most chunks that a block streams.
func (d *dispatch) mostChunks(r vdevice.Ring) int {
	most := int64(0)
	for _, blocks := range d.streams {
		n := int64(0)
		for _, b := range blocks {
			chunk := int64(r.Chunk(b.step))
			n += (b.bytes + chunk - 1) / chunk
		}
		most = max(most, n)
	}
	return int(most)
}
