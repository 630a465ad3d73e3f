package measure

import (
	"math"

	"github.com/rammerc/rammerc/profiler/db"
)

// Remodel is what the cost model says of the rTask of an entry, in nanoseconds, with constants in L2 or in DRAM.
type Remodel func(e *db.Entry, streamed bool) float64

// neighbours are measurements of instances with other arguments than those in question: the same code on other shapes.
type neighbours map[string][]neighbour // by db.Key.Source

// neighbour is how a measured time differs from the modelled one; both are logarithms.
type neighbour struct{ modelled, ratio float64 }

// newNeighbours takes the entries of a machine that have no problem.
func newNeighbours(entries []db.Entry, machine db.Machine, streamed bool, remodel Remodel) neighbours {
	out := neighbours{}
	if remodel == nil {
		return out
	}
	for i := range entries {
		e := &entries[i]
		if e.Machine != machine || e.Problem != "" || e.Times.Cold <= 0 {
			continue
		}
		inDRAM := streamed && !e.Work.Streamed && e.Times.DRAM > 0
		ns := e.Times.Cold
		if inDRAM {
			ns = e.Times.DRAM
		}
		if m := remodel(e, inDRAM); m > 0 {
			out[e.Source] = append(out[e.Source], neighbour{math.Log(m), math.Log(ns / m)})
		}
	}
	return out
}

// nearby is how far two modelled times may be apart, as a logarithm, to count as one.
const nearby = 0.05

// scale is the factor by which an instance's measured times differ from modelled ones around a modelled time: the mean
// of its neighbours, of which nearer ones count more. ok is false where there are none.
func (n neighbours) scale(source string, modelled float64) (factor float64, ok bool) {
	sum, weights := 0.0, 0.0
	for _, x := range n[source] {
		w := 1 / (nearby + math.Abs(math.Log(modelled)-x.modelled))
		sum, weights = sum+w*x.ratio, weights+w
	}
	return math.Exp(sum / weights), weights > 0
}
