package driver

import "github.com/rammerc/rammerc/schedule/vdevice"

// summarise counts what a plan is made of; cost is a modelled rTask's time in nanoseconds.
func summarise(p *vdevice.Plan, cost func(vdevice.Task) float64) Summary {
	st := p.Stats()
	s := Summary{
		ROperators: st.ROperators, RTasks: st.RTasks, Segments: st.Segments, Waits: st.Waits,
		VEUs: p.Spec.VEUs(), Instances: st.Instances, ArenaBytes: st.ArenaBytes,
	}
	if ns, err := vdevice.PlanTime(p, cost); err == nil {
		s.PredictedUS = ns / 1000
	}
	return s
}
