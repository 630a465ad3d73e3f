package rammercu

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"gorgonia.org/cu"

	"github.com/rammerc/rammerc/codegen/abi"
)

// Program is a cubin in a context, with the memory that its inferences need.
type Program struct {
	ctx    cu.Context
	folder string
	list   abi.LaunchList

	module   cu.Module
	loaded   bool
	kernels  []kernel
	memory   map[string]cu.DevicePtr
	overlaps bool   // the device has programmatic dependent launch
	whole    bool   // rPrograms are one launch
	why      string // the reason for that

	mutex    sync.Mutex
	used     bool
	fence    cu.Event // reached when the latest inference has ended
	own      cu.Stream
	side     []cu.Stream // streams of parallel segments, but for the first, which is the caller's
	fork     cu.Event
	events   []cu.Event // of launches that others wait for, and of the last one of each side stream
	recorded []recorded
}

// recorded is a graph of an inference with certain pointers. It is made when these come for the second time.
type recorded struct {
	key   []cu.DevicePtr
	graph graph
	made  bool
}

// graphs is how many pointers are remembered.
const graphs = 8

// Load loads the program whose launch list, NAME.launches.json, is in the folder.
func Load(ctx cu.Context, folder string) (*Program, error) {
	found, err := filepath.Glob(filepath.Join(folder, "*.launches.json"))
	if err != nil {
		return nil, err
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("%s has %d launch lists, want one: `rammerc compile --emit cubin` writes them", folder, len(found))
	}
	p := &Program{ctx: ctx, folder: folder, memory: map[string]cu.DevicePtr{}}
	data, err := os.ReadFile(found[0])
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &p.list); err != nil {
		return nil, fmt.Errorf("%s: %w", found[0], err)
	}
	if p.list.Schema != abi.LaunchListSchema {
		return nil, fmt.Errorf("%s has schema %q, want %q", found[0], p.list.Schema, abi.LaunchListSchema)
	}
	if err := ctx.Do(p.load); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", p.list.Name, err), p.Close())
	}
	return p, nil
}

// load runs in the context's thread.
func (p *Program) load() (err error) {
	if p.module, err = cu.Load(filepath.Join(p.folder, p.list.Cubin)); err != nil {
		return fmt.Errorf("%s, which is for %s: %w", p.list.Cubin, p.list.Arch, err)
	}
	p.loaded = true
	for _, k := range p.list.Kernels {
		fn, err := p.module.Function(k.Function)
		if err != nil {
			return fmt.Errorf("kernel %s: %w", k.Function, err)
		}
		ready, err := prepareKernel(fn, k)
		if err != nil {
			return err
		}
		p.kernels = append(p.kernels, ready)
	}
	for _, m := range p.list.Memories {
		if err := p.makeMemory(m); err != nil {
			return fmt.Errorf("memory %s: %w", m.Name, err)
		}
	}
	for _, m := range p.list.TensorMaps {
		of, known := p.memory[m.Memory]
		if !known {
			return fmt.Errorf("tensor map: there is no memory %q", m.Memory)
		}
		made, err := tensorMap(m, of)
		if err != nil {
			return err
		}
		if err := upload(p.memory["arena"]+cu.DevicePtr(m.Map), made); err != nil {
			return err
		}
	}
	p.overlaps = launchesOverlap()
	p.chooseMode()
	return p.makeStreams()
}

// makeMemory makes a memory with its first content.
func (p *Program) makeMemory(m abi.LaunchMemory) error {
	at, err := cu.MemAlloc(max(256, m.Bytes))
	if err != nil {
		return err
	}
	p.memory[m.Name] = at
	switch {
	case m.File != "":
		return p.fill(at, m)
	case m.Zero:
		return upload(at, make([]byte, m.Bytes))
	}
	return nil
}

