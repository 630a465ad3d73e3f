package measure

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/profiler/db"
	"github.com/rammerc/rammerc/roperator"
)

// bench measures the subjects of one part. It starts the part's program, and starts it anew where a candidate breaks it.
type bench struct {
	s       *Session
	part    *part
	program string
	code    map[string]db.Code // by kernel

	child   *child
	group   *group         // whose operands are in the machine's memory
	there   map[int]bool   // constants that are there
	loaded  *constantsFile // shared with the other parts
	outputs string         // folder for what candidates compute
}

// constantsFile has the bytes of constants, which are made once, however many parts want them.
type constantsFile struct {
	mu   sync.Mutex
	path string
	size int64
	at   map[*roperator.Buffer]int64
}

// place is where the file has a constant.
func (f *constantsFile) place(b *roperator.Buffer) (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if at, ok := f.at[b]; ok {
		return at, nil
	}
	file, err := os.OpenFile(f.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	data := b.Data()
	if _, err := file.Write(data); err != nil {
		return 0, err
	}
	at := f.size
	f.at[b] = at
	f.size += int64(len(data))
	return at, nil
}

// run measures all subjects of the part. It gives each to done, with its entry and the file of what it computed, which
// is "" if there is none. The error is one that no candidate has caused.
func (b *bench) run(ctx context.Context, done func(s *subject, e db.Entry, output string) error) error {
	for _, s := range b.part.subjects {
		if ctx.Err() != nil {
			return nil
		}
		e := b.s.entryOf(s)
		e.Code = b.code[s.kernel]
		output, err := b.measure(ctx, s, &e)
		if isBroken(err) {
			b.child, b.group = nil, nil
			if ctx.Err() != nil {
				return nil // it was ended for the budget
			}
			e.Problem, e.Times = oneLine(err.Error()), db.Times{}
			output, err = "", nil
		}
		if err != nil && ctx.Err() != nil {
			return nil // likewise, while it got operands
		}
		if err != nil {
			return err
		}
		if err := done(s, e, output); err != nil {
			return err
		}
	}
	return nil
}

func oneLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}

// notItsFault marks an error of the machine as one that the candidate has not caused.
func notItsFault(err error) error {
	if isBroken(err) {
		return errors.New("the measuring machine failed: " + err.Error())
	}
	return err
}

func (b *bench) measure(ctx context.Context, s *subject, e *db.Entry) (output string, err error) {
	if err := b.prepare(ctx, s); err != nil {
		return "", notItsFault(err)
	}
	if err := b.table(s.cand.Tasks, b.s.VEUs); err != nil {
		return "", notItsFault(err)
	}
	answer, err := b.child.ask("code %d", s.entry)
	if err != nil {
		return "", err
	}
	local := 0
	if _, err := fmt.Sscan(answer, &e.Code.Registers, &local, &e.Code.Shared); err != nil {
		return "", err
	}
	if _, err := b.child.ask("once %d", s.entry); err != nil {
		return "", err
	}
	if output, err = b.read(s.group); err != nil {
		return "", err
	}
	return output, b.time(s, e)
}

// opening is how long the machine may take until it has memory: many may start at once, each with a context of its own.
const opening = time.Minute

// open starts the machine with memory for all of the part's groups, unless it runs.
func (b *bench) open(ctx context.Context) (err error) {
	if b.child != nil {
		return nil
	}
	if b.child, err = start(ctx, b.program, opening); err != nil {
		return err
	}
	defer func() { b.child.limited = b.s.Patience }()
	most := int64(space)
	for _, x := range b.part.subjects {
		most = max(most, x.group.bytes)
	}
	_, err = b.child.ask("space %d", most)
	return err
}

// close ends the machine.
func (b *bench) close() {
	if b.child != nil {
		b.child.close()
	}
}

// prepare sees to it that the machine runs, that its memory has the group's inputs and the subject's constants, and that
// outputs hold nothing that looks right.
func (b *bench) prepare(ctx context.Context, s *subject) (err error) {
	if err := b.open(ctx); err != nil {
		return err
	}
	if b.group != s.group {
		if err := b.fillInputs(s.group); err != nil {
			return err
		}
		b.group, b.there = s.group, map[int]bool{}
	}
	for _, c := range constants(s.group.graph, s.cand) {
		if b.there[c.ID] || c.Elems == 0 {
			continue
		}
		at, err := b.loaded.place(c)
		if err != nil {
			return err
		}
		if _, err := b.child.ask("load %d %d %d %s", s.group.offsets[c.ID], c.Bytes(), at, b.loaded.path); err != nil {
			return err
		}
		b.there[c.ID] = true
	}
	for i, out := range s.group.outputs {
		if err := b.fill(s.group, out, i, !contains(s.group.inputs, out)); err != nil {
			return err
		}
	}
	return nil
}

func contains(list []*roperator.Buffer, b *roperator.Buffer) bool {
	for _, x := range list {
		if x == b {
			return true
		}
	}
	return false
}

