package codegen

import (
	"encoding/binary"
	"fmt"

	"github.com/rammerc/rammerc/codegen/abi"
	"github.com/rammerc/rammerc/schema"
)

// Memories of a launch list.
const (
	constantsMemory = "constants" // the weights
	tablesMemory    = "tables"    // the program tables, behind them the rOperators' arguments
	arenaMemory     = "arena"     // intermediate values, behind them tensor maps
	flagsMemory     = "flags"     // the step arrays of all rPrograms
	taggedMemory    = "tagged"    // tagged words
	reportsMemory   = "reports"   // where a launch would tell why it cannot go on
)

// list is the launch list, for tables of so many bytes.
func (c *Cubin) list(cubin string, tableBytes int64) *abi.LaunchList {
	l := c.l
	mapsAt := alignUp(l.plan.ArenaLen, schema.TensorMapBytes)
	out := &abi.LaunchList{
		Schema: abi.LaunchListSchema, Name: l.opt.Name, Model: l.opt.Model, Version: l.opt.Version,
		Device: l.plan.Spec.Name, Arch: l.plan.Spec.Arch, Cubin: cubin,
		Inputs: launchTensors(l.inputs), Outputs: launchTensors(l.visible()),
		Memories: []abi.LaunchMemory{
			{Name: constantsMemory, Bytes: l.weightBytes, File: l.opt.Name + ".weights", At: schema.WeightsHeaderBytes,
				Hash: fmt.Sprintf("%016x", l.hash)},
			{Name: tablesMemory, Bytes: tableBytes, File: l.opt.Name + ".tables"},
			{Name: arenaMemory, Bytes: mapsAt + schema.TensorMapBytes*int64(len(l.tensorMaps))},
			{Name: flagsMemory, Bytes: int64(c.told.parameter["line_bytes"] * l.lines), Zero: true},
			{Name: taggedMemory, Bytes: 8 * l.plan.WordsLen, Zero: true},
			{Name: reportsMemory, Bytes: int64(c.told.parameter["report_bytes"]), Zero: true},
		},
		TensorMaps: []abi.LaunchTensorMap{},
	}
	for _, m := range l.tensorMaps {
		out.TensorMaps = append(out.TensorMaps, launchTensorMap(m))
	}
	for k, limits := range c.told.limits {
		out.Kernels = append(out.Kernels, abi.LaunchKernel{
			Function: entryName(l.opt.Name, k), Threads: int(limits[0]), Shared: int(limits[1]),
			SharedPerSM: int(limits[2]), ParameterBytes: c.told.parameter["bytes"],
		})
	}
	first := 0
	for i := range l.segments {
		out.Segments = append(out.Segments, c.segment(i, first))
		first += len(l.segments[i].launches)
	}
	return out
}

func launchTensorMap(m schema.TiledMatrix) abi.LaunchTensorMap {
	memory := arenaMemory
	if m.At>>schema.SpaceShift == schema.WeightsSpace {
		memory = constantsMemory
	}
	out := abi.LaunchTensorMap{
		Memory: memory, At: int64(m.At & (1<<schema.SpaceShift - 1)), Map: int64(m.Map), RowBytes: int64(m.RowBytes),
		Columns: int64(m.Columns), Rows: int64(m.Rows), BoxRows: int64(m.BoxRows), ElementBytes: int64(m.ElementBytes),
		Plain: m.Plain != 0,
	}
	if m.Width > 0 {
		upper := func(first, positions, stride, pixels uint32) int64 {
			return int64(int32(first)) + int64(positions-1)*int64(stride) - int64(pixels-1)
		}
		out.Images = &abi.LaunchImages{
			Width: int64(m.Width), Height: int64(m.Height), LineBytes: int64(m.LineBytes), ImageBytes: int64(m.ImageBytes),
			Lower:  [2]int64{int64(int32(m.FirstX)), int64(int32(m.FirstY))},
			Upper:  [2]int64{upper(m.FirstX, m.PositionsW, m.StrideX, m.Width), upper(m.FirstY, m.PositionsH, m.StrideY, m.Height)},
			Stride: [2]int64{int64(m.StrideX), int64(m.StrideY)},
		}
	}
	return out
}

func launchTensors(ports []port) []abi.LaunchTensor {
	out := []abi.LaunchTensor{}
	for _, p := range ports {
		t := abi.LaunchTensor{Name: p.Name, DType: onnxType(p.DType), Dims: []int64{}, Bytes: p.bytes}
		for _, d := range p.Dims {
			t.Dims = append(t.Dims, int64(d))
		}
		out = append(out, t)
	}
	return out
}

