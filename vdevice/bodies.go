package vdevice

// Bodies is how many bodies of rKernel instances the plan's kernels have. An instance whose launches are of several
// kernels has one in each of them.
func (plan *Plan) Bodies() int {
	type body struct {
		kernel KernelClass
		key    string
	}
	rule, needs := plan.kernelRule(), plan.launchNeeds()
	bodies := map[body]bool{}
	for i, s := range plan.Segments {
		for _, steps := range s.Program.Steps {
			last := int32(-1)
			for j := range steps {
				op, wave := steps[j].Task.Op, steps[j].Wave
				if s.Kind == RProgram {
					wave = 0 // all of it is one launch
				} else if j > 0 && steps[j-1].Wave != wave {
					last = -1
				}
				if op != last {
					last = op
					bodies[body{rule.classOf(needs[i][wave]), s.Program.Candidate(op).Inst.Key()}] = true
				}
			}
		}
	}
	return len(bodies)
}
