package model

import (
	"testing"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/profiler"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/vdevice/vdevicetest"
)

var _ profiler.Costs = (*Costs)(nil)

// h200 has figures of its own: those of the device file are measured again from time to time.
func h200(t *testing.T) *device.Spec {
	t.Helper()
	s, err := device.Find("h200")
	if err != nil {
		t.Fatal(err)
	}
	c := &s.Cost
	c.Latency, c.L2PerSM, c.L2Total, c.DRAM, c.FlopsPerSM = 800, 45, 5900, 4500, 507
	return s
}

// candidate has an argument that refers to a constant of so many bytes.
func candidate(m *vdevicetest.Maker, tasks, threads int, w roperator.Work, constBytes int64) *roperator.Candidate {
	c := m.Candidate(tasks, 0, nil, nil)
	c.Inst, c.Work = vdevicetest.Instance(threads, 0, 32), w
	if constBytes > 0 {
		ref := m.Buffer(roperator.Const, constBytes/4).Ref()
		c.Args = []rkernels.Field{{Name: "epi", Value: rkernels.Struct{{Name: "op", Value: rkernels.List{ref, ref}}}}}
	}
	m.Op(c)
	return c
}

func TestTaskTime(t *testing.T) {
	spec := h200(t)
	for _, c := range []struct {
		name           string
		tasks, threads int
		w              roperator.Work
		constBytes     int64
		want           float64 // beyond the latency
	}{
		{"nothing", 1, 256, roperator.Work{}, 0, 0},
		{"arithmetic", 132, 256, roperator.Work{Flops: 1e6}, 0, 1e6 / (507 * 0.65)},
		{"operands from shared memory", 132, 256, roperator.Work{Flops: 1e6, SharedBytes: 1e6}, 0, 1e6 / (5 * 45)},
		{"few threads", 132, 32, roperator.Work{Flops: 1e6}, 0, 1e6 / (507 * 0.125)},
		{"one rTask reads at the SM's rate", 1, 1024, roperator.Work{ReadBytes: 45e3}, 0, 1e3},
		{"few threads have little in flight", 1, 32, roperator.Work{ReadBytes: 1024, WriteBytes: 1024}, 0,
			2048 / (32 * 128 / 800.0)},
		{"all share L2", 132, 1024, roperator.Work{WriteBytes: 1e6}, 0, 1e6 / (5900.0 / 132)},
		{"small weights are in L2", 132, 1024, roperator.Work{ConstBytes: 1e6}, 1 << 20, 1e6 / (5900.0 / 132)},
		{"large weights come from DRAM once", 132, 1024, roperator.Work{ConstBytes: 1e6}, 132e6, 1e6 / (4500.0 / 132)},
		{"the larger of both", 132, 256, roperator.Work{Flops: 1e6, ReadBytes: 4}, 0, 1e6 / (507 * 0.65)},
	} {
		m := vdevicetest.New("model")
		cand := candidate(m, c.tasks, c.threads, c.w, c.constBytes)
		got := New(spec, m.G).TaskTime(cand) - spec.Cost.Latency
		if diff := got - c.want; diff > 1e-6*c.want+1e-6 || -diff > 1e-6*c.want+1e-6 {
			t.Errorf("%s: %v ns, want %v", c.name, got, c.want)
		}
	}
}

// The way of streamed weights to shared memory is not the rTask's: with them there it takes less than one
// that fetches them itself.
func TestStreamedWeights(t *testing.T) {
	spec := h200(t)
	m := vdevicetest.New("model")
	own, streamed := m.Candidate(132, 0, nil, nil), m.Candidate(132, 0, nil, nil)
	own.Work = roperator.Work{ConstBytes: 1e6}
	m.Stream(streamed, 1e6, 1000)
	streamed.Work = own.Work
	m.Op(own, streamed)
	costs := New(spec, m.G)
	fetched, taken := costs.TaskTime(own)-spec.Cost.Latency, costs.TaskTime(streamed)-spec.Cost.Latency
	if taken != 1e6/(2*45.0) || fetched < 2*taken {
		t.Errorf("%v ns with the weights there, %v ns without", taken, fetched)
	}
}

// Two vEUs on one SM share it when both are busy.
func TestSharedSM(t *testing.T) {
	spec := h200(t)
	spec.VEUsPerSM = 2
	m := vdevicetest.New("model")
	w := roperator.Work{Flops: 1e6}
	few, many := candidate(m, 132, 256, w, 0), candidate(m, 264, 256, w, 0)
	costs := New(spec, m.G)
	a, b := costs.TaskTime(few)-spec.Cost.Latency, costs.TaskTime(many)-spec.Cost.Latency
	if b < 1.99*a || b > 2.01*a {
		t.Errorf("%v ns alone on the SM, %v ns with another", a, b)
	}
}

// Finished plans are predicted with figures of their own, if the device has any; candidates are compared with the others.
func TestInPrograms(t *testing.T) {
	spec := h200(t)
	m := vdevicetest.New("model")
	c := candidate(m, 132, 256, roperator.Work{Flops: 1e6}, 0)
	name := c.Inst.Kernel.Name
	spec.Kernels, spec.InPrograms = nil, map[string]device.KernelFit{name: {Latency: 5000}}
	costs := New(spec, m.G)
	if a, b := costs.TaskTime(c), costs.InPrograms().TaskTime(c); a == 5000 || b != 5000 {
		t.Errorf("%v to choose by, %v to predict with", a, b)
	}
	spec.Programs.Modelled = map[string]float64{name: 0.6}
	if a, b := costs.TaskTime(c), costs.InPrograms().TaskTime(c); a == 3000 || b != 3000 {
		t.Errorf("with a factor for programs %v to choose by, %v to predict with", a, b)
	}
	spec.Programs.Modelled, spec.InPrograms = nil, nil
	if a, b := costs.TaskTime(c), costs.InPrograms().TaskTime(c); a != b {
		t.Errorf("%v to choose by, %v to predict with, though there is nothing to predict with", a, b)
	}
}
