package codegen

import (
	"slices"

	"github.com/rammerc/rammerc/schema"
	"github.com/rammerc/rammerc/vdevice"
)

// launch is a kernel launch. schema.LaunchRow says what each number means to the host.
type launch struct {
	kernel                int // number of its kernel
	grid, threads, shared int
	chunks                int // of streamed weights, in the block that has the most
	overlap               bool
	alone                 bool  // no more than VEUsPerSM of its blocks share a multiprocessor
	firstVEU              int   // the vEU of block 0
	ranges                int64 // offset of a StepRange a block

	stream  int
	after   []int32 // launches of the segment, on other streams
	awaited bool    // by a launch on another stream

	// Where every block runs one step, and all steps are of one rOperator: its number, the rule by which the blocks
	// find their steps and the one by which they stream weights. Otherwise op is -1, and the rest is 0.
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

// dispatches lists the launches of a plan's segment. An rProgram has a persistent launch, and behind it one for each
// wave, for devices that do not hold all of its vEUs. Other segments have one for each wave. rows are the steps of the
// vEUs, as they stand in the step table, one vEU behind the other.
//
// A wave has a block for each vEU up to the highest one that has steps in it. It asks for the threads and the shared
// memory of its own rTasks and no more, since blocks of launches that overlap have to find room beside each other.
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
			parts[w].overlap = w > 0 && !seg.Serial || w == 0 && (plan.Overlaps(segment) || begins(plan, segment))
		}
		for _, w := range seg.Program.Alone {
			parts[w].alone = true
		}
	}
	return append(out, parts...)
}

// begins reports that the first launch of a segment is that of an inference, and may start while what the caller put on
// the stream before is still running, such as the inference before: until it has waited for all launches before, it reads
// tables and weights alone, which nobody changes. An rProgram needs the whole device, so there is none at either end. The
// launches behind it may start together with it; so it does not start early where one of them reads states before it has
// waited.
func begins(plan *vdevice.Plan, segment int) bool {
	first, last := plan.Segments[0], plan.Segments[len(plan.Segments)-1]
	return segment == 0 && !earlyStates(plan) && !first.Serial && first.Kind != vdevice.RProgram && last.Kind != vdevice.RProgram &&
		plan.Segments[plan.TurnBefore(segment)].Kind != vdevice.RProgram
}

// earlyStates reports whether an rTask of the plan reads states before the launches before it have ended.
func earlyStates(plan *vdevice.Plan) bool {
	for id, pick := range plan.Pick {
		if pick >= 0 && plan.Graph.Ops[id].Candidates[pick].EarlyStates {
			return true
		}
	}
	return false
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

// onStreams puts the launches of a parallel segment on their streams. A launch that waits only for the one before it on
// its stream may begin while that one ends.
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

// add appends a block that runs the given steps. The first of them is row number first of the step table.
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

// only is the rOperator that the launch is of, if every block runs one step of it. An rOperator whose operands the
// executor moves, or that keeps operands on chip, does not count: its blocks need their rows of the step table.
func (d *dispatch) only(p *vdevice.Program) (op int32, ok bool) {
	if len(d.tasks) != d.grid || slices.ContainsFunc(d.tasks,
		func(t vdevice.Task) bool { return t.Op != d.tasks[0].Op }) {
		return 0, false
	}
	if slices.ContainsFunc(d.ranges, func(r schema.StepRange) bool { return r.Last != r.First+1 }) {
		return 0, false
	}
	c := p.Candidate(d.tasks[0].Op)
	return d.tasks[0].Op, len(c.Imports)+len(c.Exports) == 0 && c.Resident == nil
}

// strideOf finds the distance in the step table from each block's step to that of the next block. It is 0 where the
// distances differ.
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

// blockStreamOf finds the rule by which the blocks of a launch stream weights, one weight block each. There is a rule
// where the weight blocks are at equal distances and all but the last are equally long.
func blockStreamOf(blocks []weightBlock) schema.BlockStream {
	first, last := blocks[0], blocks[len(blocks)-1]
	s := schema.BlockStream{
		At: first.at, Words: first.words, ChunkWords: first.chunkWords,
		Last: uint32(len(blocks) - 1), LastWords: last.words,
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

// piece is a weight block that an rTask streams: its length, and how many bytes its rKernel takes at a time.
type piece struct {
	bytes int64
	step  int
}

// mostChunks is the number of chunks that the block with the most of them streams, in a launch of the given kernel.
func (d *dispatch) mostChunks(k *vdevice.Kernel) int {
	most := int64(0)
	for _, blocks := range d.streams {
		n := int64(0)
		for _, b := range blocks {
			chunk := int64(k.Chunk(b.step))
			n += (b.bytes + chunk - 1) / chunk
		}
		most = max(most, n)
	}
	return int(most)
}
