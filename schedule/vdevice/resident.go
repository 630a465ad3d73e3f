package vdevice

// Runs says, for every step of a vEU, how many steps from it on are one run: they have one instance, and
// if that keeps a block of a constant on chip, they run the same rTask of candidates with that constant.
// 0 is for steps whose rKernel has no runs. A run is carried out as one loop; its meaning stays the
// sequence of its steps.
func (p *Program) Runs(veu int) []int32 {
	steps := p.Steps[veu]
	out := make([]int32, len(steps))
	for i := len(steps) - 1; i >= 0; i-- {
		c := p.Candidate(steps[i].Task.Op)
		if !c.Inst.Kernel.Resident {
			continue
		}
		out[i] = 1
		if i+1 < len(steps) && out[i+1] > 0 {
			next := p.Candidate(steps[i+1].Task.Op)
			same := c.Resident == nil || steps[i+1].Task.Index == steps[i].Task.Index
			if same && next.Resident == c.Resident && next.Inst.Key() == c.Inst.Key() {
				out[i] = out[i+1] + 1
			}
		}
	}
	return out
}
