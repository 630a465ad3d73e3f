package codegen

import (
	"fmt"

	"github.com/rammerc/rammerc/schema"
	"github.com/rammerc/rammerc/vdevice"
)

// model writes the rows that the host run time works from.
func (s *source) model() {
	s.opRows()
	s.launchRows()
	s.segmentRows()
	if !s.part {
		s.portTensors("input", s.inputs)
		s.portTensors("output", s.visible())
	}
	s.portRows("input", s.inputs)
	s.portRows("output", s.outputs)
	row := rowTree("const rt::Model model = ", schema.Model{
		Name: s.opt.Name, WeightsFile: s.file().opt.Name + ".weights",
		WeightsHash:  schema.Expr(fmt.Sprintf("0x%016x", s.file().hash)),
		WeightsBytes: uint64(s.weightBytes), TablesBytes: uint64(s.file().fileTables()),
		OwnTablesBytes: uint64(s.tableBytes), PackedAt: uint64(s.packedAt), PackedBytes: uint64(len(s.packed)),
		ArenaBytes: uint64(s.plan.ArenaLen), TaggedBytes: 8 * uint64(s.plan.WordsLen),
		Ops: "op_rows", OpCount: len(s.ops), Segments: "segment_rows", SegmentCount: len(s.segments),
		Launches: "launch_rows", LaunchWaits: "launch_waits", Branches: s.branchRows(),
		Inputs: "input_rows", InputCount: len(s.inputs), Outputs: "output_rows", OutputCount: len(s.outputs),
		TensorMaps: s.tensorMapRows(), TensorMapCount: len(s.tensorMaps),
	})
	s.printf("%s;\n\n", row.text(0))
	if s.general() && (!s.part || s.owner != nil) {
		s.generalTables()
	}
}

func (s *source) opRows() {
	s.rows("OpRow", "op_rows", len(s.ops), func(i int) schema.Row {
		u := s.ops[i]
		args := argsName(s.instances[u.instance])
		return schema.OpRow{
			Args:      schema.Expr(fmt.Sprintf("&%s[%d]", args, u.row)),
			ArgsBytes: schema.Expr(fmt.Sprintf("sizeof %s[0]", args)),
			Name:      u.op.Name, Kind: u.op.Kind, Nodes: nodeNames(u.op.Origins),
		}
	}, nil)
}

// launchRows writes the launches of all segments, one behind the other.
func (s *source) launchRows() {
	var all []launch
	for _, t := range s.segments {
		all = append(all, t.launches...)
	}
	notes := s.launchNotes()
	var waits []string
	s.rows("LaunchRow", "launch_rows", len(all), func(i int) schema.Row {
		x := all[i]
		row := schema.LaunchRow{
			Kernel: x.kernel, Grid: x.grid, Threads: x.threads, Shared: x.shared, Chunks: x.chunks, Overlap: x.overlap, Alone: x.alone,
			FirstVEU: x.firstVEU, Ranges: uint64(x.ranges), Stream: x.stream,
			WaitBegin: len(waits), WaitCount: len(x.after), Awaited: x.awaited,
			Op: schema.Expr(fmt.Sprint(x.op)), FirstStep: x.first, StepStride: x.stride, Weights: x.weights,
		}
		for _, w := range x.after {
			waits = append(waits, fmt.Sprint(w))
		}
		return row
	}, func(i int) string { return notes[i] })
	s.printf("// For each launch, those of its segment that it waits for.\nconst int launch_waits[] = {\n    %s};\n\n",
		wrap(append(waits, "0"), 4))
}

// branchRows writes the branches of all segments, one segment behind the other, and returns their array.
func (s *source) branchRows() schema.Expr {
	var all []schema.BranchRow
	for _, t := range s.segments {
		all = append(all, t.branches...)
	}
	if len(all) == 0 {
		return ""
	}
	s.rows("BranchRow", "branch_rows", len(all), func(i int) schema.Row { return all[i] }, nil)
	return "branch_rows"
}

// launchNotes says of each launch what it is of.
func (s *source) launchNotes() []string {
	var notes []string
	for i := range s.segments {
		p := s.plan.Segments[i].Program
		waves := stepsByWave(p)
		if s.segments[i].kind == vdevice.RProgram {
			notes = append(notes, fmt.Sprintf("segment %d, the rProgram: %d steps", i, s.segments[i].stepCount))
		}
		for w, steps := range waves {
			notes = append(notes, fmt.Sprintf("segment %d, wave %d: %s of %s",
				i, w, count(len(steps), "rTask"), s.waveOps(p, steps)))
		}
	}
	return notes
}

// segmentKinds are the names of the kinds in C++.
var segmentKinds = [...]schema.SegmentKind{
	vdevice.RProgram: schema.SegmentRProgram, vdevice.Waves: schema.SegmentWaves,
	vdevice.LaunchSequence: schema.SegmentGraph, vdevice.Parallel: schema.SegmentParallel,
}

func (s *source) segmentRows() {
	first, firstBranch := 0, 0
	s.rows("SegmentRow", "segment_rows", len(s.segments), func(i int) schema.Row {
		t := &s.segments[i]
		row := schema.SegmentRow{
			Kind: segmentKinds[t.kind], VEUs: t.veus, Streams: t.streams, Counters: t.counters, Cluster: t.cluster,
			FirstLine: t.firstLine, FirstLaunch: first, Launches: len(t.launches), MaxSteps: uint32(t.maxSteps),
			FirstBranch: firstBranch, Branches: len(t.branches), Turns: t.turns, Repeated: t.repeated,
			Steps: uint64(t.steps), StepCount: uint64(t.stepCount), Waits: uint64(t.waits),
			WaitCount: uint64(t.waitCount),
			Moves:     uint64(t.moves), MoveCount: uint64(t.moveCount),
		}
		first, firstBranch = first+len(t.launches), firstBranch+len(t.branches)
		return row
	}, nil)
}

// portTensors writes what the C interface tells of ports.
func (s *source) portTensors(side string, ports []port) {
	n := s.opt.Name
	for i, p := range ports {
		dims := make([]string, 0, len(p.Dims)+1)
		for _, d := range p.Dims {
			dims = append(dims, fmt.Sprint(d))
		}
		s.printf("const int64_t %s_dims_%d[] = {%s};\n", side, i, wrap(append(dims, "0"), 4))
	}
	s.printf("const %s_tensor %s_tensors[] = {\n", n, side)
	for i, p := range ports {
		t := tree{list: true, items: []tree{
			stringTree(".name = ", p.Name), {head: fmt.Sprintf(".dtype = %d", onnxType(p.DType))},
			{head: fmt.Sprintf(".rank = %d", len(p.Dims))}, {head: fmt.Sprintf(".dims = %s_dims_%d", side, i)},
			{head: fmt.Sprintf(".bytes = %d", p.bytes)},
		}}
		s.printf("    %s,\n", t.text(4))
	}
	s.printf("    {},\n};\n")
}

func (s *source) portRows(side string, ports []port) {
	s.rows("PortRow", side+"_rows", len(ports), func(i int) schema.Row {
		return schema.PortRow{Name: ports[i].Name, Bytes: uint64(ports[i].bytes)}
	}, nil)
}
