package vdevice

import (
	"testing"

	"github.com/rammerc/rammerc/schema"
)

// TestStagesFit: the stages of a ring have room beside everything else that a block needs, one more has not, and a stage
// holds a step of its weights.
func TestStagesFit(t *testing.T) {
	for _, n := range []Needs{{}, {Shared: 1000}, {Shared: 40 << 10, Imports: 300}, {SlotWords: 64, KeptWords: 32}} {
		for _, step := range []int{16, 100, 1 << 10, 5000} {
			stage := leastStage(step)
			if stage < step || stage%schema.SharedAlign != 0 || stage >= step+schema.SharedAlign {
				t.Errorf("a step of %d bytes has a stage of %d", step, stage)
			}
			const shared = 96 << 10
			count := n.stages(shared, stage)
			rest := shared - n.SharedBytes() - schema.ExecutorShared - count*(stage+schema.StageBarrierBytes)
			if rest < 0 || rest >= stage+schema.StageBarrierBytes {
				t.Errorf("%+v with %d stages of %d bytes leave %d bytes", n, count, stage, rest)
			}
		}
	}
}
