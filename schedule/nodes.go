package schedule

import (
	"slices"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/vdevice"
)

// streaming is a way to launch rOperators on several streams.
type streaming struct {
	// streams gives each rOperator a stream. No stream may order what the graph does not order.
	streams func(preds [][]int32) []int32
	// order lists the rOperators in the order of their launches; nil: in the order of the graph.
	order func(spec *device.Spec, chosen []*choice, preds [][]int32) []int32
}

var (
	likeOpara = &streaming{ // with what goes beyond the paper
		func(preds [][]int32) []int32 { return streamsOf(preds, true) },
		func(spec *device.Spec, chosen []*choice, preds [][]int32) []int32 {
			return launchOrder(oparaNodes(spec, chosen, preds, true), preds)
		},
	}
	opara = &streaming{
		func(preds [][]int32) []int32 { return streamsOf(preds, false) },
		func(spec *device.Spec, chosen []*choice, preds [][]int32) []int32 {
			return launchOrder(oparaNodes(spec, chosen, preds, false), preds)
		},
	}
	nimble = &streaming{streams: matchedStreams}
)

// nodes makes a segment with a launch for each of ops, which are ascending; chosen is by rOperator. Without a way to
// launch on several streams it is a sequence.
func (s *scheduler) nodes(how *streaming, ops []int32, chosen []*choice) vdevice.Segment {
	within := make([]int32, len(s.g.Ops)) // place in ops plus one
	for i, op := range ops {
		within[op] = int32(i) + 1
	}
	preds, mine := make([][]int32, len(ops)), make([]*choice, len(ops))
	for i, op := range ops {
		mine[i] = chosen[op]
		for _, p := range s.ops.preds[op] {
			if within[p] > 0 {
				preds[i] = append(preds[i], within[p]-1)
			}
		}
	}
	launches := make([]vdevice.Launch, len(ops))
	for i, op := range ops {
		launches[i] = vdevice.Launch{Op: op, Candidate: mine[i].index}
	}
	kind := vdevice.LaunchSequence
	if how != nil {
		kind = vdevice.Parallel
		launches = s.onStreams(how, launches, mine, preds)
	}
	return vdevice.Segment{Kind: kind, Program: vdevice.NodeProgram(s.device, s.g, kind, launches)}
}

// onStreams gives the launches streams and brings them into the order of launching.
func (s *scheduler) onStreams(how *streaming, launches []vdevice.Launch, chosen []*choice,
	preds [][]int32) []vdevice.Launch {
	streams := how.streams(preds)
	order := make([]int32, len(launches))
	for i := range order {
		order[i] = int32(i)
	}
	if how.order != nil {
		order = how.order(s.spec, chosen, preds)
	}
	at := make([]int32, len(order))
	for i, v := range order {
		at[v] = int32(i)
	}
	out, deps := make([]vdevice.Launch, len(order)), make([][]int32, len(order))
	for i, v := range order {
		out[i] = launches[v]
		out[i].Node.Stream = streams[v]
		for _, p := range preds[v] {
			deps[i] = append(deps[i], at[p])
		}
	}
	vdevice.Reduce(out, deps)
	return out
}

// ofNodes is a plan that has only this segment.
func (s *scheduler) ofNodes(seg vdevice.Segment, chosen []*choice) *vdevice.Plan {
	plan := s.newPlan()
	for op, ch := range chosen {
		plan.Pick[op] = ch.index
	}
	if len(chosen) > 0 {
		plan.Segments = []vdevice.Segment{seg}
	}
	return plan
}

// mostOnStreams is how many launches are tried as a parallel graph without being asked for. Ordering them takes a clock
// of all streams for each launch, and a graph may have nearly as many streams as launches.
const mostOnStreams = 1 << 12

func (s *scheduler) launchesOf(g *group) int {
	n := 0
	for _, wave := range g.waves {
		n += len(wave)
	}
	return n
}

// faster returns the segment, which has the group's waves, or the same rOperators as a parallel graph if that is
// clearly faster by the model.
func (s *scheduler) faster(seg vdevice.Segment, g *group) vdevice.Segment {
	if s.launchesOf(g) > mostOnStreams {
		return seg
	}
	var ops []int32
	chosen := make([]*choice, len(s.g.Ops))
	for _, wave := range g.waves {
		for _, o := range wave {
			ops = append(ops, o.op)
			chosen[o.op] = o.choice
		}
	}
	slices.Sort(ops)
	other := s.nodes(likeOpara, ops, chosen)
	if s.makespan(other) < clearly*s.makespan(seg) {
		return other
	}
	return seg
}

func (s *scheduler) makespan(seg vdevice.Segment) float64 {
	t, err := vdevice.SimulateSegment(seg, func(t vdevice.Task) float64 { return s.costs.TaskTime(seg.Program.Candidate(t.Op)) })
	if err != nil {
		panic("BUG: launches that wait for each other: " + err.Error())
	}
	return t.Makespan
}