// fillInputs gives the group's inputs their numbers, which are the same for every candidate, and tells the machine which
// of its memory launches before have left in L2.
func (b *bench) fillInputs(gr *group) error {
	regions := ""
	for i, in := range gr.inputs {
		if err := b.fill(gr, in, i, false); err != nil {
			return err
		}
		regions += fmt.Sprintf(" %d %d", gr.offsets[in.ID], in.Bytes())
	}
	_, err := b.child.ask("inputs %d%s", len(gr.inputs), regions)
	return err
}

func (b *bench) fill(gr *group, buf *roperator.Buffer, seed int, poison bool) error {
	typ, count := fillTypes[buf.DType], buf.Elems
	switch {
	case poison:
		typ, count = "p1", buf.Bytes()
	case typ == "":
		typ, count = "z1", buf.Bytes()
	}
	_, err := b.child.ask("fill %d %d %s %d", gr.offsets[buf.ID], count, typ, seed+1)
	return err
}

// table distributes rTasks 0 … tasks-1 among at most so many blocks as launches of a program do: each block has
// neighbouring ones.
func (b *bench) table(tasks, veus int) error {
	var t strings.Builder
	blocks := min(tasks, veus)
	fmt.Fprintf(&t, "table %d %d", blocks, tasks)
	for i := range blocks + 1 {
		fmt.Fprintf(&t, " %d", i*tasks/blocks)
	}
	for i := range tasks {
		fmt.Fprintf(&t, " %d", i)
	}
	_, err := b.child.ask("%s", t.String())
	return err
}

// read writes the group's outputs to a file, one behind another.
func (b *bench) read(gr *group) (string, error) {
	f, err := os.CreateTemp(b.outputs, "")
	if err != nil {
		return "", err
	}
	defer f.Close()
	part := filepath.Join(b.outputs, b.part.name()+".out")
	for _, out := range gr.outputs {
		if _, err := b.child.ask("read %d %d %s", gr.offsets[out.ID], out.Bytes(), part); err != nil {
			return "", notItsFault(err)
		}
		data, err := os.ReadFile(part)
		if err != nil {
			return "", err
		}
		if _, err := f.Write(data); err != nil {
			return "", err
		}
	}
	return f.Name(), nil
}

// How candidates are timed: at most so many repeats, until the median changes by no more than steady.
const (
	repeats = 48
	steady  = 0.03
)

// How many times slower than its group's best a candidate may be, as measured: possible for all its times, promising for
// those that only serve the cost model.
const (
	possible  = 2
	promising = 1.2
)

// time fills in the times of a subject, for which the table of all its rTasks is set.
func (b *bench) time(s *subject, e *db.Entry) (err error) {
	waves := float64((s.cand.Tasks + b.s.VEUs - 1) / b.s.VEUs)
	t := &e.Times
	if t.Cold, err = b.timeOne(s, "cold", e); err != nil {
		return err
	}
	best := b.s.best(s, t.Cold)
	if t.Cold <= possible*best {
		if t.Wave, err = b.timeOne(s, "warm", e); err != nil {
			return err
		}
		t.DRAM = t.Cold
		if len(constants(s.group.graph, s.cand)) > 0 {
			if t.DRAM, err = b.timeOne(s, "dram", e); err != nil {
				return err
			}
		}
	}
	if t.Cold <= promising*best {
		if err := b.timeBeside(s, e); err != nil {
			return err
		}
	}
	t.Cold, t.Wave, t.DRAM = tenth(t.Cold/waves), tenth(t.Wave/waves), tenth(t.DRAM/waves)
	return nil
}

// timeBeside measures an rTask alone, and half a wave beside neighbours on the other half of the device.
func (b *bench) timeBeside(s *subject, e *db.Entry) (err error) {
	for _, x := range []struct {
		how   string
		tasks int
		to    *float64
	}{
		{"warm", 1, &e.Times.Alone},
		{"memory", min(s.cand.Tasks, max(1, b.s.VEUs/2)), &e.Times.BesideMemory},
		{"arithmetic", min(s.cand.Tasks, max(1, b.s.VEUs/2)), &e.Times.BesideArithmetic},
	} {
		if err := b.table(x.tasks, b.s.VEUs); err != nil {
			return notItsFault(err)
		}
		ns, err := b.timeOne(s, x.how, &db.Entry{})
		if err != nil {
			return err
		}
		*x.to = tenth(ns)
	}
	return nil
}

func tenth(x float64) float64 { return float64(int64(10*x+0.5)) / 10 }

func (b *bench) timeOne(s *subject, how string, e *db.Entry) (ns float64, err error) {
	answer, err := b.child.ask("time %d %s %d %g", s.entry, how, repeats, steady)
	if err != nil {
		return 0, err
	}
	if _, err := fmt.Sscan(answer, &ns, &e.Spread, &e.Repeats, &e.MHz); err != nil {
		return 0, fmt.Errorf("BUG: the measuring machine answers %q", answer)
	}
	return ns, nil
}

// tensors cuts the file of a group's outputs into tensors.
func tensors(gr *group, file string) ([]*ir.Tensor, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var out []*ir.Tensor
	for _, buf := range gr.outputs {
		n := buf.Bytes()
		t, err := ir.TensorFromBytes(buf.DType, []int64{buf.Elems}, data[:n:n])
		if err != nil {
			return nil, err
		}
		out, data = append(out, t), data[n:]
	}
	return out, nil
}
