package vdevice

import (
	"fmt"
	"strings"
)

// Stats summarises a plan.
type Stats struct {
	ROperators int   `json:"roperators"`
	RTasks     int   `json:"rtasks"`
	Segments   int   `json:"segments"`
	RPrograms  int   `json:"rprograms"` // segments that are persistent
	Waves      int   `json:"waves"`
	Streams    int   `json:"streams"`  // most of any segment
	Launches   int   `json:"launches"` // kernel launches of one inference
	Waits      int   `json:"waits"`    // flags and counters waited for
	Waiting    int   `json:"waiting"`  // steps that wait
	MaxWaits   int   `json:"max_waits"`
	Signals    int   `json:"signals"`
	Counters   int   `json:"counters"`
	Additions  int   `json:"additions"` // to counters
	Slots      int   `json:"slots"`     // pieces of data that are taken from a cluster's shared memory
	Longest    int   `json:"longest"`   // most steps of one vEU in all segments
	ArenaBytes int64 `json:"arena_bytes"`
	InPlace    int   `json:"in_place"`  // results that lie where an operand of their rOperator lay
	Instances  int   `json:"instances"` // distinct rKernel instances
}

// Stats counts.
func (plan *Plan) Stats() Stats {
	s := Stats{Segments: len(plan.Segments), ArenaBytes: plan.ArenaLen, InPlace: plan.inPlace()}
	keys := map[string]bool{}
	var length []int
	for _, seg := range plan.Segments {
		p := seg.Program
		for id, c := range p.Pick {
			if c >= 0 {
				s.ROperators++
				keys[p.Candidate(int32(id)).Inst.Key()] = true
			}
		}
		if seg.Kind == RProgram {
			s.RPrograms++
		}
		for k := range edgeRows {
			edgeRows[k].count(&s, seg)
		}
		for v, steps := range p.Steps {
			if v == len(length) {
				length = append(length, 0)
			}
			length[v] += len(steps)
			s.Longest = max(s.Longest, length[v])
			s.addSteps(steps)
		}
	}
	s.Instances = len(keys)
	return s
}

func (s *Stats) addSteps(steps []Step) {
	s.RTasks += len(steps)
	for i := range steps {
		n := steps[i].Polls()
		s.Waits += n
		s.MaxWaits = max(s.MaxWaits, n)
		if n > 0 {
			s.Waiting++
		}
	}
}

// String is a few lines for people.
func (s Stats) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d rOperators, %d rTasks of %d rKernel instances\n", s.ROperators, s.RTasks, s.Instances)
	fmt.Fprintf(&b, "%d segments (%d persistent), %d waves, %d launches on %d streams\n", s.Segments, s.RPrograms,
		s.Waves, s.Launches, s.Streams)
	fmt.Fprintf(&b, "%d steps wait for %d others (at most %d each), %d signals, longest vEU %d steps\n", s.Waiting,
		s.Waits, s.MaxWaits, s.Signals, s.Longest)
	if s.Counters > 0 {
		fmt.Fprintf(&b, "%d counters with %d additions\n", s.Counters, s.Additions)
	}
	if s.Slots > 0 {
		fmt.Fprintf(&b, "%d pieces of data through shared memory of clusters\n", s.Slots)
	}
	fmt.Fprintf(&b, "arena %d bytes, %d results in place\n", s.ArenaBytes, s.InPlace)
	return b.String()
}
