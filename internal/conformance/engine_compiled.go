package conformance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/rammerc/rammerc/codegen"
	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/internal/toolchain"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/axes"
	"github.com/rammerc/rammerc/precision"
	"github.com/rammerc/rammerc/vdevice"
)

// Options tune Run. The zero value has sensible defaults.
type Options struct {
	Shards int    // number of programs to build; 0: as many as suit the engine
	Jobs   int    // compilers that run at once; 0: GOMAXPROCS
	Keep   string // folder in which sources and programs stay; "": a temporary one
	Device string // the device that plans are for; "": emu4 or h200
	Plan   string // kind of plan; "": auto
	// Precision is how products are made, and what values are stored in; the results may then differ by as much.
	Precision precision.Precision
	Optimize  string // optimisation flag; "": -O1 for the emulator, -O3 for nvcc
	Progress  func(format string, args ...any)
}

// compiledEngine is what differs between the emulator and GPUs as engines.
type compiledEngine struct {
	device  string
	shards  int
	servers int // number of programs that run at once
	build   func(ctx context.Context, dir, optimize string) error
}

// Run runs the cases with an engine: "eval", "emu" or "gpu".
func Run(ctx context.Context, engine string, cases []Case, opt Options) ([]Result, error) {
	if opt.Progress == nil {
		opt.Progress = func(string, ...any) {}
	}
	if opt.Jobs <= 0 {
		opt.Jobs = runtime.GOMAXPROCS(0)
	}
	var e *compiledEngine
	var err error
	switch engine {
	case "eval":
		return RunEval(cases), nil
	case "emu":
		e, err = emulator(opt)
	case "gpu":
		e, err = gpu(opt)
	default:
		return nil, fmt.Errorf("engine %q: want eval, emu or gpu", engine)
	}
	if err != nil {
		return nil, err
	}
	if opt.Device != "" {
		e.device = opt.Device
	}
	if opt.Shards > 0 {
		e.shards = opt.Shards
	}
	return e.run(ctx, cases, opt)
}

func emulator(opt Options) (*compiledEngine, error) {
	cxx, err := toolchain.FindCxx("")
	if err != nil {
		return nil, err
	}
	build := func(ctx context.Context, dir, optimize string) error {
		if optimize == "" {
			optimize = "-O1"
		}
		_, err := cxx.BuildProgram(ctx, dir, program, []string{serveSource}, optimize, "-w")
		return err
	}
	return &compiledEngine{"emu4", 4 * opt.Jobs, opt.Jobs, build}, nil
}

func gpu(opt Options) (*compiledEngine, error) {
	nvcc, err := toolchain.FindNVCC("")
	if err != nil {
		return nil, err
	}
	build := func(ctx context.Context, dir, optimize string) error {
		if optimize == "" {
			optimize = "-O3"
		}
		return nvcc.BuildProgram(ctx, dir, program, serveSource, optimize, "-w")
	}
	return &compiledEngine{"h200", 2 * opt.Jobs, 2, build}, nil
}

// run plans all cases, builds the programs and runs them.
func (e *compiledEngine) run(ctx context.Context, cases []Case, opt Options) ([]Result, error) {
	spec, err := device.Find(e.device)
	if err != nil {
		return nil, err
	}
	results := make([]Result, len(cases))
	jobs := plans(cases, results, target{spec, opt.Plan, opt.Precision})
	opt.Progress("%d of %d cases compile to %d plans", len(cases)-Counts(results)[Skip]-Counts(results)[Fail],
		len(cases), len(jobs))
	dir := opt.Keep
	if dir == "" {
		if dir, err = os.MkdirTemp("", "conformance-"); err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
	}
	shards := split(jobs, e.shards)
	forEach(len(shards), opt.Jobs, func(i int) {
		s := shards[i]
		s.dir = filepath.Join(dir, fmt.Sprintf("shard_%02d", i))
		if s.err = s.emit(); s.err == nil {
			s.err = e.build(ctx, s.dir, opt.Optimize)
		}
		opt.Progress("program %d of %d: %d models, %d rKernel instances, %s", i, len(shards), len(s.jobs), s.instances,
			outcomeOf(s.err))
	})
	forEach(len(shards), e.servers, func(i int) {
		shards[i].run(results)
		opt.Progress("program %d of %d has run", i, len(shards))
	})
	return results, nil
}

func outcomeOf(build error) string {
	if build != nil {
		return "not built"
	}
	return "built"
}

// job is a data set of a case that is to be run.
type job struct {
	*compiled
	index int // index of the case
}

