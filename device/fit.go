package device

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/rammerc/rammerc/internal/diag"
)

// costField is a cost by its key in device files.
type costField struct {
	key string
	at  func(*Cost) *float64
}

var costFields = []costField{
	{"launch_ns", func(c *Cost) *float64 { return &c.Launch }},
	{"node_ns", func(c *Cost) *float64 { return &c.Node }},
	{"pdl_ns", func(c *Cost) *float64 { return &c.PDL }},
	{"cold_launch_ns", func(c *Cost) *float64 { return &c.Cold }},
	{"beside_share", func(c *Cost) *float64 { return &c.Beside }},
	{"publish_ns", func(c *Cost) *float64 { return &c.Publish }},
	{"hop_ns", func(c *Cost) *float64 { return &c.Hop }},
	{"wait_each_ns", func(c *Cost) *float64 { return &c.WaitEach }},
	{"barrier_ns", func(c *Cost) *float64 { return &c.Barrier }},
	{"counter_ns", func(c *Cost) *float64 { return &c.Counter }},
	{"tagged_ns", func(c *Cost) *float64 { return &c.Tagged }},
	{"tagged_root_ns", func(c *Cost) *float64 { return &c.TaggedRoot }},
	{"cluster_ns", func(c *Cost) *float64 { return &c.Cluster }},
	{"step_ns", func(c *Cost) *float64 { return &c.Step }},
	{"latency_ns", func(c *Cost) *float64 { return &c.Latency }},
	{"l2_bytes_per_ns", func(c *Cost) *float64 { return &c.L2PerSM }},
	{"l2_total_bytes_per_ns", func(c *Cost) *float64 { return &c.L2Total }},
	{"dram_bytes_per_ns", func(c *Cost) *float64 { return &c.DRAM }},
	{"fp32_flops_per_ns", func(c *Cost) *float64 { return &c.FlopsPerSM }},
}

// Field is the cost of that key in device files; it panics where there is none.
func (c *Cost) Field(key string) *float64 {
	i := slices.IndexFunc(costFields, func(x costField) bool { return x.key == key })
	if i < 0 {
		panic("BUG: no cost is called " + key)
	}
	return costFields[i].at(c)
}

// Fit says by how much the cost that plans are made with differs from the one that was measured alone, by
// key: models have steps that overlap, and rTasks that a single measurement is not like. The factors are
// those with which whole models came out best, and stay when the device is measured again.
type Fit map[string]float64

// Planned is the costs that plans are made with, to three digits.
func (f Fit) Planned(measured Cost) Cost {
	c := measured
	for _, x := range costFields {
		if factor, ok := f[x.key]; ok {
			*x.at(&c) = ThreeDigits(*x.at(&c) * factor)
		}
	}
	return c
}

// ThreeDigits rounds to as many: measurements differ in the third.
func ThreeDigits(v float64) float64 {
	if v == 0 {
		return 0
	}
	unit := math.Pow(10, math.Floor(math.Log10(v))-2)
	if unit < 1 { // so that the result is the float nearest to a short decimal
		return math.Round(v/unit) / math.Round(1/unit)
	}
	return math.Round(v/unit) * unit
}

// check reports factors of costs that there are none of, and such as are no factors.
func (f Fit) check(l *diag.List, file string, lines map[string]int) {
	known := map[string]bool{}
	for _, x := range costFields {
		known[x.key] = true
	}
	for _, key := range slices.Sorted(maps.Keys(f)) {
		d := &diag.Diagnostic{ID: "bad-device-file", File: file, Line: lines["fit."+key]}
		switch v := f[key]; {
		case !known[key]:
			d.Message = fmt.Sprintf("fit.%s: there is no such cost", key)
		case !(v > 0) || math.IsInf(v, 0):
			d.Message = fmt.Sprintf("fit.%s is %v, want a positive number", key, v)
		default:
			continue
		}
		l.Add(d)
	}
}
