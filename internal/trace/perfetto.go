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

// Kinds of tracks of a vEU in Perfetto's view. A kind has several where its slices overlap: copies on their
// way, or a launch's blocks that wait while those of the launch before do.
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

// track is what slices stand on: one thread of a segment's process, or several.
type track struct{ segment, veu, kind int }

type slice struct {
	name     string
	from, to float64
	args     map[string]any
	run      int // whose computation it is, or -1
}

type perfetto struct {
	t        *Timeline
	w        *bufio.Writer
	n        int
	err      error
	threads  int
	tracks   map[track][]slice
	computes []int // threads that runs are on
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

func (p *perfetto) meta(pid, tid int, what, name string, order int) {
	p.add(event{Name: what + "_name", Phase: "M", PID: pid, TID: tid, Args: map[string]any{"name": name}})
	p.add(event{Name: what + "_sort_index", Phase: "M", PID: pid, TID: tid, Args: map[string]any{"sort_index": order}})
}

// thread makes the next thread. Its number is no process's, whose main thread it would be taken for.
func (p *perfetto) thread(pid int, name string) int {
	p.threads++
	id := len(p.t.Plan.Segments) + launchPID + p.threads
	p.meta(pid, id, "thread", name, id)
	return id
}

// numbered is the name of the lane with the given index.
func numbered(name string, lane int) string {
	if lane == 0 {
		return name
	}
	return fmt.Sprintf("%s %d", name, lane+1)
}

// slice ends a nanosecond early: Perfetto counts in whole ones, whichever way it rounds, and drops a slice that
// begins before the one in front of it has ended.
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

// launches draws the launches, and how long each vEU waited for those before. Launches that overlap stand
// below each other.
func (p *perfetto) launches() {
	p.meta(launchPID, 0, "process", "launches of "+p.t.Plan.Name, 0)
	var all []slice
	for i := range p.t.Launches {
		l := &p.t.Launches[i]
		all = append(all, slice{l.name(), l.Begin, l.End, map[string]any{"launch": i, "vEUs": len(l.VEUs)}, -1})
		for _, v := range l.VEUs {
			p.put(l.Segment, v.VEU, trackWait, slice{"launches before", v.Begun, v.Ready, map[string]any{"launch": i, "SM": v.SM}, -1})
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
		"rTask": x.RTask, "step": x.Order, "kind": op.Kind, "instance": op.Instance, "nodes": op.Nodes, "SM": x.SM, "launch": x.Launch,
	}, i})
}

// chunk draws a copy of weights, from its start until it has landed.
func (p *perfetto) chunk(i int) {
	c := &p.t.Chunks[i]
	x := &p.t.Runs[c.Run]
	name := p.t.Plan.Ops[x.Op].Name
	p.put(x.Segment, x.VEU, trackLoad, slice{"weights of " + name, c.Issued, c.Landed, map[string]any{
		"for": name, "step": x.Order, "chunk": c.Number, "bytes": c.Bytes, "wanted after us": (c.Wanted - c.Issued) * us,
	}, -1})
}

// write puts out the tracks; only those that hold something are there.
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

// sms says on which multiprocessor vEUs were, where that is one.
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

// lanes deals slices to as few lanes as there can be without overlaps, in each by time.
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
		p.add(event{Name: "edge", Cat: "edge", Phase: "s", ID: i + 1, PID: pid(a.Segment), TID: p.computes[from], Time: leaves * us})
		p.add(event{Name: "edge", Cat: "edge", Phase: "f", Bind: "e", ID: i + 1, PID: pid(b.Segment), TID: p.computes[i], Time: b.Started * us})
	}
}
