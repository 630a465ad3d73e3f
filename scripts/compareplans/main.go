// Command compareplans compares kinds of plan, for ONNX models or for random modules of NASBench-101 (Rammer §5.2.5). It
// prints a line of JSON for each: what every plan takes in simulation. With -emit it also writes libraries that have the plans
// as variants, one for the launches and one for the rPrograms of each, which bench/compare_plans.py times.
//
//	compareplans -cells 5000 > simulated.jsonl
//	compareplans -cells 50 -emit DIR > simulated.jsonl
//	compareplans -plans base,opara,critical-path -emit DIR googlenet.onnx bert.onnx > simulated.jsonl
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/rammerc/rammerc/codegen"
	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/internal/driver"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/profiler/model"
	"github.com/rammerc/rammerc/schedule"
	"github.com/rammerc/rammerc/vdevice"
)

// row is what the program prints of a model.
type row struct {
	Name      string             `json:"name"` // of its library
	Cell      *cell              `json:"cell,omitempty"`
	Irregular bool               `json:"irregular,omitempty"` // operations of different kinds in one wave of the cell
	ROps      int                `json:"roperators"`
	Plans     []string           `json:"plans"`
	Libraries []library          `json:"libraries"`
	Simulated map[string]float64 `json:"simulated_us"`
	Launches  map[string]int     `json:"launches"`

	path string // of an ONNX model
}

// library is one that several plans of a model share. rPrograms have a library of their own: all launches beside them
// would have the registers of their kernel.
type library struct {
	Name  string   `json:"name"`
	Plans []string `json:"plans"` // in the order of the library's variants
	made  []*vdevice.Plan
}

// add puts a plan into the library of its like.
func (r *row) add(kind string, plan *vdevice.Plan) {
	name := r.Name
	if plan.Persistent() {
		name += "_rprogram"
	}
	i := slices.IndexFunc(r.Libraries, func(l library) bool { return l.Name == name })
	if i < 0 {
		i = len(r.Libraries)
		r.Libraries = append(r.Libraries, library{Name: name})
	}
	l := &r.Libraries[i]
	l.Plans, l.made = append(l.Plans, kind), append(l.made, plan)
}

// compiler is what all rows are compiled with.
type compiler struct {
	opt  driver.CompileOptions
	spec *device.Spec
	emit string
}

func main() {
	cells := flag.Int("cells", 0, "number of random modules of NASBench")
	seed := flag.Uint64("seed", 1, "seed of the modules")
	plans := flag.String("plans", "base,mixed,rprogram,barriers,critical-path", "kinds of plan")
	emit := flag.String("emit", "", "folder for the libraries")
	name := flag.String("device", "h200", "device to plan for")
	precision := flag.String("precision", "", "how products of float32 are made")
	flag.Parse()
	c := &compiler{emit: *emit}
	c.opt = driver.CompileOptions{Device: *name, Precision: *precision, Offline: true, Emit: driver.EmitSources}
	var rows []row
	r := rand.New(rand.NewPCG(*seed, 0))
	for i := range *cells {
		x := randomCell(r)
		rows = append(rows, row{Name: fmt.Sprintf("cell%d", i), Cell: &x, Irregular: x.irregular()})
	}
	for _, path := range flag.Args() {
		rows = append(rows, row{Name: strings.TrimSuffix(filepath.Base(path), ".onnx"), path: path})
	}
	for i := range rows {
		rows[i].Plans = strings.Split(*plans, ",")
	}
	if err := c.run(rows); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run compiles the rows, several at a time, and prints those that do not fail, each as soon as all before it are
// printed. What a row was made of is gone then, so that thousands of rows take as much memory as a few.
func (c *compiler) run(rows []row) error {
	var err error
	if c.spec, err = c.opt.Spec(&driver.Job{}); err != nil {
		return err
	}
	lines := make([]chan result, len(rows))
	for i := range lines {
		lines[i] = make(chan result, 1)
	}
	var next atomic.Int64
	for range runtime.GOMAXPROCS(0) {
		go func() {
			for i := int(next.Add(1)) - 1; i < len(rows); i = int(next.Add(1)) - 1 {
				lines[i] <- c.line(&rows[i])
			}
		}()
	}
	var failed error
	for i := range lines {
		r := <-lines[i]
		if r.err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", rows[i].Name, r.err))
			continue
		}
		if _, err := os.Stdout.Write(append(r.line, '\n')); err != nil {
			return err
		}
	}
	return failed
}

// result is what becomes of a row: a line of JSON, or an error.
type result struct {
	line []byte
	err  error
}

// line compiles a row.
func (c *compiler) line(r *row) result {
	if err := c.compile(r); err != nil {
		return result{err: err}
	}
	line, err := json.Marshal(r)
	*r = row{Name: r.Name}
	return result{line, err}
}

// compile makes all plans of a model, simulates them, and writes their library if it is wanted.
func (c *compiler) compile(r *row) error {
	g, err := c.graph(r)
	if err != nil {
		return err
	}
	job := &driver.Job{}
	if err := driver.Optimise(job, g, nil, c.spec, c.opt); err != nil {
		return err
	}
	ops, err := driver.Lower(job, g, nil, c.spec, c.opt)
	if err != nil {
		return err
	}
	r.ROps, r.Simulated, r.Launches = len(ops.Ops), map[string]float64{}, map[string]int{}
	costs := model.New(c.spec, ops)
	for _, kind := range r.Plans {
		plan, err := schedule.Schedule(ops, c.spec, costs, schedule.Options{Plan: kind})
		if err != nil {
			return err
		}
		if err := vdevice.Verify(plan); err != nil {
			return err
		}
		ns, err := vdevice.PlanTime(plan, func(t vdevice.Task) float64 {
			return costs.TaskTime(ops.Ops[t.Op].Candidates[plan.Pick[t.Op]])
		})
		if err != nil {
			return err
		}
		r.Simulated[kind], r.Launches[kind] = ns/1000, plan.Stats().Launches
		r.add(kind, plan)
	}
	for i := range r.Libraries {
		l := &r.Libraries[i]
		if err := c.write(l.Name, l.made); err != nil {
			return err
		}
		l.made = nil
	}
	return nil
}

// graph is the model of a row.
func (c *compiler) graph(r *row) (*ir.Graph, error) {
	if r.Cell != nil {
		return r.Cell.graph(), nil
	}
	m, err := driver.Load(&driver.Job{}, driver.ModelOptions{Path: r.path}, true)
	if err != nil {
		return nil, err
	}
	return m.Graph, nil
}

// write writes the library of a model's plans.
func (c *compiler) write(name string, plans []*vdevice.Plan) error {
	if c.emit == "" {
		return nil
	}
	dir := filepath.Join(c.emit, name)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	opt := codegen.Options{Name: name, Version: driver.Version().Version, Model: name}
	return codegen.EmitVariants(plans, opt, codegen.Dir(dir))
}
