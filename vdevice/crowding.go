package vdevice

import (
	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/roperator"
)

// Crowding is how many times longer an rTask of c, which takes ns by itself, takes in a launch of so many blocks of its
// kind. Blocks that share a multiprocessor hide each other's latencies until one of its resources is busy all the time:
//
//	one block     load ········ compute ── load ········ compute ──        the memory is busy for a third of the time
//	two blocks    load ········ compute ── load ········ compute ──        two thirds
//	              ····· load ········ compute ── load ········ compute     each takes little more than by itself
//
// Each of the others adds a part of the time in which it is busy (device.Cost.Beside). Blocks that find no room beside
// each other run one after the other. Costs of rTasks count with as many blocks on a multiprocessor as the device has
// vEUs there, so only blocks of a device.Spec.Crowd slow each other down.
func Crowding(spec *device.Spec, c *roperator.Candidate, ns float64, blocks int) float64 {
	together := spec.Together(blocks)
	if together < 2 || ns <= 0 {
		return 1
	}
	var n Needs
	n.AddCandidate(c)
	if !n.fitTogether(spec, together) {
		return float64(together)
	}
	adds := spec.Cost.Beside
	if adds == 0 {
		adds = 1
	}
	share := busy(spec, c, blocks) / ns
	return max(1+adds*float64(together-1)*share, float64(together)*share)
}

// fitTogether reports whether a multiprocessor has registers and shared memory for so many blocks.
func (n *Needs) fitTogether(spec *device.Spec, blocks int) bool {
	return beside(spec, n, blocks) && n.leastShared() <= spec.SharedBeside(blocks)
}

// busy is how long an rTask occupies, in ns, what it needs most of its multiprocessor, or of its share of the device's
// memory. What rTasks move that do not fit in L2 all together goes through DRAM.
func busy(spec *device.Spec, c *roperator.Candidate, blocks int) float64 {
	w := &c.Work
	ns := max(w.Flops/spec.Cost.FlopsPerSM, w.SharedBytes/spec.SharedRate())
	if w.TensorFlops > 0 {
		ns = max(ns, w.TensorFlops/spec.TensorRate("tf32"))
	}
	moved := w.ReadBytes + w.WriteBytes
	rate := spec.Cost.L2Total
	if moved*float64(c.Tasks) > float64(spec.L2Bytes) {
		rate = spec.Cost.DRAM
	}
	share := float64(min(blocks, spec.SMs))
	return max(ns, (w.ConstBytes/spec.Cost.L2Total+moved/rate)*share)
}
