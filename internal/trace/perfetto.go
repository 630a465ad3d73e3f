package trace

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
)

// Kinds of tracks that a vEU has in Perfetto's view. Slices on one track must not overlap. Where slices of a kind do,
// for example several copies of weights that are under way at once, the vEU has several tracks of that kind.
const (
	trackWait = iota
	trackCompute
	trackLoad
	tracks
)

var trackNames = [tracks]string{"wait", "compute", "load"}

// event is an event of the trace-event format, which chrome://tracing and ui.perfetto.dev read. Times are in
// microseconds.
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

// WritePerfetto writes the timeline in the trace-event format. Each segment is a process and each vEU has threads in
// it. An arrow leads to every step that waited, from the step whose results came last.
func (t *Timeline) WritePerfetto(w io.Writer) error {
	b := bufio.NewWriterSize(w, 1<<16)
	p := &perfetto{t: t, w: b, tracks: map[track][]slice{}, computes: make([]int, len(t.Runs))}
	fmt.Fprint(b, `{"displayTimeUnit":"ns","traceEvents":[`)
	p.launches()
	for i := range t.Runs {
		p.run(i)
	}
	for i := range t.Chunks {
		p.chunk(i)
	}
	p.write()
	p.arrows()
	fmt.Fprint(b, "\n]}\n")
	if p.err != nil {
		return p.err
	}
	return b.Flush()
}

// track is a row of slices of one kind of one vEU: one thread of a segment's process, or several if slices overlap.
type track struct{ segment, veu, kind int }

type slice struct {
	name     string
	from, to float64
	args     map[string]any
	run      int // the run whose computation the slice is, or -1
}

