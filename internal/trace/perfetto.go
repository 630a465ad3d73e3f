package trace

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
)

// Tracks of a vEU in Perfetto's view: thread 3·vEU + track + 1 of the segment's process.
const (
	trackWait = iota
	trackCompute
	trackLoad
	tracks
)

var trackNames = [tracks]string{"wait", "compute", "load"}

// event is one of the trace-event format's (Chrome's chrome://tracing, Perfetto's ui.perfetto.dev). Times
// are microseconds.
type event struct {
	Name  string         `json:"name,omitempty"`
	Phase string         `json:"ph"`
	PID   int            `json:"pid"`
	TID   int            `json:"tid"`
	Time  float64        `json:"ts"`
	Dur   *float64       `json:"dur,omitempty"`
	Cat   string         `json:"cat,omitempty"`
	ID    int            `json:"id,omitempty"`
	Bind  string         `json:"bp,omitempty"`
	Args  map[string]any `json:"args,omitempty"`
}

// WritePerfetto writes the timeline in the trace-event format: a process for each segment, threads for each
// vEU, and an arrow to every step that waited from the one it waited for last.
func (t *Timeline) WritePerfetto(w io.Writer) error {
	b := bufio.NewWriterSize(w, 1<<16)
	p := &perfetto{t: t, w: b}
	fmt.Fprint(b, `{"displayTimeUnit":"ns","traceEvents":[`)
	p.names()
	for i := range t.Runs {
		p.run(i)
	}
	for i := range t.Chunks {
		p.chunk(i)
	}
	p.arrows()
	fmt.Fprint(b, "\n]}\n")
	if p.err != nil {
		return p.err
	}
	return b.Flush()
}

type perfetto struct {
	t   *Timeline
	w   *bufio.Writer
	n   int
	err error
}

func (p *perfetto) add(e event) {
	line, err := json.Marshal(e)
	if err != nil {
		p.err = err
		return
	}
	if p.n > 0 {
		p.w.WriteByte(',')
	}
	p.n++
	p.w.WriteByte('\n')
	p.w.Write(line)
}

// launchPID is the process of the launches; that of segment i is i+2.
const launchPID = 1

func pid(segment int) int { return segment + 2 }

func tid(veu, track int) int { return tracks*veu + track + 1 }

func (p *perfetto) meta(pid, tid int, what, name string, order int) {
	p.add(event{Name: what + "_name", Phase: "M", PID: pid, TID: tid, Args: map[string]any{"name": name}})
	p.add(event{Name: what + "_sort_index", Phase: "M", PID: pid, TID: tid, Args: map[string]any{"sort_index": order}})
}

// names tells what processes and threads are called; only tracks that hold something are there.
func (p *perfetto) names() {
	p.meta(launchPID, 0, "process", "launches of "+p.t.Plan.Name, 0)
	p.meta(launchPID, 1, "thread", "launches", 1)
	for i, l := range p.t.Launches {
		p.slice(launchPID, 1, l.name(), l.Begin, l.End, map[string]any{"launch": i, "vEUs": len(l.VEUs)})
	}
	named := map[[2]int]bool{}
	for i := range p.t.Runs {
		x := &p.t.Runs[i]
		if !named[[2]int{pid(x.Segment), 0}] {
			named[[2]int{pid(x.Segment), 0}] = true
			p.meta(pid(x.Segment), 0, "process", fmt.Sprintf("segment %d, %s", x.Segment, p.t.Plan.Segments[x.Segment].Kind), pid(x.Segment))
		}
		for track, has := range [tracks]bool{x.Wait() > 0, true, x.Load()+x.Import() > 0 || x.Streamed > 0} {
			key := [2]int{pid(x.Segment), tid(x.VEU, track)}
			if has && !named[key] {
				named[key] = true
				p.meta(key[0], key[1], "thread", fmt.Sprintf("vEU %d %s (SM %d)", x.VEU, trackNames[track], x.SM), key[1])
			}
		}
	}
}

func (p *perfetto) slice(pid, tid int, name string, from, to float64, args map[string]any) {
	d := (to - from) * us
	p.add(event{Name: name, Phase: "X", PID: pid, TID: tid, Time: from * us, Dur: &d, Args: args})
}

func (p *perfetto) run(i int) {
	x := &p.t.Runs[i]
	op := &p.t.Plan.Ops[x.Op]
	in := pid(x.Segment)
	for _, part := range []struct {
		track    int
		name     string
		from, to float64
	}{{trackLoad, "load", x.Begun, x.Loaded}, {trackWait, "wait", x.Loaded, x.Ready}, {trackLoad, "import", x.Ready, x.Started}} {
		if part.to > part.from {
			p.slice(in, tid(x.VEU, part.track), part.name, part.from, part.to, map[string]any{"for": op.Name, "step": x.Order})
		}
	}
	p.slice(in, tid(x.VEU, trackCompute), op.Name, x.Started, x.Computed, map[string]any{
		"rTask": x.RTask, "step": x.Order, "kind": op.Kind, "instance": op.Instance, "nodes": op.Nodes, "SM": x.SM, "launch": x.Launch,
	})
}

// chunk draws a copy of weights. Copies of one vEU overlap, so they are events with beginning and end.
func (p *perfetto) chunk(i int) {
	c := &p.t.Chunks[i]
	x := &p.t.Runs[c.Run]
	e := event{Name: fmt.Sprintf("weights of vEU %d", x.VEU), Cat: "weights", Phase: "b", ID: i + 1, PID: pid(x.Segment), TID: tid(x.VEU, trackLoad), Time: c.Issued * us}
	e.Args = map[string]any{"for": p.t.Plan.Ops[x.Op].Name, "step": x.Order, "chunk": c.Number, "bytes": c.Bytes}
	p.add(e)
	e.Phase, e.Time, e.Args = "e", c.Full*us, nil
	p.add(e)
}

// arrows draws what steps waited for.
func (p *perfetto) arrows() {
	e := newEdges(p.t)
	for i := range p.t.Runs {
		from := e.last(i)
		if from < 0 {
			continue
		}
		a, b := &p.t.Runs[from], &p.t.Runs[i]
		leaves := a.Started + 0.99*a.Compute() // arrows belong to the slice that their end lies in
		p.add(event{Name: "edge", Cat: "edge", Phase: "s", ID: i + 1, PID: pid(a.Segment), TID: tid(a.VEU, trackCompute), Time: leaves * us})
		p.add(event{Name: "edge", Cat: "edge", Phase: "f", Bind: "e", ID: i + 1, PID: pid(b.Segment), TID: tid(b.VEU, trackCompute), Time: b.Started * us})
	}
}
