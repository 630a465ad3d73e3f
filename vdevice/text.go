package vdevice

import (
	"bytes"
	"fmt"
	"strconv"
)

// The text form of a plan, .rprog, has one statement a line; # starts a comment:
//
//	rprogram 2
//	graph "digits" ops 4 buffers 9
//	device "emu4"
//	arena 4096
//	buffer 3 at 256 "conv1_out"
//	words 512
//	tagged 5 at 0 "h1"
//	segment rprogram veus 4 waves 2 counters 1
//	op 0 pick 1 rtasks 8 "conv1" "Conv+Relu" "conv_direct_BM32"
//	carry 5 tagged
//	veu 0
//	0.5 wave 0 signal adds 0
//	1.0 wave 1 wait 1:0 3:2 follow 2:1
//	1.1 wave 1 counters 0
//	2.0 wave 2 follow 3:0 direct
//	3.0 wave 3 follow 3:1 direct joined
//
// A step's line is ROPERATOR.RTASK and then the words of each kind of edge, in the order of edgeRows: its launch
// (wave), the flags that it waits for as VEU:ORDER (wait) and whether it sets its own (signal), the producers of its
// tagged data (follow), the counters that it waits for (counters) and the one that it adds to (adds). Behind them
// stand its mode, unless it is plain, and whether it is joined to the run of the step before it.
//
// The segment line says behind the vEUs of which of the graph's loops the segment is a part ("loop 1"). It says "serial" behind the waves where launches do not overlap, how many counters there are, and of
// how many vEUs a cluster is ("cluster 8"). The words in shared memory in which a vEU takes elements of a tagged
// buffer are
//
//	slot 3 buffer 5 from 0 to 256 at 512 gate 0
//
// Launches whose blocks are alone on a multiprocessor are listed by their waves:
//
//	alone 1 2
//
// A parallel segment says of each of its launches, which are its waves, on which stream it is and after which
// launches of other streams it comes:
//
//	node 7 stream 2 after 3 5
//
// What an rTask computes is not in the text. The text is read back against the rOperator graph that it was made for,
// and names must agree.

// textVersion is the version of the text form that FormatPlan prints and ParsePlan reads.
const textVersion = 2

// FormatPlan prints the plan.
func FormatPlan(plan *Plan) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "rprogram %d\ngraph %q ops %d buffers %d\ndevice %q\narena %d\n", textVersion,
		plan.Graph.Name, len(plan.Graph.Ops), len(plan.Graph.Buffers), plan.Spec.Name, plan.ArenaLen)
	for id, off := range plan.Arena {
		if off >= 0 {
			fmt.Fprintf(&b, "buffer %d at %d %q\n", id, off, plan.Graph.Buffers[id].Name)
		}
	}
	for k := range edgeRows {
		edgeRows[k].printPlan(&b, plan)
	}
	for _, s := range plan.Segments {
		fmt.Fprintf(&b, "segment %v veus %d", s.Kind, len(s.Program.Steps))
		if s.Loop > 0 {
			fmt.Fprintf(&b, " loop %d", s.Loop)
		}
		for k := range edgeRows {
			edgeRows[k].printSegment(&b, s)
		}
		b.WriteByte('\n')
		formatProgram(&b, s.Program)
	}
	return b.Bytes()
}

func formatProgram(b *bytes.Buffer, p *Program) {
	for id, c := range p.Pick {
		if c >= 0 {
			op, cand := p.Ops[id], p.Candidate(int32(id))
			fmt.Fprintf(b, "op %d pick %d rtasks %d %q %q %q\n", id, c, cand.Tasks, op.Name, op.Kind, cand.Inst.Name())
		}
	}
	for k := range edgeRows {
		edgeRows[k].printProgram(b, p)
	}
	for v, steps := range p.Steps {
		if len(p.Nodes) > 0 && len(steps) == 0 {
			continue // few launches of a stream have blocks for all its vEUs
		}
		fmt.Fprintf(b, "veu %d\n", v)
		for i := range steps {
			formatStep(b, p, &steps[i])
		}
	}
}

func formatStep(b *bytes.Buffer, p *Program, s *Step) {
	printNumber(b, "", s.Task.Op)
	printNumber(b, ".", s.Task.Index)
	for k := range edgeRows {
		edgeRows[k].printStep(b, s)
	}
	b.WriteString(printMode(s))
	b.WriteString(" # ")
	b.WriteString(strconv.Quote(p.Ops[s.Task.Op].Name))
	b.WriteByte('\n')
}

// EdgesText is what the text form says of a step's edges, without the launch that it is in: "wait 1:0 3:2 signal".
func EdgesText(s *Step) string {
	var b bytes.Buffer
	for k := range edgeRows {
		if EdgeKind(k) != EdgeLaunch {
			edgeRows[k].printStep(&b, s)
		}
	}
	return string(bytes.TrimSpace(b.Bytes()))
}

// printNumber prints a number behind some text.
func printNumber(b *bytes.Buffer, before string, n int32) {
	b.WriteString(before)
	b.Write(strconv.AppendInt(b.AvailableBuffer(), int64(n), 10))
}
