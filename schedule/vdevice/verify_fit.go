package vdevice

import (
	"fmt"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/roperator"
)

// Needs is what a vEU must have to run a program's rTasks.
type Needs struct {
	Threads   int   // of the rTask with the most
	Shared    int   // bytes
	Registers int   // a thread
	Imports   int64 // size of the import area, in elements of 4 bytes
}

// Add raises the needs to those of another rTask.
func (n *Needs) Add(threads, shared, registers int) {
	n.Threads, n.Shared, n.Registers = max(n.Threads, threads), max(n.Shared, shared), max(n.Registers, registers)
}

// AddCandidate raises the needs to those of the candidate's rTasks.
func (n *Needs) AddCandidate(c *roperator.Candidate) {
	n.Add(c.Inst.Threads(), c.Inst.Shared(), c.Inst.Registers())
	n.Imports = max(n.Imports, c.ImportArea())
}

// SharedBytes is the shared memory of a vEU: the rTasks' and the import area.
func (n *Needs) SharedBytes() int { return n.Shared + int(4*n.Imports) }

// Needs computes what the program's vEUs must have.
func (p *Program) Needs() Needs {
	var n Needs
	for id, c := range p.Pick {
		if c >= 0 {
			n.AddCandidate(p.Ops[id].Candidates[c])
		}
	}
	return n
}

// Fit lists what of n a vEU of the device cannot offer while all vEUs are resident; nothing if it can.
func (s *Spec) Fit(n Needs) []string {
	var out []string
	if n.Threads > s.Threads {
		out = append(out, fmt.Sprintf("%d threads, a vEU of %s has %d", n.Threads, s.Name, s.Threads))
	}
	if shared := n.SharedBytes(); shared > s.SharedBound() {
		out = append(out, fmt.Sprintf("%d bytes of shared memory, a vEU of %s has %d", shared, s.Name, s.SharedBound()))
	}
	if bound := s.RegisterBound(n.Threads); n.Registers > bound {
		out = append(out, fmt.Sprintf("%d registers a thread, a vEU of %s with %d threads has %d", n.Registers, s.Name, n.Threads, bound))
	}
	return out
}

// fits checks that the program's vEUs can be resident all at once.
func (v *verifier) fits(segment int, s Segment) {
	p := s.Program
	report := func(format string, args ...any) {
		v.l.Add(&diag.Diagnostic{ID: doesNotFit, Message: fmt.Sprintf("segment %d %s", segment, fmt.Sprintf(format, args...))})
	}
	have, most := "", v.plan.Spec.VEUs()
	if s.Kind == Parallel { // streams have vEUs of their own, by name
		most *= p.streams()
		have = fmt.Sprintf(" for each of %d streams", p.streams())
	}
	if n := len(p.Steps); n > most {
		report("uses %d vEUs, %s has %d%s", n, v.plan.Spec.Name, v.plan.Spec.VEUs(), have)
	}
	for _, lack := range v.plan.Spec.Fit(p.Needs()) {
		report("needs %s", lack)
	}
}
