package schedule

import (
	"syscall"
	"testing"

	"github.com/rammerc/rammerc/profiler/model"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/vdevice"
	"github.com/rammerc/rammerc/vdevice/vdevicetest"
)

// benchmarks have about 100,000 rTasks each.
var benchmarks = []struct {
	name string
	make func() *roperator.Graph
}{
	{"local", func() *roperator.Graph { return vdevicetest.Layers(100, 512, 512, 16, 16, false) }},
	{"dense", func() *roperator.Graph { return vdevicetest.Layers(250, 320, 320, 16, 16, true) }},
	{"fine", func() *roperator.Graph { return vdevicetest.Layers(4, 2560, 2560, 16, 16, false) }},
	{"recurrent", func() *roperator.Graph { return vdevicetest.Recurrent(10, 600, 256, 16) }},
	{"deep", func() *roperator.Graph { return vdevicetest.Layers(6000, 64, 64, 16, 16, false) }},
	{"inception", func() *roperator.Graph { return vdevicetest.Layers(100, 96, 96, 6, 6, true) }},
}

func BenchmarkSchedule(b *testing.B) {
	for _, c := range benchmarks {
		g := c.make()
		spec := deviceOf(b, "h200")
		for _, kind := range PlansFor(spec) {
			b.Run(c.name+"/"+kind, func(b *testing.B) {
				for range b.N {
					if _, err := Schedule(g, spec, model.New(spec, g), Options{Plan: kind}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkVerify(b *testing.B) {
	for _, c := range benchmarks {
		g := c.make()
		spec := deviceOf(b, "h200")
		plan, err := Schedule(g, spec, model.New(spec, g), Options{Plan: PlanRProgram})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(c.name, func(b *testing.B) {
			for range b.N {
				if err := vdevice.Verify(plan); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(plan.Stats().RTasks), "rtasks")
			b.ReportMetric(float64(plan.Stats().Waits), "waits")
		})
	}
}

// BenchmarkScale schedules and verifies programs of a hundred thousand and of a million rTasks, wide ones and deep ones. It
// reports the seconds of processors, which others on the machine do not change, beside those of the clock.
func BenchmarkScale(b *testing.B) {
	spec := deviceOf(b, "h200")
	for _, c := range []struct {
		name string
		make func() *roperator.Graph
	}{
		{"wide/100k", func() *roperator.Graph { return vdevicetest.Layers(100, 512, 512, 16, 16, false) }},
		{"wide/1M", func() *roperator.Graph { return vdevicetest.Layers(1000, 512, 512, 16, 16, false) }},
		{"deep/100k", func() *roperator.Graph { return vdevicetest.Layers(6000, 64, 64, 16, 16, false) }},
		{"deep/1M", func() *roperator.Graph { return vdevicetest.Layers(60_000, 64, 64, 16, 16, false) }},
	} {
		for _, kind := range []string{PlanRProgram, PlanWaves, PlanMixed, PlanCriticalPath} {
			b.Run(c.name+"/"+kind, func(b *testing.B) {
				g := c.make()
				b.ReportAllocs()
				before := processorSeconds(b)
				for b.Loop() {
					if err := vdevice.Verify(mustSchedule(b, g, spec, Options{Plan: kind})); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric((processorSeconds(b)-before)/float64(b.N), "cpu-s/op")
			})
		}
	}
}

// processorSeconds is how long this process has computed, on all processors.
func processorSeconds(b *testing.B) float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}
