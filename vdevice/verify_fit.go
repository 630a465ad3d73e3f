package vdevice

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/schema"
)

// Needs is what a vEU must have to run a program's rTasks.
type Needs struct {
	Threads    int   // the most that any rTask has
	Shared     int   // the most bytes of shared memory that any rTask has for itself
	Registers  int   // of a thread
	Imports    int64 // size of the import area, in words
	SlotWords  int   // words of 4 bytes for slots of a cluster
	KeptWords  int   // words behind the slots, in which operands of near steps wait that come from memory
	StreamStep int   // the bytes that a stage of the ring of weights must hold; 0: nothing streams
	// WarpGroups are the keys of the instances that multiply by warp groups, in order, each with an end of line.
	WarpGroups string
}

// AddCandidate raises the needs to those of the candidate's rTasks.
func (n *Needs) AddCandidate(c *roperator.Candidate) {
	kept := 0
	if c.Inst.Kernel.Near {
		kept = schema.KeptParts * int(c.ImportArea())
	}
	warpGroups := ""
	if c.Inst.Kernel.OnlyArch > 0 {
		warpGroups = c.Inst.Key() + "\n"
	}
	n.Join(Needs{
		KeptWords: kept, WarpGroups: warpGroups,
		Threads: c.Inst.Threads(), Shared: c.Inst.Shared(), Registers: c.Inst.Registers(), Imports: c.ImportArea(),
		StreamStep: c.Inst.StreamStep(),
	})
}

// Join raises the needs to those of m, where these are larger.
func (n *Needs) Join(m Needs) {
	n.Threads, n.Shared, n.Registers = max(n.Threads, m.Threads), max(n.Shared, m.Shared), max(n.Registers, m.Registers)
	n.Imports, n.SlotWords, n.KeptWords = max(n.Imports, m.Imports), max(n.SlotWords, m.SlotWords),
		max(n.KeptWords, m.KeptWords)
	n.StreamStep = max(n.StreamStep, m.StreamStep)
	if m.WarpGroups != "" && m.WarpGroups != n.WarpGroups {
		keys := append(strings.SplitAfter(n.WarpGroups, "\n"), strings.SplitAfter(m.WarpGroups, "\n")...)
		slices.Sort(keys)
		n.WarpGroups = strings.Join(slices.Compact(keys), "")
	}
}

// blockThreads is how many threads the thread block of a vEU has. Where weights are streamed it has one more warp, the
// loader.
func (n *Needs) blockThreads() int {
	if n.StreamStep > 0 {
		return n.Threads + schema.LoaderThreads
	}
	return n.Threads
}

// SharedBytes is the shared memory of a vEU in bytes, without the ring of weights: what rTasks have for themselves, the
// import area, the slots and their gates.
func (n *Needs) SharedBytes() int {
	bytes := n.Shared + roperator.WordBytes*(int(n.Imports)+n.SlotWords)
	if n.SlotWords > 0 {
		bytes += n.besideSlots()
	}
	return bytes
}

// besideSlots is how many bytes vEUs with slots have beside them: for gates, and for the words behind the slots.
func (n *Needs) besideSlots() int { return schema.GateBytes + roperator.WordBytes*n.KeptWords }

// leastShared is SharedBytes and, where weights are streamed, the smallest ring.
func (n *Needs) leastShared() int {
	if n.StreamStep == 0 {
		return n.SharedBytes()
	}
	return n.SharedBytes() + schema.ExecutorShared +
		leastRing*(n.StreamStep+schema.SharedAlign+schema.StageBarrierBytes)
}

// loadedShared is what a vEU must offer for the program to be loaded.
func (n *Needs) loadedShared() int {
	if n.StreamStep == 0 {
		return n.leastShared() + schema.LeastShared
	}
	return n.leastShared()
}

