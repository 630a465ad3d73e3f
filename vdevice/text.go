package vdevice

import (
	"bytes"
	"fmt"
	"strconv"
)

// The text form of a plan, .rprog, has one statement a line; # starts a comment:
//
//	rprogram 1
//	graph "digits" ops 4 buffers 9
//	device "emu4"
//	arena 4096
//	words 512
//	buffer 3 at 256 "conv1_out"
//	tagged 5 at 0 "h1"
//	segment rprogram veus 4 waves 2
//	carry 5 tagged
//	op 0 pick 1 rtasks 8 "conv1" "Conv+Relu" "conv_direct_BM32"
//	veu 0
//	0.5 wave 0 signal
//	1.0 wave 1 wait 1:0 3:2 follow 2:1
//
// The segment line ends in "serial" where launches do not overlap. A parallel segment says of each of its
// launches, which are its waves, on which stream it is and after which launches of other streams:
//
//	node 7 stream 2 after 3 5
//
// Where vEUs are in clusters the segment line says of how many ("cluster 8"), and words in shared memory
// that a vEU takes tagged elements of a buffer in are
//
//	slot 3 buffer 5 from 0 to 256 at 512
//
// A step is ROPERATOR.RTASK; its waits, and the producers of its tagged data, are VEU:ORDER. A program with
// counters says how many on its segment line ("counters 2"); behind those stand the counters that a step
// waits for ("counters 0 1") and the one it adds to ("adds 1"). What an rTask computes is not in the text: it is
// read back against the rOperator graph it was made for, and names must agree.

// FormatPlan prints the plan.
func FormatPlan(plan *Plan) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "rprogram 1\ngraph %q ops %d buffers %d\ndevice %q\narena %d\n",
		plan.Graph.Name, len(plan.Graph.Ops), len(plan.Graph.Buffers), plan.Spec.Name, plan.ArenaLen)
	for id, off := range plan.Arena {
		if off >= 0 {
			fmt.Fprintf(&b, "buffer %d at %d %q\n", id, off, plan.Graph.Buffers[id].Name)
		}
	}
	if plan.WordsLen > 0 {
		fmt.Fprintf(&b, "words %d\n", plan.WordsLen)
	}
	for id, at := range plan.Words {
		if at >= 0 {
			fmt.Fprintf(&b, "tagged %d at %d %q\n", id, at, plan.Graph.Buffers[id].Name)
		}
	}
	for _, s := range plan.Segments {
		fmt.Fprintf(&b, "segment %v veus %d waves %d", s.Kind, len(s.Program.Steps), s.Program.Waves)
		if n := s.Program.Counters; n > 0 {
			fmt.Fprintf(&b, " counters %d", n)
		}
		if n := s.Program.Cluster; n > 0 {
			fmt.Fprintf(&b, " cluster %d", n)
		}
		if s.Serial {
			b.WriteString(" serial")
		}
		b.WriteByte('\n')
		formatProgram(&b, s.Program)
	}
	return b.Bytes()
}

func formatProgram(b *bytes.Buffer, p *Program) {
	for buf, c := range p.Carry {
		if c != Plain {
			fmt.Fprintf(b, "carry %d %v\n", buf, c)
		}
	}
	for id, c := range p.Pick {
		if c >= 0 {
			op, cand := p.Ops[id], p.Candidate(int32(id))
			fmt.Fprintf(b, "op %d pick %d rtasks %d %q %q %q\n", id, c, cand.Tasks, op.Name, op.Kind, cand.Inst.Name())
		}
	}
	for _, s := range p.Slots {
		fmt.Fprintf(b, "slot %d buffer %d from %d to %d at %d gate %d\n", s.VEU, s.Buf, s.Lo, s.Hi, s.At, s.Gate)
	}
	for w, n := range p.Nodes {
		fmt.Fprintf(b, "node %d stream %d", w, n.Stream)
		for i, x := range n.After {
			if i == 0 {
				b.WriteString(" after")
			}
			fmt.Fprintf(b, " %d", x)
		}
		b.WriteByte('\n')
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
	num := func(before string, n int32) {
		b.WriteString(before)
		b.Write(strconv.AppendInt(b.AvailableBuffer(), int64(n), 10))
	}
	num("", s.Task.Op)
	num(".", s.Task.Index)
	num(" wave ", s.Wave)
	if len(s.Waits) > 0 {
		b.WriteString(" wait")
		for _, w := range s.Waits {
			num(" ", w.VEU)
			num(":", w.Order)
		}
	}
	if len(s.Follows) > 0 {
		b.WriteString(" follow")
		for _, f := range s.Follows {
			num(" ", f.VEU)
			num(":", f.Order)
		}
	}
	if len(s.Counters) > 0 {
		b.WriteString(" counters")
		for _, c := range s.Counters {
			num(" ", c)
		}
	}
	if s.Adds > 0 {
		num(" adds ", s.Adds-1)
	}
	if s.Signal {
		b.WriteString(" signal")
	}
	b.WriteString(" # ")
	b.WriteString(strconv.Quote(p.Ops[s.Task.Op].Name))
	b.WriteByte('\n')
}