// segment lists the launches of a segment, the first of which is number first of the program.
func (c *Cubin) segment(number, first int) abi.LaunchSegment {
	t := &c.l.segments[number]
	out := abi.LaunchSegment{Kind: t.kind.String(), Cluster: t.cluster, Streams: max(1, t.streams), Launches: []abi.Launch{}}
	for i := range t.launches {
		x := c.launch(number, i, c.told.sizes[first+i])
		if t.whole(i) {
			out.Whole = &x
		} else {
			out.Launches = append(out.Launches, x)
		}
	}
	return out
}

// launch is launch number i of a segment, of the given rt::LaunchSize. It says what Context::launch_row says on the C++
// run time (rt/host/context_launch.h).
func (c *Cubin) launch(segment, i int, size []uint32) abi.Launch {
	t := &c.l.segments[segment]
	x := t.launches[i]
	threads := x.threads
	if size[0] > 0 {
		threads += schema.LoaderThreads
	}
	out := abi.Launch{
		Kernel: x.kernel, Blocks: x.grid, Threads: threads, Shared: int(size[1]), Overlap: x.overlap, Stream: x.stream,
	}
	for _, a := range x.after {
		out.After = append(out.After, int(a))
	}
	p := parameter{at: c.told.parameter, data: make([]byte, c.told.parameter["bytes"])}
	if x.op >= 0 {
		p.put("op_args", uint32(c.args[x.op].at))
		p.put("op_words", uint32(c.args[x.op].words))
	}
	p.put("first_step", x.first)
	p.put("step_stride", x.stride)
	w := x.weights
	p.put("weights", w.At, w.Stride, w.Words, w.ChunkWords, w.Last, w.LastWords)
	if t.whole(i) {
		p.put("persistent", 1)
		p.put("cluster", uint32(t.cluster))
	}
	p.put("segment", uint32(segment))
	p.put("launch", uint32(i))
	p.put("first_veu", uint32(x.firstVEU))
	p.put("shared", uint32(x.shared))
	p.put("stages", size[0])
	p.put("max_steps", uint32(t.maxSteps))
	p.refer("steps", tablesMemory, t.steps)
	p.refer("waits", tablesMemory, t.waits)
	p.refer("moves", tablesMemory, t.moves)
	p.refer("ranges", tablesMemory, x.ranges)
	p.refer("args", tablesMemory, c.argsAt())
	p.refer("flags", flagsMemory, int64(c.told.parameter["line_bytes"]*t.firstLine))
	p.refer("tagged", taggedMemory, 0)
	p.refer("reports", reportsMemory, 0)
	p.bases(len(c.l.inputs), len(c.l.outputs))
	out.Parameter, out.Addresses = p.data, p.addresses
	return out
}

// argsAt is where the rOperators' arguments begin among the tables.
func (c *Cubin) argsAt() int64 { return alignUp(c.l.tableBytes, schema.ConstantAlign) }

// parameter is a launch's parameter in the making.
type parameter struct {
	at        map[string]int // offsets of the members
	data      []byte
	addresses []abi.LaunchAddress
}

func (p *parameter) put(member string, words ...uint32) {
	for i, w := range words {
		binary.LittleEndian.PutUint32(p.data[p.at[member]+4*i:], w)
	}
}

func (p *parameter) refer(member, memory string, plus int64) {
	p.addresses = append(p.addresses, abi.LaunchAddress{At: p.at[member], Of: memory, Plus: plus})
}

// bases puts the address of each address space: the arena, the constants, inputs, outputs.
func (p *parameter) bases(inputs, outputs int) {
	at := func(space int) int { return p.at["bases"] + 8*space }
	p.addresses = append(p.addresses, abi.LaunchAddress{At: at(schema.ArenaSpace), Of: arenaMemory},
		abi.LaunchAddress{At: at(schema.WeightsSpace), Of: constantsMemory})
	for i := range inputs {
		p.addresses = append(p.addresses, abi.LaunchAddress{At: at(schema.FirstPortSpace + i), Of: "input", Port: i})
	}
	for i := range outputs {
		p.addresses = append(p.addresses,
			abi.LaunchAddress{At: at(schema.FirstPortSpace + inputs + i), Of: "output", Port: i})
	}
}
