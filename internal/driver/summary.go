package driver

import (
	"fmt"

	"github.com/rammerc/rammerc/vdevice"
)

// summarise counts what a plan is made of, which takes ns nanoseconds by the model.
func summarise(p *vdevice.Plan, ns float64) Summary {
	st := p.Stats()
	return Summary{
		ROperators: st.ROperators, RTasks: st.RTasks, Segments: st.Segments, Launches: st.Launches, Waits: st.Waits,
		VEUs: p.Spec.VEUs(), Instances: st.Instances, ArenaBytes: st.ArenaBytes,
		PredictedUS: ns / 1000,
	}
}

// segmentCount prints "1 segment" or "3 segments in 7 launches".
func segmentCount(s Summary) string {
	text := count(s.Segments, "segment")
	if s.Launches > s.Segments {
		text += " in " + launchCount(s.Launches)
	}
	return text
}

// SummaryLines tells people what was made.
func (r *Compiled) SummaryLines() []string {
	s := r.Summary
	lines := []string{
		fmt.Sprintf("%s for %s (%s): %s, %s on %s, %s, %s; %.1f µs predicted",
			r.Name, r.Target, r.Device, count(s.ROperators, "rOperator"), count(s.RTasks, "rTask"), count(s.VEUs, "vEU"),
			segmentCount(s), count(s.Waits, "wait"), s.PredictedUS),
	}
	code := count(s.Instances, "kernel instance")
	if s.CodeBytes > 0 {
		code += fmt.Sprintf(", %s of machine code, %d registers", byteCount(s.CodeBytes), s.Registers)
	}
	lines = append(lines, fmt.Sprintf("%s; %s of weights, %s of activations", code, byteCount(s.WeightBytes), byteCount(s.ArenaBytes)))
	for _, k := range r.Code {
		lines = append(lines, fmt.Sprintf("%9s  %s", byteCount(k.Bytes), k.Instance))
	}
	if r.Verified != "" {
		lines = append(lines, fmt.Sprintf("verified on the %s engine against the evaluator", r.Verified))
	}
	return lines
}