// fill copies a part of a file to the device, and checks that the file is the program's and undamaged.
func (p *Program) fill(at cu.DevicePtr, m abi.LaunchMemory) error {
	data, err := os.ReadFile(filepath.Join(p.folder, m.File))
	if err != nil {
		return err
	}
	if int64(len(data)) < m.At+m.Bytes {
		return fmt.Errorf("%s is cut short", m.File)
	}
	if m.Hash != "" {
		end := len(data) - 8
		hash := abi.NewHash()
		hash.Write(data[m.At:end])
		found := hash.Sum64()
		if found != binary.LittleEndian.Uint64(data[end:]) {
			return fmt.Errorf("%s is damaged", m.File)
		}
		if fmt.Sprintf("%016x", found) != m.Hash {
			return fmt.Errorf("%s belongs to another program", m.File)
		}
	}
	return upload(at, data[m.At:m.At+m.Bytes])
}

// chooseMode decides whether rPrograms run as one launch each. A device that does not hold all vEUs of one runs their
// waves, one launch after another.
func (p *Program) chooseMode() {
	p.whole, p.why = true, "the plan"
	for i := range p.list.Segments {
		s := &p.list.Segments[i]
		if s.Whole == nil {
			continue
		}
		if !cooperates() {
			p.whole, p.why = false, "the device has no cooperative launches, or shares its time with other processes"
			return
		}
		if room := p.kernels[s.Whole.Kernel].room(s.Whole, s.Cluster); s.Whole.Blocks > room {
			p.whole, p.why = false, fmt.Sprintf("the rProgram has %d vEUs, the device holds %d at once", s.Whole.Blocks, room)
			return
		}
	}
}

// makeStreams makes the streams and events of an inference.
func (p *Program) makeStreams() (err error) {
	if p.own, err = cu.MakeStream(cu.NonBlocking); err != nil {
		return err
	}
	for _, e := range []*cu.Event{&p.fence, &p.fork} {
		if *e, err = cu.MakeEvent(cu.DisableTiming); err != nil {
			return err
		}
	}
	streams, launches := 1, 0
	for _, s := range p.list.Segments {
		if s.Kind == "parallel" {
			streams, launches = max(streams, s.Streams), max(launches, len(s.Launches))
		}
	}
	for range streams - 1 {
		s, err := cu.MakeStream(cu.NonBlocking)
		if err != nil {
			return err
		}
		p.side = append(p.side, s)
	}
	for range launches {
		e, err := cu.MakeEvent(cu.DisableTiming)
		if err != nil {
			return err
		}
		p.events = append(p.events, e)
	}
	return nil
}

// Context is the context that the program was loaded in.
func (p *Program) Context() cu.Context { return p.ctx }

// Inputs describes the inputs.
func (p *Program) Inputs() []Tensor { return tensorsOf(p.list.Inputs) }

// Outputs describes the outputs.
func (p *Program) Outputs() []Tensor { return tensorsOf(p.list.Outputs) }

func tensorsOf(list []abi.LaunchTensor) []Tensor {
	out := make([]Tensor, len(list))
	for i, t := range list {
		out[i] = Tensor{t.Name, t.DType, slices.Clone(t.Dims), t.Bytes}
	}
	return out
}

// How names the kinds of the program's segments, and says why rPrograms are launched as they are.
func (p *Program) How() string {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	var kinds []string
	for _, s := range p.list.Segments {
		kind := s.Kind
		if s.Whole != nil && !p.whole {
			kind = "waves"
		}
		if !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	return fmt.Sprintf("%v: %s", kinds, p.why)
}

// Close releases the program.
func (p *Program) Close() error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.ctx.Do(func() error {
		var problems []error
		note := func(err error) { problems = append(problems, err) }
		if p.used {
			note(p.fence.Synchronize())
		}
		p.forget()
		for _, s := range append(p.side, p.own) {
			if s != cu.NoStream {
				note(s.Destroy())
			}
		}
		for _, e := range append(p.events, p.fence, p.fork) {
			if e != (cu.Event{}) {
				note(cu.DestroyEvent(&e))
			}
		}
		for _, at := range p.memory {
			note(cu.MemFree(at))
		}
		if p.loaded {
			note(p.module.Unload())
		}
		p.side, p.own, p.events, p.fence, p.fork = nil, cu.NoStream, nil, cu.Event{}, cu.Event{}
		p.memory, p.loaded, p.used = nil, false, false
		return errors.Join(problems...)
	})
}