type perfetto struct {
	t        *Timeline
	w        *bufio.Writer
	n        int
	err      error
	threads  int
	tracks   map[track][]slice
	computes []int // the thread on which each run's computation is drawn
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

// launchPID is the number of the process that shows the launches. Segment i is process i+2.
const launchPID = 1

func pid(segment int) int { return segment + 2 }

func (p *perfetto) meta(pid, tid int, what, name string, order int) {
	p.add(event{Name: what + "_name", Phase: "M", PID: pid, TID: tid, Args: map[string]any{"name": name}})
	p.add(event{Name: what + "_sort_index", Phase: "M", PID: pid, TID: tid, Args: map[string]any{"sort_index": order}})
}

// thread makes a new thread of a process. Perfetto takes a thread that has the number of a process for that process's
// main thread, so threads are numbered behind all processes.
func (p *perfetto) thread(pid int, name string) int {
	p.threads++
	id := len(p.t.Plan.Segments) + launchPID + p.threads
	p.meta(pid, id, "thread", name, id)
	return id
}

// numbered is the name of one of several lanes; the first keeps the plain name.
func numbered(name string, lane int) string {
	if lane == 0 {
		return name
	}
	return fmt.Sprintf("%s %d", name, lane+1)
}

// slice writes a slice that ends a nanosecond early. Perfetto rounds times to whole nanoseconds and drops a slice that
// begins before the previous one on its thread has ended, which rounding could bring about.
func (p *perfetto) slice(pid, tid int, s *slice) {
	from, to := math.Round(s.from), math.Round(s.to)
	d := max(to-from-1, 0) * us
	p.add(event{Name: s.name, Phase: "X", PID: pid, TID: tid, Time: from * us, Dur: &d, Args: s.args})
}

func (p *perfetto) put(segment, veu, kind int, s slice) {
	if s.to > s.from || s.run >= 0 {
		k := track{segment, veu, kind}
		p.tracks[k] = append(p.tracks[k], s)
	}
}

// launches draws the launches, and for each vEU how long it waited for the launches before. Launches that overlap are
// on threads of their own.
func (p *perfetto) launches() {
	p.meta(launchPID, 0, "process", "launches of "+p.t.Plan.Name, 0)
	var all []slice
	for i := range p.t.Launches {
		l := &p.t.Launches[i]
		all = append(all, slice{l.name(), l.Begin, l.End, map[string]any{"launch": i, "vEUs": len(l.VEUs)}, -1})
		for _, v := range l.VEUs {
			p.put(l.Segment, v.VEU, trackWait, slice{"launches before", v.Begun, v.Ready,
				map[string]any{"launch": i, "SM": v.SM}, -1})
		}
	}
	for i, lane := range lanes(all) {
		id := p.thread(launchPID, numbered("launches", i))
		for k := range lane {
			p.slice(launchPID, id, &lane[k])
		}
	}
}

func (p *perfetto) run(i int) {
	x := &p.t.Runs[i]
	op := &p.t.Plan.Ops[x.Op]
	about := map[string]any{"for": op.Name, "step": x.Order}
	p.put(x.Segment, x.VEU, trackLoad, slice{"load", x.Begun, x.Loaded, about, -1})
	p.put(x.Segment, x.VEU, trackWait, slice{"wait", x.Loaded, x.Ready, about, -1})
	p.put(x.Segment, x.VEU, trackCompute, slice{"import", x.Ready, x.Started, about, -1})
	p.put(x.Segment, x.VEU, trackCompute, slice{op.Name, x.Started, x.Computed, map[string]any{
		"rTask": x.RTask, "step": x.Order, "kind": op.Kind, "instance": op.Instance, "nodes": op.Nodes, "SM": x.SM,
		"launch": x.Launch,
	}, i})
}

// chunk draws a copy of weights, from when it was issued until all of it had arrived in shared memory.
func (p *perfetto) chunk(i int) {
	c := &p.t.Chunks[i]
	x := &p.t.Runs[c.Run]
	name := p.t.Plan.Ops[x.Op].Name
	p.put(x.Segment, x.VEU, trackLoad, slice{"weights of " + name, c.Issued, c.Landed, map[string]any{
		"for": name, "step": x.Order, "chunk": c.Number, "bytes": c.Bytes,
		"wanted after us": (c.Wanted - c.Issued) * us,
	}, -1})
}

// write writes all tracks that have slices.
func (p *perfetto) write() {
	keys := slices.SortedFunc(maps.Keys(p.tracks), func(a, b track) int {
		return cmp.Or(a.segment-b.segment, a.veu-b.veu, a.kind-b.kind)
	})
	sms := p.sms()
	last := -1
	for _, k := range keys {
		in := pid(k.segment)
		if k.segment != last {
			last = k.segment
			p.meta(in, 0, "process", fmt.Sprintf("segment %d, %s", k.segment, p.t.Plan.Segments[k.segment].Kind), in)
		}
		for i, lane := range lanes(p.tracks[k]) {
			name := numbered(fmt.Sprintf("vEU %d %s", k.veu, trackNames[k.kind]), i)
			id := p.thread(in, name+sms[track{k.segment, k.veu, 0}])
			for s := range lane {
				p.slice(in, id, &lane[s])
				if run := lane[s].run; run >= 0 {
					p.computes[run] = id
				}
			}
		}
	}
}

// sms names the multiprocessor of each vEU that stayed on one for the whole segment.
func (p *perfetto) sms() map[track]string {
	out := map[track]string{}
	for i := range p.t.Launches {
		l := &p.t.Launches[i]
		for _, v := range l.VEUs {
			k, name := track{l.Segment, v.VEU, 0}, fmt.Sprintf(" (SM %d)", v.SM)
			if was, ok := out[k]; ok && was != name {
				name = ""
			}
			out[k] = name
		}
	}
	return out
}

// lanes deals slices to as few lanes as possible such that none overlap within a lane, and sorts each lane by time.
func lanes(all []slice) [][]slice {
	slices.SortStableFunc(all, func(a, b slice) int { return cmp.Compare(a.from, b.from) })
	var out [][]slice
	for _, s := range all {
		free := slices.IndexFunc(out, func(lane []slice) bool { return lane[len(lane)-1].to <= s.from })
		if free < 0 {
			free, out = len(out), append(out, nil)
		}
		out[free] = append(out[free], s)
	}
	return out
}

// arrows draws an arrow to every step that waited, from the step whose results came last.
func (p *perfetto) arrows() {
	e := newEdges(p.t)
	for i := range p.t.Runs {
		from := e.last(i)
		if from < 0 {
			continue
		}
		a, b := &p.t.Runs[from], &p.t.Runs[i]
		leaves := a.Started + 0.99*a.Compute() // an arrow's end must lie inside of the slice that it belongs to
		p.add(event{Name: "edge", Cat: "edge", Phase: "s", ID: i + 1, PID: pid(a.Segment), TID: p.computes[from],
			Time: leaves * us})
		p.add(event{Name: "edge", Cat: "edge", Phase: "f", Bind: "e", ID: i + 1, PID: pid(b.Segment),
			TID: p.computes[i], Time: b.Started * us})
	}
}
