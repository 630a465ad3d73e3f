package schedule

import (
	"github.com/rammerc/rammerc/vdevice"
)

// modeChoice is a step mode that the scheduler gives to steps which may have it.
type modeChoice struct {
	mode vdevice.StepMode
	why  string // it is better than those below it
}

// modeChoices lists the modes, the best first. A step gets the first one that it may have.
var modeChoices = []modeChoice{
	{vdevice.ModeDirect, "no block barrier between steps, and data in words that threads poll themselves"},
	{vdevice.ModeNear, "the same inside a cluster, through shared memory"},
	{vdevice.ModeResident, "what an rKernel keeps on chip is loaded once for a run of steps"},
	{vdevice.ModePlain, "every step may be plain whose rKernel keeps nothing on chip"},
}

// decideModes gives every step of the plan its mode and joins steps to runs wherever they may be joined.
func decideModes(plan *vdevice.Plan) {
	for _, s := range plan.Segments {
		m := vdevice.NewModeCheck(s)
		allowed := allowedModes(s.Program, m)
		for v, steps := range s.Program.Steps {
			for o := range steps {
				at := vdevice.At{VEU: int32(v), Order: int32(o)}
				st := &steps[o]
				st.Mode = firstMode(m, at, allowed)
				st.Joined = st.Mode.InRuns() && o > 0 && steps[o-1].Mode.InRuns() && m.RefusesJoin(at) == ""
			}
		}
	}
}

// allowedModes are the modes that the program may have, if all steps that may have one do.
func allowedModes(p *vdevice.Program, m *vdevice.ModeCheck) []vdevice.StepMode {
	var out []vdevice.StepMode
	for _, c := range modeChoices {
		has := func(at vdevice.At) bool { return m.Refuses(c.mode, at) == "" }
		if used(p, has) && m.RefusesProgram(c.mode, has) == "" {
			out = append(out, c.mode)
		}
	}
	return out
}

// used reports whether any step has a mode.
func used(p *vdevice.Program, has func(vdevice.At) bool) bool {
	for v, steps := range p.Steps {
		for o := range steps {
			if has(vdevice.At{VEU: int32(v), Order: int32(o)}) {
				return true
			}
		}
	}
	return false
}

// firstMode is the first of the modes that the step may have.
func firstMode(m *vdevice.ModeCheck, at vdevice.At, modes []vdevice.StepMode) vdevice.StepMode {
	for _, mode := range modes {
		if m.Refuses(mode, at) == "" {
			return mode
		}
	}
	panic("BUG: a step may run in no mode")
}
