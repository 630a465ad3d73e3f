package calibrate

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/rammerc/rammerc/device"
)

// figure says how a cost of the device file follows from the medians of measurements. There can be several ways,
// because older architectures lack some measurements; the first way whose measurements are all there is taken.
type figure struct {
	key  string
	ways []way
}

type way struct {
	needs []string
	value func(v []float64) float64 // the cost, of the medians in the order of needs
}

func same(v []float64) float64 { return v[0] }

func least(v []float64) float64 { return min(v[0], v[1]) }

func more(v []float64) float64 { return max(0, v[0]-v[1]) }

// eachOf is how much longer a wait takes for each flag more: the slope of a line through the times of waits for 1, 8,
// 16 and 32 flags.
func eachOf(v []float64) float64 {
	counts := []float64{1, 8, 16, 32}
	var sx, sy, sxx, sxy float64
	for i, x := range counts {
		sx, sy, sxx, sxy = sx+x, sy+v[i], sxx+x*x, sxy+x*v[i]
	}
	n := float64(len(counts))
	return max(0, (n*sxy-sx*sy)/(n*sxx-sx*sx))
}

// rootOf is how much longer many tagged words take than one, divided by √n - 1: the slope of a line through what one word
// takes, and what 8, 64 and 256 take.
func rootOf(v []float64) float64 {
	var xy, xx float64
	for i, n := range []float64{8, 64, 256} {
		x := math.Sqrt(n) - 1
		xy, xx = xy+x*(v[i+1]-v[0]), xx+x*x
	}
	return max(0, xy/xx)
}

// figures lists the costs in the order of the device file. The launch of an rProgram is measured inside a CUDA graph,
// because libraries launch from one.
var figures = []figure{
	{"launch_ns", []way{{[]string{"node_cooperative"}, same}}},
	{"node_ns", []way{{[]string{"node_all"}, same}}},
	{"pdl_ns", []way{{[]string{"pdl_all"}, same}, {[]string{"node_all"}, same}}},
	{"hop_ns", []way{{[]string{"hop"}, same}}},
	{"wait_each_ns", []way{{[]string{"wait_1", "wait_8", "wait_16", "wait_32"}, eachOf}}},
	{"barrier_ns", []way{{[]string{"wait_all", "barrier_counter"}, least}}},
	{"counter_ns", []way{{[]string{"barrier_counter"}, same}}},
	{"tagged_ns", []way{{[]string{"tagged_1"}, same}}},
	{"tagged_root_ns", []way{{[]string{"tagged_1", "tagged_8", "tagged_64", "tagged_256"}, rootOf}}},
	{"cluster_ns", []way{{[]string{"cluster_8"}, same}, {[]string{"tagged_1"}, same}}},
	{"step_ns", []way{{[]string{"step"}, same}}},
	{"latency_ns", []way{{[]string{"ring_values", "wait_1"}, more}}},
	{"l2_bytes_per_ns", []way{{[]string{"l2_one"}, same}}},
	{"l2_total_bytes_per_ns", []way{{[]string{"l2_all"}, same}}},
	{"dram_bytes_per_ns", []way{{[]string{"dram"}, same}}},
	{"fp32_flops_per_ns", []way{{[]string{"fp32"}, same}}},
}

// Spec makes a device file of what was measured. Some things are not measured: the name, the number of vEUs in an SM,
// and what comes from whole models and from measured rTasks (takeFit). They are taken
// from base. If base is nil, the name follows from the product, an SM is one vEU, and the others are those of the known
// device of the same product or else of the same architecture. driver is the version of the GPU's driver, "" if it is not known.
func Spec(r *Result, base *device.Spec, driver string) (*device.Spec, error) {
	d := &r.Device
	s := &device.Spec{
		Name: shortName(d.Product), Product: d.Product, Arch: d.Arch(), SMs: d.SMs, VEUsPerSM: 1, Threads: d.MaxThreads,
		Shared: d.SharedBytes, SharedPerVEU: d.SharedPerBlock, Registers: d.Registers, L2Bytes: d.L2Bytes,
		Memory: d.MemoryBytes,
	}
	known := fitFor(s.Product, s.Arch)
	like := base
	if base != nil {
		s.Name, s.VEUsPerSM = base.Name, base.VEUsPerSM
	} else {
		like = known
	}
	s.Clusters = clusters(d, s.VEUsPerSM)
	medians := map[string]float64{}
	for i := range r.Measurements {
		medians[r.Measurements[i].Name] = r.Measurements[i].Median()
	}
	for _, f := range figures {
		v, ok := f.value(medians)
		if !ok {
			return nil, fmt.Errorf("%s cannot be told: %s was not measured", f.key,
				strings.Join(f.ways[0].needs, " or "))
		}
		*s.Measured.Field(f.key) = device.ThreeDigits(v)
	}
	if like != nil {
		takeFit(s, like)
	}
	s.Measured.Source = source(r, base, known, driver)
	s.Cost = s.Fitted.Planned(s.Measured)
	return s, nil
}

