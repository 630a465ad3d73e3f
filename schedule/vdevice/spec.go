package vdevice

// Spec describes a device as the scheduler sees it. It is read from a YAML device file; `rammerc
// calibrate` will write one for the GPU at hand.
type Spec struct {
	Name         string `yaml:"name"`    // "h200"
	Product      string `yaml:"product"` // "NVIDIA H200"
	Arch         string `yaml:"arch"`    // "sm_90", or "emu"
	SMs          int    `yaml:"sms"`
	VEUsPerSM    int    `yaml:"veus_per_sm"`
	Threads      int    `yaml:"max_threads"`    // per vEU
	Shared       int    `yaml:"shared_bytes"`   // per SM, usable by its vEUs together
	SharedPerVEU int    `yaml:"shared_per_veu"` // most one vEU may ask for
	Registers    int    `yaml:"registers"`      // per SM
	L2Bytes      int64  `yaml:"l2_bytes"`
	Memory       int64  `yaml:"memory_bytes"`

	Cost Cost `yaml:"cost"`
}

// Cost holds what things take on the device; times in nanoseconds, bandwidths in bytes per nanosecond.
type Cost struct {
	Launch     float64 `yaml:"launch_ns"`       // a dependent kernel launch
	Hop        float64 `yaml:"hop_ns"`          // flag written on one SM and seen on another
	WaitEach   float64 `yaml:"wait_each_ns"`    // more for each further flag waited for
	Step       float64 `yaml:"step_ns"`         // dispatch of one step
	Latency    float64 `yaml:"latency_ns"`      // an rTask's first load and last store, which nothing hides
	L2PerSM    float64 `yaml:"l2_bytes_per_ns"` // one SM reading from L2
	L2Total    float64 `yaml:"l2_total_bytes_per_ns"`
	DRAM       float64 `yaml:"dram_bytes_per_ns"` // the whole device
	FlopsPerSM float64 `yaml:"fp32_flops_per_ns"` // one SM, fp32
	Source     string  `yaml:"source"`            // where the figures come from
}

// MaxRegisters is the most registers a thread can address on the GPUs rammerc knows.
const MaxRegisters = 255

// VEUs is the number of vEUs of the device.
func (s *Spec) VEUs() int { return s.SMs * s.VEUsPerSM }

// RegisterBound is how many registers a thread may have when every vEU has the given threads and all
// vEUs of an SM are resident at once. Registers are handed out in eights.
func (s *Spec) RegisterBound(threads int) int {
	if threads <= 0 {
		return MaxRegisters
	}
	return min(s.Registers/(threads*s.VEUsPerSM)/8*8, MaxRegisters)
}

// SharedBound is how much shared memory a vEU may have with all vEUs of an SM resident at once.
func (s *Spec) SharedBound() int { return min(s.SharedPerVEU, s.Shared/s.VEUsPerSM) }

// StartTime is when a vEU that is free at free can start a step that polls n flags of other vEUs, the
// last of which is set at set. Flags that were set long ago cost a round trip too, half a hop.
func (s *Spec) StartTime(free, set float64, n int) float64 {
	if n == 0 {
		return free
	}
	return max(free+s.Cost.Hop/2, set+s.Cost.Hop) + float64(n-1)*s.Cost.WaitEach
}
