// Package device describes the devices that programs are planned for: what they have, and what things take on them.
// A description is a YAML file; those of known devices are built in.
package device

import (
	"maps"
	"math"
	"slices"
)

// Spec describes a device as the scheduler sees it. It is read from a YAML device file; `rammerc
// calibrate` writes one for the GPU at hand.
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

	Clusters Clusters `yaml:"clusters,omitempty"` // optional: none

	// Tensor is what the tensor cores of one SM reach at most, in operations a nanosecond, by type of operand:
	// see TensorTypes. It is optional; operands that a device cannot multiply so are not there.
	Tensor map[string]float64 `yaml:"tensor_flops_per_ns,omitempty"`

	// Kernels is how rTasks of an rKernel differ from what their work says, by the rKernel's name. It is optional, and
	// fitted to measured rTasks (`rammerc calibrate --report`).
	Kernels map[string]KernelFit `yaml:"rkernels,omitempty"`

	// InPrograms is likewise fitted to rTasks in whole programs (`rammerc calibrate --profiles`). Finished plans are
	// predicted with it, while Kernels decides between candidates: the figures with which plans come out best are not
	// those that are nearest to the times of what was chosen. It is optional; without it plans are predicted with Kernels.
	InPrograms map[string]KernelFit `yaml:"rkernels_in_programs,omitempty"`

	// Slower says how many times as long an rTask of an rKernel takes in a program as by itself: in a program its code and
	// operands come from elsewhere, and blocks of the launches before and after are on its multiprocessor. Measured costs
	// are multiplied with it. It is optional: measured costs count as they are.
	Slower map[string]float64 `yaml:"slower_in_programs,omitempty"`

	// Programs makes of predicted rTasks what they add to whole programs that were timed (`rammerc calibrate --programs`).
	// It is optional: without it predictions are sums of rTasks, launches and waits.
	Programs ProgramFit `yaml:"programs,omitempty"`

	Fitted Fit `yaml:"fit,omitempty"` // optional: all are 1

	// Cost is what plans are made with: Measured, which is what a device file has under cost, times Fitted.
	Cost     Cost `yaml:"cost"`
	Measured Cost `yaml:"-"`

	Crowded int `yaml:"-"` // how many blocks of a launch share what is a vEU in an rProgram; 0 is 1
}

// KernelFit says what an rTask of an rKernel takes: Latency, in nanoseconds, and what is not hidden of the times that its
// arithmetic, its operands from shared memory and its traffic take at the rates of the device. 1 is all of such a time;
// more is that of code which reaches less than the device's rate.
type KernelFit struct {
	Latency    float64 `yaml:"latency_ns"`
	Arithmetic float64 `yaml:"arithmetic"`
	Shared     float64 `yaml:"shared"`
	Traffic    float64 `yaml:"traffic"`
}

// ProgramFit has factors by rKernel: for times that are modelled with InPrograms, and for those that were measured of
// rTasks by themselves. Slower decides which of these candidates is chosen; what is chosen is predicted with Measured.
type ProgramFit struct {
	Modelled map[string]float64 `yaml:"modelled,omitempty"`
	Measured map[string]float64 `yaml:"measured,omitempty"`
}

// MeasuredInPrograms is the entry of Programs.Measured for an rKernel, or the median of all for one that has none. Without
// any it is that of Slower.
func (s *Spec) MeasuredInPrograms(kernel string) float64 {
	if len(s.Programs.Measured) == 0 {
		return s.SlowerInPrograms(kernel)
	}
	if f, ok := s.Programs.Measured[kernel]; ok {
		return f
	}
	return medianOf(s.Programs.Measured)
}

func medianOf(factors map[string]float64) float64 {
	all := slices.Sorted(maps.Values(factors))
	return all[len(all)/2]
}

// SlowerInPrograms is the entry of Slower for an rKernel, or the median of all for one that has none.
func (s *Spec) SlowerInPrograms(kernel string) float64 {
	if f, ok := s.Slower[kernel]; ok || len(s.Slower) == 0 {
		return max(f, 1)
	}
	return medianOf(s.Slower)
}

