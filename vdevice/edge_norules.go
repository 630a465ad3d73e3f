package vdevice

import (
	"bytes"

	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/schema"
)

// noRules is what a kind of edge adds to a part that it does not concern: nothing. A step's ends are printed and read
// as the words of the kind's row and the numbers behind them, which suits most kinds. kind is the row's number.
type noRules struct{ kind EdgeKind }

func (noRules) form(*verifier, int, Segment)                              {}
func (noRules) whole(*verifier)                                           {}
func (noRules) related(*verifier, int, *order)                            {}
func (noRules) brings(*Program, *roperator.Candidate) func(read int) bool { return nil }
func (noRules) read(*memoryCheck, int32, *region)                         {}
func (noRules) write(*memoryCheck, int32, *region)                        {}
func (noRules) meetings(*Program) int                                     { return 0 }
func (noRules) settle(*Builder)                                           {}
func (noRules) use(*Builder, At, []*Front)                                {}
func (noRules) needs(*Program, *Needs)                                    {}
func (noRules) count(*Stats, Segment)                                     {}
func (noRules) printPlan(*bytes.Buffer, *Plan)                            {}
func (noRules) printSegment(*bytes.Buffer, Segment)                       {}
func (noRules) printProgram(*bytes.Buffer, *Program)                      {}
func (noRules) parseSegment(*planParser, *Segment)                        {}
func (noRules) statements() map[string]func(*planParser)                  { return nil }
func (noRules) encode(*Encoder, *Step, *schema.Step)                      {}

func (noRules) takes(_ *Moves, _ At, _ *roperator.Buffer, moves []schema.Move) ([]schema.Move, bool) {
	return moves, false
}

func (noRules) gives(_ *Moves, _ At, _ *roperator.Buffer, moves []schema.Move) []schema.Move {
	return moves
}

// arrives is when the step at the other end has ended.
func (noRules) arrives(s *simulation, _ At, e Edge) (float64, At) {
	return s.t.End[e.VEU][e.Order], e.At
}

// printStep prints the step's ends of the kind, for example " wait 1:0 3:2" and " signal".
func (n noRules) printStep(b *bytes.Buffer, s *Step) {
	r := &edgeRows[n.kind]
	if in := s.InOf(n.kind); len(in) > 0 {
		b.WriteByte(' ')
		b.WriteString(r.in)
		for _, e := range in {
			printNumber(b, " ", e.VEU)
			if !r.meets {
				printNumber(b, ":", e.Order)
			}
		}
	}
	for _, e := range s.OutOf(n.kind) {
		b.WriteByte(' ')
		b.WriteString(r.out)
		if r.meets {
			printNumber(b, " ", e.VEU)
		}
	}
}

// parseStep reads what printStep prints.
func (n noRules) parseStep(p *planParser, s *Step) {
	r := &edgeRows[n.kind]
	if r.in != "" && p.optional(r.in) {
		s.In = append(s.In, p.edges(n.kind)...)
	}
	if r.out != "" && p.optional(r.out) {
		e := Edge{Kind: n.kind}
		if r.meets {
			e.VEU = int32(p.number(0, int64(r.meetings(p.program()))-1))
		}
		s.Out = append(s.Out, e)
	}
}