// SlotRoom is how many words of slots have room beside the other needs, on a device.
func (n Needs) SlotRoom(s *device.Spec) int {
	n.SlotWords = 0
	return (s.SharedBound() - n.besideSlots() - max(n.leastShared(), n.SharedBytes()+
		schema.ExecutorShared)) / roperator.WordBytes / 32 * 32
}

// Needs computes what the program's vEUs must have.
func (p *Program) Needs() Needs {
	var n Needs
	for k := range edgeRows {
		edgeRows[k].needs(p, &n)
	}
	for id, c := range p.Pick {
		if c >= 0 {
			n.AddCandidate(p.Ops[id].Candidates[c])
		}
	}
	return n
}

// streamStep is Needs().StreamStep.
func (p *Program) streamStep() int {
	step := 0
	for id, c := range p.Pick {
		if c >= 0 {
			step = max(step, p.Ops[id].Candidates[c].Inst.StreamStep())
		}
	}
	return step
}

// FitsOn reports whether a vEU of the device offers n.
func (n Needs) FitsOn(s *device.Spec) bool {
	threads := n.blockThreads()
	return threads <= s.Threads && n.loadedShared() <= s.SharedBound() && n.Registers <= s.RegisterBound(threads)
}

// LackingOn lists what of n a vEU of the device cannot offer while all vEUs are resident at once. The list is empty
// if it can offer everything.
func (n Needs) LackingOn(s *device.Spec) []string {
	var out []string
	threads := n.blockThreads()
	if threads > s.Threads {
		out = append(out, fmt.Sprintf("%d threads, a vEU of %s has %d", threads, s.Name, s.Threads))
	}
	if shared := n.loadedShared(); shared > s.SharedBound() {
		out = append(out, fmt.Sprintf("%d bytes of shared memory, a vEU of %s has %d", shared, s.Name, s.SharedBound()))
	}
	if bound := s.RegisterBound(threads); n.Registers > bound {
		out = append(out, fmt.Sprintf("%d registers a thread, a vEU of %s with %d threads has %d", n.Registers, s.Name,
			threads, bound))
	}
	return out
}

// fits checks that each launch's kernel fits a vEU while all vEUs are resident at once. Nothing is wrong with any step:
// what a launch needs is found in its steps.
func (v *verifier) fits() {
	kernels, launches := v.plan.Kernels(), v.plan.launchNeeds()
	kernelOf := v.plan.KernelOf(kernels)
	for i := range v.plan.Segments {
		reported := map[string]bool{}
		for _, n := range launches[i] {
			// Launches have the threads, the registers and the size of stages of their kernel.
			k := &kernels[kernelOf(n)].Needs
			n.Threads, n.Registers = k.Threads, k.Registers
			if n.StreamStep > 0 {
				n.StreamStep = k.StreamStep
			}
			for _, lack := range n.LackingOn(v.plan.Spec) {
				if !reported[lack] {
					v.misfit(i, "needs %s", lack)
				}
				reported[lack] = true
			}
		}
	}
}

// enoughVEUs checks that a segment has no more vEUs than the device.
func (v *verifier) enoughVEUs(segment int, s Segment) {
	have, most := "", v.plan.Spec.VEUs()
	switch s.Kind {
	case Parallel: // every stream has names of its own for vEUs
		most *= s.Program.streams()
		have = fmt.Sprintf(" for each of %d streams", s.Program.streams())
	case Waves: // not all blocks of a launch need be on the device at once
		most *= MostCrowded
		have = fmt.Sprintf(", %d blocks of a launch for each", MostCrowded)
	}
	if n := len(s.Program.Steps); n > most {
		v.misfit(segment, "uses %d vEUs, %s has %d%s", n, v.plan.Spec.Name, v.plan.Spec.VEUs(), have)
	}
}

func (v *verifier) misfit(segment int, format string, args ...any) {
	v.l.Add(&diag.Diagnostic{ID: doesNotFit, Message: fmt.Sprintf("segment %d %s", segment, fmt.Sprintf(format, args...))})
}
