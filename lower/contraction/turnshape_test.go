package contraction

import (
	"testing"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/lower/target"
	"github.com/rammerc/rammerc/precision"
)

// TestTurns: rTasks have as few tiles as can be, and cover the result. They are wide where L2 holds the rows of all, and
// share rows and columns where it does not.
func TestTurns(t *testing.T) {
	spec, err := device.Find("h200")
	if err != nil {
		t.Fatal(err)
	}
	h200 := target.Of(spec)
	cases := []struct {
		name       string
		p          Turning
		tall, wide int64 // of tiles of 128 columns; 0: there are none
	}{
		{"rows in L2", Turning{Float32s, 100352, 256, 1024, true}, 6, 2},
		{"rows beyond L2", Turning{Float32s, 16384, 3072, 12288, false}, 8, 3},
		{"two tiles of a convolution", Turning{Float32s, 6272, 512, 1024, true}, 1, 2},
		{"two tiles of a product", Turning{Float32s, 6272, 512, 1024, false}, 0, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var tall, wide int64
			for _, s := range c.p.Turns(&h200, precision.TF32) {
				covered := int64(0)
				for task := range s.Tasks(c.p.M, c.p.N) {
					m0, m1, n0, n1 := s.Box(task, c.p.M, c.p.N)
					covered += (m1 - m0) * (n1 - n0)
				}
				if covered != c.p.M*c.p.N {
					t.Errorf("%d×%d tiles of %d columns cover %d of %d results", s.Tall, s.Wide, s.BN, covered, c.p.M*c.p.N)
				}
				if s.Tasks(c.p.M, c.p.N) > h200.VEUs {
					t.Errorf("%d rTasks for %d vEUs", s.Tasks(c.p.M, c.p.N), h200.VEUs)
				}
				if s.BN == 128 {
					tall, wide = s.Tall, s.Wide
				}
			}
			if tall != c.tall || wide != c.wide {
				t.Errorf("an rTask has %d×%d tiles, want %d×%d", tall, wide, c.tall, c.wide)
			}
		})
	}
}
