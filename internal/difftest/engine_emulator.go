package difftest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/rammerc/rammerc/codegen"
	"github.com/rammerc/rammerc/internal/runner"
	"github.com/rammerc/rammerc/internal/toolchain"
	"github.com/rammerc/rammerc/ir"
)

// batchSize is how many cases share a library. Compiling C++ takes most of the time, and much of that is the same for
// every library.
const batchSize = 25

// runEmulator compiles what can be compiled of the cases and runs it on the emulator. The cases of a batch become one
// graph. Its parts are independent of each other, and schedules run them side by side.
func runEmulator(cases []*Case) []Result {
	res := make([]Result, len(cases))
	cxx, err := toolchain.FindCxx("")
	if err != nil {
		for i := range res {
			res[i].Skip = err.Error()
		}
		return res
	}
	var batch []*batched
	flush := func() {
		runBatch(cxx, batch, res)
		batch = nil
	}
	for i, c := range cases {
		var part *Case
		res[i] = guarded(c, func(c *Case) Result {
			p, _, _, err := c.compilable(true, "emu4")
			if errors.Is(err, errNothing) {
				return Result{Skip: err.Error()}
			}
			part = p
			return Result{Err: err}
		})
		if part != nil {
			batch = append(batch, &batched{index: i, part: part})
		}
		if len(batch) == batchSize {
			flush()
		}
	}
	if len(batch) > 0 {
		flush()
	}
	return res
}

// batched is a case of a batch, reduced to the part that can be compiled.
type batched struct {
	index int // of the case among all
	part  *Case
}

// runBatch fills in the results of a batch. If the batch fails as a whole, each of its cases is compiled and run alone.
func runBatch(cxx *toolchain.Cxx, batch []*batched, res []Result) {
	var outs []map[string]*ir.Tensor
	whole := guarded(batch[0].part, func(*Case) Result {
		var err error
		outs, err = emulate(cxx, batch)
		return Result{Err: err}
	})
	switch {
	case whole.Err == nil:
		for i, b := range batch {
			res[b.index] = judgePart(b.part, outs[i])
		}
	case len(batch) == 1:
		res[batch[0].index] = Result{Err: fmt.Errorf("%w\n%s", whole.Err, batch[0].part.Graph)}
	default:
		blamed := false
		for _, b := range batch {
			runBatch(cxx, []*batched{b}, res)
			blamed = blamed || res[b.index].Err != nil
		}
		if !blamed {
			res[batch[0].index] = Result{Err: fmt.Errorf("only together with %d other cases: %w", len(batch)-1,
				whole.Err)}
		}
	}
}

// emulate compiles the batch and runs it once, and returns the outputs of each case.
func emulate(cxx *toolchain.Cxx, batch []*batched) ([]map[string]*ir.Tensor, error) {
	all := joined(batch)
	g, err := all.lower(true, "emu4")
	if err != nil {
		return nil, err
	}
	plan, err := planFor(g, "emu4", all.Seed)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "difftest-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := codegen.Emit(plan, codegen.Options{Name: "batch", Version: "test", Model: "batch"},
		codegen.Dir(dir)); err != nil {
		return nil, err
	}
	ctx := context.Background()
	if _, err := cxx.BuildLibrary(ctx, dir, "batch", "-O0", "-w"); err != nil {
		return nil, err
	}
	lib, err := runner.Open(ctx, filepath.Join(dir, "libbatch.so"), runner.Options{Seed: all.Seed + 1})
	if err != nil {
		return nil, err
	}
	out, err := runTwice(lib, all)
	if closed := lib.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return nil, err
	}
	return split(batch, out), nil
}

// runTwice runs the library twice and returns the outputs of the second run. They are wrong if a run depends on what an
// earlier one left in memory.
func runTwice(lib *runner.Lib, c *Case) (map[string]*ir.Tensor, error) {
	var in [][]byte
	for _, t := range lib.Inputs {
		in = append(in, c.Inputs[t.Name].LittleEndian())
	}
	var data [][]byte
	for range 2 {
		var err error
		if data, err = lib.Run(in); err != nil {
			return nil, err
		}
	}
	out := map[string]*ir.Tensor{}
	for i, t := range lib.Outputs {
		d, _ := ir.DTypeOfONNX(int64(t.DType))
		if n := ir.Count(t.Dims) * int64(d.Size()); n < int64(len(data[i])) {
			data[i] = data[i][:n] // a run has found less than there is room for
		}
		var err error
		if out[t.Name], err = ir.TensorFromBytes(d, t.Dims, data[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// joined is one case that consists of all cases of the batch. Each has a prefix of its own in front of all names.
func joined(batch []*batched) *Case {
	all := &Case{Name: "batch", Seed: batch[0].part.Seed, Graph: &ir.Graph{Name: "batch"},
		Inputs: map[string]*ir.Tensor{}}
	for i, b := range batch {
		g, err := b.part.static()
		if err != nil {
			panic("BUG: " + err.Error())
		}
		prefix := prefixOf(i)
		for name, t := range b.part.Inputs {
			all.Inputs[prefix+name] = t
		}
		rename(g, prefix)
		all.Graph.Inputs = append(all.Graph.Inputs, g.Inputs...)
		all.Graph.Consts = append(all.Graph.Consts, g.Consts...)
		all.Graph.Nodes = append(all.Graph.Nodes, g.Nodes...)
		all.Graph.Outputs = append(all.Graph.Outputs, g.Outputs...)
	}
	return all
}

func prefixOf(i int) string { return fmt.Sprintf("g%d.", i) }

func rename(g *ir.Graph, prefix string) {
	ir.EachGraph(g, func(g *ir.Graph) {
		for _, list := range [][]*ir.Value{g.Inputs, g.Consts} {
			for _, v := range list {
				v.Name = prefix + v.Name
			}
		}
		for _, n := range g.Nodes {
			n.Name = prefix + n.Name
			for i := range n.Origins {
				n.Origins[i].Name = prefix + n.Origins[i].Name
			}
			for _, v := range n.Outputs {
				if v != nil {
					v.Name = prefix + v.Name
				}
			}
		}
	})
}

// split returns the outputs of each case of the batch, without the prefixes.
func split(batch []*batched, out map[string]*ir.Tensor) []map[string]*ir.Tensor {
	outs := make([]map[string]*ir.Tensor, len(batch))
	for i, b := range batch {
		outs[i] = map[string]*ir.Tensor{}
		for _, v := range b.part.Graph.Outputs {
			outs[i][v.Name] = out[prefixOf(i)+v.Name]
		}
	}
	return outs
}