// TensorTypes are the operands that device files know tensor cores to take. tf32 is float32 of which the instructions
// read 19 bits.
func TensorTypes() []string {
	return []string{"float64", "tf32", "float16", "bfloat16", "float8", "int8", "int4"}
}

// Clusters says how many clusters of so many vEUs are on the device at once, when a vEU is an SM and takes
// nearly all of its shared memory.
type Clusters struct {
	Of2 int `yaml:"of_2,omitempty"`
	Of4 int `yaml:"of_4,omitempty"`
	Of8 int `yaml:"of_8,omitempty"`
}

// ClusterSizes are the sizes of clusters that programs can have.
func ClusterSizes() []int { return []int{2, 4, 8} }

// Of is how many clusters of the given size there are.
func (c Clusters) Of(size int) int {
	switch size {
	case 2:
		return c.Of2
	case 4:
		return c.Of4
	case 8:
		return c.Of8
	}
	return 0
}

// Cost holds what things take on the device; times in nanoseconds, bandwidths in bytes per nanosecond.
//
// Four costs are of launches, each from the end of what ran before to the first step: an rProgram is a cooperative
// launch, which needs the whole device; a node of a graph waits for the nodes it depends on; with programmatic
// dependent launch its blocks are there before and wait on the device; and a launch is cold if an rProgram or nothing
// ran before. The others are of edges and steps inside a launch. Of those marked optional a device file may be silent:
// they follow from others then, see costDefaults.
type Cost struct {
	Launch float64 `yaml:"launch_ns"` // of an rProgram: a cooperative, persistent launch
	Node   float64 `yaml:"node_ns"`   // optional: of a dependent graph node
	PDL    float64 `yaml:"pdl_ns"`    // optional: of a dependent node with programmatic dependent launch
	// Optional: of an ordinary launch after an rProgram, or of the first.
	Cold     float64 `yaml:"cold_launch_ns,omitempty"`
	Hop      float64 `yaml:"hop_ns"`       // flag written on one SM and seen on another
	WaitEach float64 `yaml:"wait_each_ns"` // more for each further flag waited for
	Barrier  float64 `yaml:"barrier_ns"`   // optional: of all vEUs, from the last arrival to the last departure
	Counter  float64 `yaml:"counter_ns"`   // optional: last addition to a counter to seen by a waiter, all vEUs adding
	Tagged   float64 `yaml:"tagged_ns"`    // optional: tagged word written to payload in the reader's shared memory
	// Optional: what n tagged words take more than one, divided by √n - 1. They come from many vEUs, and the last counts.
	TaggedRoot float64 `yaml:"tagged_root_ns,omitempty"`
	Cluster    float64 `yaml:"cluster_ns"` // optional: as tagged_ns, through distributed shared memory
	Step       float64 `yaml:"step_ns"`    // dispatch of one step
	// Optional: the part of the time in which an rTask keeps its SM's arithmetic or memory busy that it adds to the time
	// of each other rTask on that SM.
	Beside float64 `yaml:"beside_share,omitempty"`
	// Optional: in an rProgram, what a step adds that sets its flag or a counter.
	Publish    float64 `yaml:"publish_ns,omitempty"`
	Latency    float64 `yaml:"latency_ns"`            // an rTask's first load and last store, which nothing hides
	L2PerSM    float64 `yaml:"l2_bytes_per_ns"`       // one SM reading from L2
	L2Total    float64 `yaml:"l2_total_bytes_per_ns"` // the whole device
	DRAM       float64 `yaml:"dram_bytes_per_ns"`     // the whole device
	FlopsPerSM float64 `yaml:"fp32_flops_per_ns"`     // one SM, fp32
	Source     string  `yaml:"source"`                // where the figures come from
}

// costDefault says what an optional cost is where the device file has none.
type costDefault struct {
	key   string
	at    func(*Cost) *float64
	value func(*Cost) float64
}

