package measure

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rammerc/rammerc/internal/toolchain"
	"github.com/rammerc/rammerc/precision"
	"github.com/rammerc/rammerc/profiler/db"
	"github.com/rammerc/rammerc/profiler/timing"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/roperator"
)

// Tools compile measuring programs.
type Tools interface {
	// Machine compiles what all parts have in common, in dir.
	Machine(ctx context.Context, dir string) error
	// Part compiles NAME.cu in dir, and links it with the machine to the program NAME; machine returns when Machine has
	// ended. It says what became of the kernels, as far as the compiler says so.
	Part(ctx context.Context, dir, name string, machine func() error) ([]toolchain.Kernel, error)
}

// Session measures candidates on the device at hand.
type Session struct {
	DB        *db.DB
	Keys      *Keys
	Tools     Tools
	Kernels   fs.FS // sources of the rKernels; nil: those of package rkernels
	VEUs      int   // how many rTasks run at once
	Dir       string
	Precision precision.Precision
	Patience  time.Duration // how long the machine may take for a command
	Compilers int           // how many run at a time; 0: one for each processor
	// Built is a folder in which the programs that measure are kept, under a hash of what they are made of, for another
	// session; "": they are not. BuildOnly makes them and measures nothing, which needs no GPU.
	Built     string
	BuildOnly bool
	// Progress is told how many candidates are done; Waiting shows that another process keeps the device.
	Progress func(done, total int)
	Waiting  func(what string) (end func())

	mu       sync.Mutex
	device   sync.Mutex // held while a part is measured
	verdicts map[*group]*verdicts
	report   Report
	total    int
	judging  sync.WaitGroup // groups that are being judged, which takes no time of the device
	judges   chan struct{}  // how many are at a time
	failed   error          // of judging
}

// Report says what a session did.
type Report struct {
	Missing  int        `json:"missing"`  // distinct candidates that the database lacked
	Measured int        `json:"measured"` // of those
	Problems []db.Entry `json:"problems,omitempty"`
	// DeviceSeconds is how long the device was held, without waiting for it.
	DeviceSeconds float64 `json:"device_seconds"`
}

// perPart is how many instances a part has at most, and perKeptPart how many if its program is kept. Parts are compiled
// side by side; larger ones save what all have in common, which on the device is the start of a process, and smaller ones
// are ready earlier, which does not matter where they are built before.
const (
	perPart     = 6
	perKeptPart = 32
)

// Run measures what the database lacks of the programs, until it is done or ctx ends. An instance that several programs
// have is built once. Candidates that could not be built or measured in time are missing in the database as before;
// that is no error.
func (s *Session) Run(ctx context.Context, programs ...Program) (Report, error) {
	groups, err := plan(programs, s.DB, s.Keys, s.VEUs)
	if err != nil {
		return Report{}, err
	}
	s.report, s.verdicts, s.total, s.failed = Report{}, map[*group]*verdicts{}, 0, nil
	s.judges = make(chan struct{}, runtime.NumCPU())
	for _, gr := range groups {
		s.verdicts[gr] = &verdicts{left: len(gr.subjects), best: map[bool]float64{}}
		s.total += len(gr.subjects)
	}
	s.report.Missing = s.total
	if s.total == 0 {
		return s.report, nil
	}
	if s.Compilers <= 0 {
		s.Compilers = runtime.NumCPU()
	}
	return s.measure(ctx, groups)
}

func (s *Session) measure(ctx context.Context, groups []*group) (Report, error) {
	dir, err := os.MkdirTemp(s.Dir, "rammerc-measure-")
	if err != nil {
		return s.report, err
	}
	defer os.RemoveAll(dir)
	kernels := s.Kernels
	if kernels == nil {
		kernels = rkernels.Files
	}
	if err := writeHeaders(dir, kernels, groups); err != nil {
		return s.report, err
	}
	instances := map[string]bool{}
	for _, gr := range groups {
		for _, x := range gr.subjects {
			instances[x.cand.Inst.Key()] = true
		}
	}
	most := perPart
	if s.Built != "" {
		most = perKeptPart
	}
	list := parts(groups, max(1, min(most, (len(instances)+s.Compilers-1)/s.Compilers)))
	machine := make(chan error, 1)
	machineThere := sync.OnceValue(func() error { return <-machine })
	if slices.ContainsFunc(list, func(p *part) bool { _, there := s.kept(p); return !there }) {
		go func() { machine <- s.Tools.Machine(ctx, dir) }()
	}
	loaded := &constantsFile{path: filepath.Join(dir, "constants"), at: map[*roperator.Buffer]int64{}}
	err = each(list, s.Compilers, func(p *part, built func()) error {
		return s.part(ctx, dir, p, built, loaded, machineThere)
	})
	err = errors.Join(err, s.settleRest())
	return s.report, err
}

// each calls do with every part, in their order as far as that goes. So many at a time have not called built yet. It
// returns the first error.
func each(list []*part, atOnce int, do func(p *part, built func()) error) error {
	var wg sync.WaitGroup
	var once sync.Once
	var first error
	free := make(chan struct{}, atOnce)
	for _, p := range list {
		free <- struct{}{}
		wg.Add(1)
		go func() {
			defer wg.Done()
			built := sync.OnceFunc(func() { <-free })
			defer built()
			if err := do(p, built); err != nil {
				once.Do(func() { first = err })
			}
		}()
	}
	wg.Wait()
	return first
}

