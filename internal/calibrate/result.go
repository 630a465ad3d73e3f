package calibrate

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
)

// Device is what the CUDA run time says about the GPU.
type Device struct {
	Product        string         `json:"product"` // "NVIDIA H200"
	Major          int            `json:"major"`   // of the compute capability
	Minor          int            `json:"minor"`
	SMs            int            `json:"sms"`
	MaxThreads     int            `json:"max_threads"`      // of a block
	SharedBytes    int            `json:"shared_bytes"`     // of an SM
	SharedPerBlock int            `json:"shared_per_block"` // the most that a block may ask for
	Registers      int            `json:"registers"`        // registers of 32 bits in an SM
	L2Bytes        int64          `json:"l2_bytes"`
	MemoryBytes    int64          `json:"memory_bytes"`
	ClockKHz       int            `json:"clock_khz"`    // the highest clock of the SMs
	CUDADriver     int            `json:"cuda_driver"`  // the newest version that the driver supports; 13000 is 13.0
	CUDARuntime    int            `json:"cuda_runtime"` // the CUDA version that the program was compiled with
	Clusters       map[string]int `json:"clusters"`     // cluster size to the number of such clusters that fit at once
}

// Measurement is one row of the program's table (cuda/calibrate.cu) and what it gave.
type Measurement struct {
	Name    string    `json:"name"`
	Unit    string    `json:"unit"` // "ns", "B/ns" or "flop/ns"
	Samples []float64 `json:"samples"`
}

// Result is everything that the program printed.
type Result struct {
	Device       Device        `json:"device"`
	Measurements []Measurement `json:"measurements"`
}

// Parse reads what the program prints, which is one JSON object a line: first the device and the number of
// measurements, then each measurement. It calls progress, unless that is nil, after each measurement.
func Parse(r io.Reader, progress func(done, total int)) (*Result, error) {
	dec := json.NewDecoder(r)
	var head struct {
		Device       *Device `json:"device"`
		Measurements int     `json:"measurements"`
	}
	if err := dec.Decode(&head); err != nil || head.Device == nil {
		return nil, fmt.Errorf("the measuring program's output does not begin with the device (%v)", err)
	}
	out := &Result{Device: *head.Device}
	seen := map[string]bool{}
	for n := range head.Measurements {
		var m Measurement
		if err := dec.Decode(&m); err != nil {
			return nil, fmt.Errorf("measurement %d of %d: %v", n+1, head.Measurements, err)
		}
		if err := m.check(); err != nil {
			return nil, err
		}
		if seen[m.Name] {
			return nil, fmt.Errorf("measurement %s came twice", m.Name)
		}
		seen[m.Name] = true
		out.Measurements = append(out.Measurements, m)
		if progress != nil {
			progress(n+1, head.Measurements)
		}
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, fmt.Errorf("the measuring program printed more than %d measurements", head.Measurements)
	}
	return out, nil
}

func (m *Measurement) check() error {
	if m.Name == "" || len(m.Samples) == 0 {
		return fmt.Errorf("measurement %q has no samples", m.Name)
	}
	for _, v := range m.Samples {
		if !(v > 0) || math.IsInf(v, 1) {
			return fmt.Errorf("measurement %s has a sample of %v %s", m.Name, v, m.Unit)
		}
	}
	return nil
}

// Quantile is the value below which the share q of the samples lies, 0 ≤ q ≤ 1. Between two samples it is interpolated.
func (m *Measurement) Quantile(q float64) float64 {
	s := slices.Sorted(slices.Values(m.Samples))
	at := q * float64(len(s)-1)
	low := int(at)
	if low+1 >= len(s) {
		return s[len(s)-1]
	}
	return s[low] + (at-float64(low))*(s[low+1]-s[low])
}

// Median is the sample in the middle, which device files are made of.
func (m *Measurement) Median() float64 { return m.Quantile(0.5) }

// Arch is the GPU's architecture, "sm_90".
func (d *Device) Arch() string { return fmt.Sprintf("sm_%d%d", d.Major, d.Minor) }
