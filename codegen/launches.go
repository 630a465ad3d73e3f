package codegen

import (
	"encoding/binary"

	"github.com/rammerc/rammerc/schedule/vdevice"
)

// dispatch is a launch with the steps of its blocks.
type dispatch struct {
	launch
	ranges []byte // StepRange of each block
}

// dispatches lists a segment's launches: of an rProgram the persistent one, then one a wave, which are
// its fall-back. rows are the steps of the vEUs, one vEU behind the other in the step table. A wave gets
// as many blocks as the highest vEU that it uses asks for, and threads and shared memory for its own
// rTasks only: blocks of waves that overlap have to find room beside each other.
func dispatches(kind vdevice.SegmentKind, p *vdevice.Program, rows [][]vdevice.Step) []dispatch {
	var out []dispatch
	if kind == vdevice.RProgram {
		d := dispatch{launch: launch{grid: len(rows)}}
		first := 0
		for _, steps := range rows {
			d.add(p, steps, first)
			first += len(steps)
		}
		out = append(out, d)
	}
	return append(out, waves(p, rows)...)
}

// waves lists one launch a wave.
func waves(p *vdevice.Program, rows [][]vdevice.Step) []dispatch {
	out := make([]dispatch, p.Waves)
	first := 0
	for v, steps := range rows {
		for from := 0; from < len(steps); {
			wave := steps[from].Wave
			to := from + 1
			for to < len(steps) && steps[to].Wave == wave {
				to++
			}
			d := &out[wave]
			for d.grid < v { // vEUs that the wave does not use
				d.add(p, nil, 0)
				d.grid++
			}
			d.add(p, steps[from:to], first+from)
			d.grid++
			from = to
		}
		first += len(steps)
	}
	for w := range out {
		out[w].overlap = w > 0
		if out[w].grid == 0 { // a wave of no steps
			out[w].grid = 1
			out[w].add(p, nil, 0)
		}
	}
	return out
}

// add appends a block that runs steps, the first of which is so far into the step table.
func (d *dispatch) add(p *vdevice.Program, steps []vdevice.Step, first int) {
	le := binary.LittleEndian
	d.ranges = le.AppendUint32(le.AppendUint32(d.ranges, uint32(first)), uint32(first+len(steps)))
	for _, s := range steps {
		in := p.Candidate(s.Task.Op).Inst
		d.threads, d.shared = max(d.threads, in.Threads()), max(d.shared, in.Shared())
	}
	d.threads = max(d.threads, 32)
}
