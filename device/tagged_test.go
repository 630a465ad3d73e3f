package device

import (
	"math"
	"testing"
)

// TestTaggedTime compares the H200's device file with the medians of bench/results/h200-calibrate.json: what it takes
// until all of so many tagged words of other multiprocessors are there.
func TestTaggedTime(t *testing.T) {
	s, err := Find("h200")
	if err != nil {
		t.Fatal(err)
	}
	s.Cost = s.Measured // as measured, before it is fitted to whole models
	for words, ns := range map[int64]float64{1: 412.4, 8: 592.8, 64: 729.2, 256: 1043.7} {
		if got := s.TaggedTime(words); math.Abs(got/ns-1) > 0.18 {
			t.Errorf("%d words: %.0f ns, measured %.0f", words, got, ns)
		}
	}
}