// takeFit takes over what comes from whole models, and from rTasks that were measured (`calibrate --report`). Among
// these are the latency of an rTask and the bandwidth that one multiprocessor has of L2: rTasks see more of the former,
// and less of the latter, than the loops that calibrate times, whose addresses are known ahead.
func takeFit(s, from *device.Spec) {
	s.Fitted, s.Tensor, s.Kernels, s.InPrograms = from.Fitted, from.Tensor, from.Kernels, from.InPrograms
	s.Slower, s.Programs = from.Slower, from.Programs
	fromModels(&s.Measured, &from.Measured)
	if from.Measured.Latency > 0 && from.Measured.L2PerSM > 0 {
		s.Measured.Latency, s.Measured.L2PerSM = from.Measured.Latency, from.Measured.L2PerSM
	}
}

// fromModels copies the costs that come from whole models.
func fromModels(to, from *device.Cost) {
	to.Cold, to.Publish, to.Beside = from.Cold, from.Publish, from.Beside
}

// fitFor is the known device of that product, or else of that architecture, that has a fit; nil if there is none. A fit
// tells how far steps overlap and what part of a bandwidth one rTask can use, which depends on the architecture above
// all.
func fitFor(product, arch string) *device.Spec {
	var same *device.Spec
	for _, s := range device.All() {
		switch {
		case len(s.Fitted) == 0:
		case s.Product == product:
			return s
		case s.Arch == arch && same == nil:
			same = s
		}
	}
	return same
}

// clusters is how many clusters of each size fit on the device at once. Plans with clusters have one vEU in an SM, so a
// device with more has none.
func clusters(d *Device, veusPerSM int) device.Clusters {
	if veusPerSM != 1 {
		return device.Clusters{}
	}
	of := func(size int) int { return min(d.Clusters[strconv.Itoa(size)], d.SMs/size) }
	return device.Clusters{Of2: of(2), Of4: of(4), Of8: of(8)}
}

func (f *figure) value(medians map[string]float64) (float64, bool) {
	for _, w := range f.ways {
		v := make([]float64, 0, len(w.needs))
		for _, n := range w.needs {
			if m, ok := medians[n]; ok {
				v = append(v, m)
			}
		}
		if len(v) == len(w.needs) {
			return w.value(v), true
		}
	}
	return 0, false
}

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// shortName makes "geforce-rtx-4090" of "NVIDIA GeForce RTX 4090".
func shortName(product string) string {
	name := strings.TrimPrefix(strings.ToLower(product), "nvidia ")
	name = strings.Trim(notInNames.ReplaceAllString(name, "-"), "-")
	if name == "" {
		return "gpu"
	}
	return name
}

// source says where the figures come from. It has no date, so that the same machine gives the same text.
func source(r *Result, base, known *device.Spec, driver string) string {
	d := &r.Device
	var b strings.Builder
	fmt.Fprintf(&b, "measured by rammerc calibrate on one %s (", d.Product)
	if driver != "" {
		fmt.Fprintf(&b, "driver %s, ", driver)
	}
	fmt.Fprintf(&b, "CUDA %d.%d)", d.CUDARuntime/1000, d.CUDARuntime%1000/10)
	runs := 0
	for i := range r.Measurements {
		runs = max(runs, len(r.Measurements[i].Samples))
	}
	fmt.Fprintf(&b, ": medians of %d runs on random data; launch, node and pdl are nodes of a CUDA graph on all SMs", runs)
	if base != nil {
		fmt.Fprintf(&b, "; name, veus_per_sm, fit, and what rTasks see of latency and L2, are those of %s", base.Name)
	} else if known != nil {
		fmt.Fprintf(&b, "; fit, and what rTasks see of latency and L2, is that of %s", known.Name)
	}
	return b.String()
}