// plans makes the plans of all data sets of all cases. It fills in the results of cases that end here, because they are
// skipped or cannot be planned.
func plans(cases []Case, results []Result, to target) []job {
	perCase := make([][]job, len(cases))
	forEach(len(cases), runtime.GOMAXPROCS(0), func(i int) {
		results[i] = guarded(cases[i], func() Result {
			t, err := read(cases[i])
			if err != nil {
				return failed(cases[i], err)
			}
			bound, usual := []string(nil), 0
			for _, dir := range t.sets {
				c, r := t.compile(dir, to)
				if r.Status != "" {
					perCase[i] = nil
					return r
				}
				bound = c.bound
				if to.usual(t, dir, c) {
					usual++
					continue
				}
				perCase[i] = append(perCase[i], job{c, i})
			}
			return Result{Name: t.Name, Status: Pass, Bound: bound, Usual: usual == len(t.sets)}
		})
	})
	var jobs []job
	for _, js := range perCase {
		jobs = append(jobs, js...)
	}
	return jobs
}

// shard is a part of the models that becomes one program.
type shard struct {
	jobs      []job
	dir       string
	instances int
	err       error // why it could not be built
}

// fewestInstances is how many rKernel instances are worth a program of their own: each has the whole run time to compile.
const fewestInstances = 40

// split cuts the list of jobs into n pieces such that each brings about as many distinct rKernel instances, which is
// what the time to compile a program depends on.
func split(jobs []job, n int) []*shard {
	all := map[string]bool{}
	for _, j := range jobs {
		j.eachInstance(func(key string) { all[key] = true })
	}
	most := len(all)/min(n, len(all)/fewestInstances+1) + 1
	var out []*shard
	var seen map[string]bool
	for _, j := range jobs {
		if len(out) == 0 || len(seen) >= most {
			out = append(out, &shard{})
			seen = map[string]bool{}
		}
		s := out[len(out)-1]
		s.jobs = append(s.jobs, j)
		j.eachInstance(func(key string) { seen[key] = true })
		s.instances = len(seen)
	}
	return out
}

func (c *compiled) eachInstance(f func(key string)) {
	for id, pick := range c.plan.Pick {
		if pick >= 0 {
			f(c.plan.Graph.Ops[id].Candidates[pick].Inst.Key())
		}
	}
}

const (
	suite       = "suite"    // name of the emitted program
	serveSource = "serve.cc" // the file with its main function
	program     = "serve"
)

// emit writes the sources of the shard's program.
func (s *shard) emit() error {
	list := make([]*vdevice.Plan, len(s.jobs))
	for i, j := range s.jobs {
		list[i] = j.plan
		list[i].Graph.Name = j.t.Name
	}
	if err := os.Mkdir(s.dir, 0o777); err != nil {
		return err
	}
	if err := codegen.EmitBundle(list, codegen.Options{Name: suite, Version: "test"}, codegen.Dir(s.dir)); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.dir, serveSource), []byte(serveText), 0o644)
}

// run runs all models of the shard and fills in the results of those that fail.
func (s *shard) run(results []Result) {
	srv := &server{dir: s.dir}
	defer srv.stop()
	for i, j := range s.jobs {
		err := s.err
		if err == nil {
			err = j.check(srv, i)
		}
		if err != nil {
			results[j.index] = failed(j.t.Case, err)
		}
	}
}

// check runs the model, which is number i of the program, and compares its outputs.
func (j job) check(srv *server, i int) error {
	var in []byte
	for _, p := range j.plan.Graph.Inputs {
		in = append(in, j.set.in[p.Name].LittleEndian()...)
	}
	data, err := srv.request(i, in)
	if err != nil {
		return err
	}
	got := map[string]*ir.Tensor{}
	for _, p := range j.plan.Graph.Outputs {
		n := ir.Count(p.Dims) * int64(p.DType.Size())
		if n > int64(len(data)) {
			return errors.New("the program gave too few bytes")
		}
		if got[p.Name], err = ir.TensorFromBytes(p.DType, p.Dims, data[:n]); err != nil {
			return err
		}
		data = data[n:]
		if p.Requires != "" && ir.Slice[int64](got[p.Name])[0] != 0 {
			return errors.New(p.Requires)
		}
	}
	if err := j.cut(got); err != nil {
		return err
	}
	return j.t.compare(got, j.set.want, j.outputs, j.allowed)
}

// cut takes from outputs what the run has found of them. Outputs of their own say how much that is.
func (j job) cut(got map[string]*ir.Tensor) error {
	g := j.plan.Graph
	extents := make([]int64, len(g.Ranges))
	for _, p := range g.Outputs {
		if p.Counts == 0 {
			continue
		}
		r := p.Counts - 1
		if extents[r] = ir.Slice[int64](got[p.Name])[0]; extents[r] < 0 || extents[r] > g.Ranges[r].Hi {
			return fmt.Errorf("%s is %d", p.Name, extents[r])
		}
	}
	for _, p := range g.Outputs {
		if p.Axes == nil {
			continue
		}
		dims, places := axes.Live(p.Axes, extents)
		data, size := got[p.Name].LittleEndian(), p.DType.Size()
		var live []byte
		for _, at := range places {
			live = append(live, data[int(at)*size:int(at+1)*size]...)
		}
		t, err := ir.TensorFromBytes(p.DType, dims, live)
		if err != nil {
			return err
		}
		got[p.Name] = t
	}
	return nil
}