// part builds and measures a part. If it does not build, each of its instances is built by itself; one that does not
// build then costs a line for each of its candidates.
func (s *Session) part(ctx context.Context, dir string, p *part, built func(), loaded *constantsFile,
	machine func() error) error {
	if ctx.Err() != nil {
		return nil
	}
	program, kernels, err := s.program(ctx, dir, p, machine)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		if err := machine(); err != nil {
			return err // it is not the part's fault
		}
		return s.partOfOne(ctx, dir, p, err, loaded, machine)
	}
	built()
	if s.BuildOnly {
		return nil
	}
	code := map[string]db.Code{}
	for _, k := range kernels {
		code[k.Name] = db.Code{Registers: k.Registers, Spills: k.SpillStores, Bytes: k.CodeBytes}
	}
	b := &bench{s: s, part: p, program: program, code: code, loaded: loaded, outputs: dir}
	defer b.close()
	if err := b.open(ctx); err != nil { // it takes a while, in which others can measure
		if ctx.Err() != nil {
			return nil
		}
		return notItsFault(err)
	}
	s.device.Lock()
	defer s.device.Unlock()
	defer timing.Alone(s.Waiting)()
	begun := time.Now()
	defer func() { s.held(time.Since(begun)) }()
	return b.run(ctx, s.settle)
}

func (s *Session) held(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.report.DeviceSeconds += d.Seconds()
}

// partOfOne goes on after a part did not build.
func (s *Session) partOfOne(ctx context.Context, dir string, p *part, why error, loaded *constantsFile,
	machine func() error) error {
	byInstance := map[string]*part{}
	var single []*part
	for _, x := range p.subjects {
		k := x.cand.Inst.Key()
		if byInstance[k] == nil {
			byInstance[k] = &part{number: 1000*(p.number+1) + len(single)}
			single = append(single, byInstance[k])
		}
		byInstance[k].subjects = append(byInstance[k].subjects, x)
	}
	if len(single) > 1 {
		return each(single, 1, func(one *part, built func()) error {
			return s.part(ctx, dir, one, built, loaded, machine)
		})
	}
	for _, x := range p.subjects {
		if s.BuildOnly {
			break // whoever measures finds out again
		}
		e := s.entryOf(x)
		e.Problem = "it does not build: " + complaint(why)
		if err := s.settle(x, e, ""); err != nil {
			return err
		}
	}
	return nil
}

// complaint is what a compiler says first about an error.
func complaint(err error) string {
	var failed *toolchain.Failed
	if errors.As(err, &failed) {
		for line := range strings.Lines(failed.Output) {
			if strings.Contains(line, "error") {
				return strings.TrimSpace(line)
			}
		}
	}
	return oneLine(err.Error())
}

// entryOf is a subject's entry, still without times.
func (s *Session) entryOf(x *subject) db.Entry {
	return db.Entry{
		Key: x.key, Kernel: x.cand.Inst.Kernel.Name, Instance: x.cand.Inst.Name(),
		Arithmetic: x.cand.Inst.Arithmetic(), Op: x.group.op.Kind,
		Model: x.group.model, Tasks: x.cand.Tasks,
		Threads: x.cand.Inst.Threads(), Modelled: tenth(x.modelled), Work: workOf(x),
	}
}

func workOf(x *subject) db.Work {
	w := x.cand.Work
	out := db.Work{
		Flops: w.Flops, Tensor: w.TensorFlops, Const: w.ConstBytes, Read: w.ReadBytes, Write: w.WriteBytes,
		Shared: w.SharedBytes, Streamed: x.cand.Stream != nil,
	}
	for _, c := range constants(x.group.graph, x.cand) {
		out.Constants += float64(c.Bytes())
	}
	return out
}

// best is the shortest time of all rTasks of any candidate of the subject's group so far that is like it: standalone, or
// not. ns is the subject's own.
func (s *Session) best(x *subject, ns float64) float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	best, like := s.verdicts[x.group].best, Standalone(x.cand)
	if best[like] == 0 || ns < best[like] {
		best[like] = ns
	}
	return best[like]
}

// settle takes the result of a subject. When all of its group are there they are judged and appended.
func (s *Session) settle(x *subject, e db.Entry, output string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.verdicts[x.group]
	v.entries, v.outputs = append(v.entries, e), append(v.outputs, output)
	s.report.Measured++
	if s.Progress != nil {
		s.Progress(s.report.Measured, s.total)
	}
	if v.left--; v.left == 0 {
		s.conclude(x.group, v)
	}
	return s.failed
}

// settleRest judges the groups some of whose candidates could not be measured in time, and waits for all.
func (s *Session) settleRest() error {
	s.mu.Lock()
	for gr, v := range s.verdicts {
		if v.left > 0 && len(v.entries) > 0 {
			s.conclude(gr, v)
		}
	}
	s.mu.Unlock()
	s.judging.Wait()
	return s.failed
}

// conclude has a group judged and appended while others are measured: to compare what the candidates computed may take
// longer than to time them. Nothing is added to the group from then on.
func (s *Session) conclude(gr *group, v *verdicts) {
	s.judging.Add(1)
	go func() {
		defer s.judging.Done()
		s.judges <- struct{}{}
		defer func() { <-s.judges }()
		err := v.judge(gr, s.Precision)
		if err == nil {
			err = s.DB.Append(v.entries...)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, e := range v.entries {
			if e.Problem != "" {
				s.report.Problems = append(s.report.Problems, e)
			}
		}
		s.failed = errors.Join(s.failed, err)
	}()
}

// Missing is how many candidates of the program Run would measure.
func (s *Session) Missing(p Program) (int, error) {
	groups, err := plan([]Program{p}, s.DB, s.Keys, s.VEUs)
	n := 0
	for _, gr := range groups {
		n += len(gr.subjects)
	}
	return n, err
}
