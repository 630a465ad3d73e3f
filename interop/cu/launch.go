package rammercu

import (
	"encoding/binary"
	"errors"
	"slices"

	"gorgonia.org/cu"

	"github.com/rammerc/rammerc/codegen/abi"
)

// Launch puts one inference on the stream. The first one with certain pointers is launched kernel by kernel, the second
// is recorded as a CUDA graph, and from then on one launch of the graph is an inference. If the caller records the
// stream himself, the launches go into his graph.
func (p *Program) Launch(stream cu.Stream, inputs, outputs []cu.DevicePtr) error {
	if err := checkPointers(p, inputs, outputs); err != nil {
		return err
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if !p.loaded {
		return errors.New("the program is closed")
	}
	return p.ctx.Do(func() error { return p.enqueue(stream, inputs, outputs) })
}

// enqueue runs in the context's thread.
func (p *Program) enqueue(stream cu.Stream, inputs, outputs []cu.DevicePtr) error {
	records, err := capturing(stream)
	if err != nil {
		return err
	}
	if records {
		return p.launchAll(stream, inputs, outputs)
	}
	if p.used { // inferences of a program share its memory
		if err := stream.Wait(p.fence, 0); err != nil {
			return err
		}
	}
	launched, err := p.launchGraph(stream, inputs, outputs)
	if err == nil && !launched {
		err = p.launchAll(stream, inputs, outputs)
	}
	if err != nil {
		return err
	}
	p.used = true
	return p.fence.Record(stream)
}

// launchGraph launches the inference as a graph if it takes several launches and the same pointers have come before.
func (p *Program) launchGraph(stream cu.Stream, inputs, outputs []cu.DevicePtr) (launched bool, err error) {
	if p.launches() < 2 {
		return false, nil
	}
	key := slices.Concat(inputs, outputs)
	i := slices.IndexFunc(p.recorded, func(r recorded) bool { return slices.Equal(r.key, key) })
	if i < 0 {
		if len(p.recorded) == graphs {
			p.recorded[0].destroy()
			p.recorded = slices.Delete(p.recorded, 0, 1)
		}
		p.recorded = append(p.recorded, recorded{key: key})
		return false, nil
	}
	r := &p.recorded[i]
	if !r.made {
		g, err := recordGraph(p.own, func() error { return p.launchAll(p.own, inputs, outputs) })
		if err != nil {
			return false, err
		}
		r.graph, r.made = g, true
	}
	return true, r.graph.launch(stream)
}

func (r *recorded) destroy() {
	if r.made {
		r.graph.destroy()
	}
}

// forget drops all graphs.
func (p *Program) forget() {
	for i := range p.recorded {
		p.recorded[i].destroy()
	}
	p.recorded = nil
}

// launches is how many launches an inference takes.
func (p *Program) launches() int {
	n := 0
	for _, s := range p.list.Segments {
		if s.Whole != nil && p.whole {
			n++
		} else {
			n += len(s.Launches)
		}
	}
	return n
}

// launchAll puts the launches of all segments on the stream.
func (p *Program) launchAll(stream cu.Stream, inputs, outputs []cu.DevicePtr) error {
	for i := range p.list.Segments {
		s := &p.list.Segments[i]
		if s.Whole != nil && p.whole {
			err := p.launchWhole(s, stream, inputs, outputs)
			if err == nil {
				continue
			}
			if !tooLarge(err) {
				return err
			}
			// Others have taken multiprocessors. From now on the waves of rPrograms are launched.
			p.whole, p.why = false, "the device refused the rProgram: "+err.Error()
		}
		if err := p.launchApart(s, stream, inputs, outputs); err != nil {
			return err
		}
	}
	return nil
}

func (p *Program) launchWhole(s *abi.LaunchSegment, stream cu.Stream, inputs, outputs []cu.DevicePtr) error {
	return p.kernels[s.Whole.Kernel].launch(s.Whole, order{cooperative: true, cluster: s.Cluster}, stream,
		p.parameter(s.Whole, inputs, outputs))
}

// launchApart puts the launches of a segment on their streams. Where there are several, side streams begin behind what is
// on the caller's stream by now, and what comes next there is behind all of them.
func (p *Program) launchApart(s *abi.LaunchSegment, stream cu.Stream, inputs, outputs []cu.DevicePtr) error {
	if s.Streams > 1 {
		if err := p.fork.Record(stream); err != nil {
			return err
		}
	}
	awaited := map[int]bool{}
	for _, l := range s.Launches {
		for _, a := range l.After {
			awaited[a] = true
		}
	}
	last := map[int]int{} // the latest launch of each stream
	for i := range s.Launches {
		l := &s.Launches[i]
		on := stream
		if l.Stream > 0 {
			on = p.side[l.Stream-1]
		}
		if _, begun := last[l.Stream]; !begun && l.Stream > 0 && len(l.After) == 0 {
			if err := on.Wait(p.fork, 0); err != nil {
				return err
			}
		}
		last[l.Stream] = i
		for _, a := range l.After {
			if err := on.Wait(p.events[a], 0); err != nil {
				return err
			}
		}
		how := order{overlap: l.Overlap && p.overlaps}
		if err := p.kernels[l.Kernel].launch(l, how, on, p.parameter(l, inputs, outputs)); err != nil {
			return err
		}
		if awaited[i] {
			if err := p.events[i].Record(on); err != nil {
				return err
			}
		}
	}
	return p.join(last, awaited, stream)
}

// join orders what comes next on the stream behind the latest launches of the side streams.
func (p *Program) join(last map[int]int, awaited map[int]bool, stream cu.Stream) error {
	for k := range p.side {
		i, ran := last[k+1]
		if !ran {
			continue
		}
		if !awaited[i] {
			if err := p.events[i].Record(p.side[k]); err != nil {
				return err
			}
		}
		if err := stream.Wait(p.events[i], 0); err != nil {
			return err
		}
	}
	return nil
}

// parameter is a launch's parameter with the addresses of this inference.
func (p *Program) parameter(l *abi.Launch, inputs, outputs []cu.DevicePtr) []byte {
	data := slices.Clone(l.Parameter)
	for _, a := range l.Addresses {
		var at cu.DevicePtr
		switch a.Of {
		case "input":
			at = inputs[a.Port]
		case "output":
			at = outputs[a.Port]
		default:
			at = p.memory[a.Of]
		}
		binary.LittleEndian.PutUint64(data[a.At:], uint64(at)+uint64(a.Plus))
	}
	return data
}