// costDefaults come in the order in which they are filled in. Device files once had one launch_ns for
// launches of all kinds, and keep that meaning; the edges are in the proportion to a hop that was
// measured on an H200.
var costDefaults = []costDefault{
	{"node_ns", func(c *Cost) *float64 { return &c.Node }, func(c *Cost) float64 { return c.Launch }},
	{"pdl_ns", func(c *Cost) *float64 { return &c.PDL }, func(c *Cost) float64 { return c.Node }},
	{"cold_launch_ns", func(c *Cost) *float64 { return &c.Cold }, func(c *Cost) float64 { return 0 }}, // as others
	{"publish_ns", func(c *Cost) *float64 { return &c.Publish }, func(*Cost) float64 { return 0 }},
	{"beside_share", func(c *Cost) *float64 { return &c.Beside }, func(*Cost) float64 { return 0 }}, // as 1
	{"barrier_ns", func(c *Cost) *float64 { return &c.Barrier }, func(c *Cost) float64 { return 1.6 * c.Hop }},
	{"counter_ns", func(c *Cost) *float64 { return &c.Counter }, func(c *Cost) float64 { return 1.6 * c.Hop }},
	{"tagged_ns", func(c *Cost) *float64 { return &c.Tagged }, func(c *Cost) float64 { return 0.6 * c.Hop }},
	{"tagged_root_ns", func(c *Cost) *float64 { return &c.TaggedRoot }, func(*Cost) float64 { return 0 }}, // all at once
	{"cluster_ns", func(c *Cost) *float64 { return &c.Cluster }, func(c *Cost) float64 { return 0.6 * c.Hop }},
}

// OptionalCosts lists the keys of Cost that a device file may lack.
func OptionalCosts() []string {
	var keys []string
	for _, d := range costDefaults {
		keys = append(keys, d.key)
	}
	return keys
}

// MaxRegisters is the most registers a thread can address on the GPUs rammerc knows.
const MaxRegisters = 255

// VEUs is the number of vEUs of the device.
func (s *Spec) VEUs() int { return s.SMs * s.VEUsPerSM }

// RegisterBound is how many registers a thread may have when every vEU has the given threads and all
// vEUs of an SM are resident at once.
func (s *Spec) RegisterBound(threads int) int { return s.RegisterBoundOf(threads, s.VEUsPerSM) }

// RegisterBoundOf is RegisterBound for any number of thread blocks on an SM. The registers of an SM are in four
// partitions, each warp belongs to one of them, and a warp gets its registers in multiples of eight a thread.
func (s *Spec) RegisterBoundOf(threads, blocks int) int {
	if threads <= 0 {
		return MaxRegisters
	}
	const parts, warp = 4, 32
	warps := (threads + warp - 1) / warp * blocks
	return min(s.Registers/(((warps+parts-1)/parts)*parts*warp)/8*8, MaxRegisters)
}

// SharedBound is how much shared memory a vEU may have with all vEUs of an SM resident at once.
func (s *Spec) SharedBound() int { return min(s.SharedPerVEU, s.Shared/s.VEUsPerSM) }

// Sharing is how many of so many blocks that run at once share a multiprocessor.
func (s *Spec) Sharing(blocks int) int { return max(1, (blocks+s.SMs-1)/s.SMs) }

// Together is Sharing, counted in the vEUs of an rProgram.
func (s *Spec) Together(blocks int) int {
	return max(1, s.Sharing(blocks)*max(1, s.Crowded)/max(1, s.VEUsPerSM))
}

// Crowd returns a description of the device for launches of ordinary thread blocks, so many of which may share what is
// a vEU in an rProgram. Each block is a vEU then.
func (s *Spec) Crowd(blocks int) *Spec {
	c := *s
	c.VEUsPerSM *= blocks
	c.Crowded = max(1, s.Crowded) * blocks
	return &c
}

// StartTime is when a vEU that is free at free can start a step that polls n flags or counters, the
// last of which is set at set. Flags that were set long ago cost a round trip too, half a hop.
func (s *Spec) StartTime(free, set float64, n int) float64 {
	if n == 0 {
		return free
	}
	return max(free+s.Cost.Hop/2, set+s.Cost.Hop) + float64(n-1)*s.Cost.WaitEach
}

// TaggedTime is how long it takes until an rTask has all of so many tagged words, from when their writers store them;
// ClusterTime is likewise of words that come through distributed shared memory.
func (s *Spec) TaggedTime(words int64) float64  { return s.Cost.Tagged + s.lastOf(words) }
func (s *Spec) ClusterTime(words int64) float64 { return s.Cost.Cluster + s.lastOf(words) }

// lastOf is how much later than the first the last of so many words comes.
func (s *Spec) lastOf(words int64) float64 {
	return s.Cost.TaggedRoot * max(0, math.Sqrt(float64(words))-1)
}

// AddTime is how much later than a step's flag a counter that n steps add to is set. Additions to one
// counter queue up: Cost.Counter was measured with all vEUs adding at once.
func (s *Spec) AddTime(n int) float64 {
	return max(0, s.Cost.Counter-s.Cost.Hop) * float64(n) / float64(s.VEUs())
}

// SharedBeside is how many bytes of shared memory each of so many thread blocks on one SM may take. The system
// reserves some bytes for each of them.
func (s *Spec) SharedBeside(blocks int) int {
	return min(s.SharedPerVEU, s.Shared/blocks-max(0, s.Shared-s.SharedPerVEU))
}

// LaunchesOverlap reports whether the device has programmatic dependent launch.
func (s *Spec) LaunchesOverlap() bool { return s.Cost.PDL < s.Cost.Node }

// arithmeticShare is the part of an SM's peak that hand-written fp32 kernels reach, by the threads of an rTask: few
// warps cannot hide the latency of their own instructions.
var arithmeticShare = []struct {
	threads int
	share   float64
}{{512, 0.75}, {256, 0.65}, {128, 0.45}, {64, 0.25}, {0, 0.125}}

// FlopsRate is how many fp32 operations a nanosecond one SM reaches with rTasks of the given number of threads.
func (s *Spec) FlopsRate(threads int) float64 {
	for _, a := range arithmeticShare {
		if threads >= a.threads {
			return s.Cost.FlopsPerSM * a.share
		}
	}
	panic("BUG: an rTask has a negative number of threads")
}

// tensorShare is the part of the tensor cores' peak by which plans count: rTasks of 256 threads that multiply with
// mma.sync stay below the peak, which on Hopper is that of wgmma. It is an estimate that no calibration measures.
const tensorShare = 0.32

// TensorRate is how many operations a nanosecond one SM reaches on its tensor cores with operands of the given type, one
// of TensorTypes; 0 where there are no such instructions.
func (s *Spec) TensorRate(operands string) float64 { return s.Tensor[operands] * tensorShare }

// sharedOverL2 is how much more an SM reads of shared memory, 128 bytes a cycle, than of L2.
const sharedOverL2 = 5

// SharedRate is how many bytes a nanosecond one SM reads of shared memory.
func (s *Spec) SharedRate() float64 { return sharedOverL2 * s.Cost.L2PerSM }

// l2Share is how much of L2 weights can keep from one inference to the next, beside what the program
// produces.
const l2Share = 0.8

// loadOverL2 is how much more a loader brings of L2 than the threads of an SM do, since its copies are in bulk: on an
// H200 128 rTasks that stream 590 KB each take 11.9 µs with their launch (bench/results/h200-changes.json, short chains).
const loadOverL2 = 1.4

// LoadRate is how many bytes of weights a nanosecond the loader of one vEU brings while so many of them are active,
// from weights that are so many bytes in all: those that do not fit L2 come from DRAM.
func (s *Spec) LoadRate(active int, weights int64) float64 {
	n := float64(max(1, active))
	rate := min(loadOverL2*s.Cost.L2PerSM/max(1, n/float64(s.SMs)), s.Cost.L2Total/n)
	if float64(weights) > l2Share*float64(s.L2Bytes) {
		rate = min(rate, s.Cost.DRAM/n)
	}
	return rate
}
