package driver

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/schedule"
)

// CompileOptions are the flags of `rammerc compile`.
type CompileOptions struct {
	ModelOptions
	Out      string // library directory
	Name     string // symbol prefix; default: the model's file name
	Target   string // sm_90, …, emu; default: emu without nvcc, else the device's
	Device   string // device name or file; default: by target
	Plan     string // auto, rprogram, waves
	Policy   string
	Emit     string      // EmitAll, EmitSources, EmitLibrary
	Tries    int         // most plans to build and time with PlanAuto and a GPU; below 2 the model decides
	Offline  bool        // no GPU is asked
	Verify   bool        // run the result against ir/eval before saying success
	Check    bool        // verifiers between all stages
	Seed     uint64      // shuffles node order under Check
	Dump     string      // directory for every stage's text form
	Debug    bool        // build with the watchdog
	Code     bool        // tell the machine code of each rKernel instance
	Trace    bool        // build so that every vEU records what it does
	Sanitize bool        // build the emulated library with ThreadSanitizer
	lab      *laboratory // times plans instead of the GPU at hand; for tests
	Command  []string    // command line, kept in the dump
}

// What compilation produces.
const (
	EmitSources = "cu"  // sources, header and weights
	EmitLibrary = "lib" // header, weights and the built library
	EmitAll     = "all" // both; sources alone where the compiler is missing
)

// targetDevices is the device that stands for an architecture when --device names none.
var targetDevices = map[string]string{
	"sm_70": "v100", "sm_80": "a100", "sm_89": "rtx4090", "sm_90": "h200", TargetEmu: "emu4",
}

// TargetEmu is the CPU emulator as a target.
const TargetEmu = "emu"

// Valid values of flags, for messages and completion; the first is the default where there is one.

// Targets lists the architectures.
func Targets() []string { return slices.Sorted(maps.Keys(targetDevices)) }

// DeviceNames lists the built-in devices.
func DeviceNames() []string {
	var out []string
	for _, s := range device.All() {
		out = append(out, s.Name)
	}
	return out
}

// PolicyNames lists the scheduling policies.
func PolicyNames() []string {
	var out []string
	for _, p := range schedule.Policies() {
		out = append(out, p.Name)
	}
	return out
}

// Plans lists the kinds of plan.
func Plans() []string { return schedule.Plans() }

// PlanDoc says what a kind of plan is.
func PlanDoc(name string) string { return schedule.PlanDoc(name) }

// Emits lists what compilation can produce.
func Emits() []string { return []string{EmitAll, EmitSources, EmitLibrary} }

// Choice adds a problem unless value is empty or one of known.
func Choice(l *diag.List, flag, value string, known []string) {
	if value != "" && !slices.Contains(known, value) {
		l.Add(diag.New("bad-flag", "--%s %q: want one of %s", flag, value, strings.Join(known, ", ")))
	}
}

// Validate reports every flag that makes no sense, before any work is done.
func (o *CompileOptions) Validate() error {
	var l diag.List
	o.Problems(&l)
	return l.Err()
}

// Problems adds everything that makes no sense in the flags.
func (o *CompileOptions) Problems(l *diag.List) {
	Choice(l, "target", o.Target, Targets())
	if !IsPlanText(o.Plan) {
		Choice(l, "plan", o.Plan, Plans())
	}
	Choice(l, "policy", o.Policy, PolicyNames())
	Choice(l, "emit", o.Emit, Emits())
	if o.Code && o.Emit == EmitSources {
		l.Add(diag.New("bad-flag", "--code measures the built library, and --emit %s makes none", o.Emit))
	}
	if o.Tries < 0 {
		l.Add(diag.New("bad-flag", "--tries %d: want a number of plans, not below 0", o.Tries))
	}
	if o.Verify && o.Emit == EmitSources {
		l.Add(diag.New("bad-flag", "--verify runs the library, and --emit %s makes none", o.Emit))
	}
	if o.Device != "" {
		if s, err := device.Find(o.Device); err != nil {
			for _, d := range diag.All(err) {
				l.Add(d)
			}
		} else if o.Target != "" && s.Arch != o.Target {
			l.Add(diag.New("bad-flag", "--device %s is of %s, --target is %s", o.Device, s.Arch, o.Target))
		}
	}
	_, err := o.onnxOptions(true)
	for _, d := range diag.All(err) {
		l.Add(d)
	}
}

// name is the symbol prefix: --name, or the model's file name.
func (o *CompileOptions) name() string {
	if o.Name != "" {
		return o.Name
	}
	return strings.TrimSuffix(filepath.Base(o.Path), filepath.Ext(o.Path))
}

// Spec finds the device to schedule for: --device, or the known one of the target's architecture.
func (o *CompileOptions) Spec(job *Job) (*device.Spec, error) {
	if o.Device != "" {
		return device.Find(o.Device)
	}
	target := o.Target
	if target == "" {
		target = defaultTarget(job, o.Offline)
	}
	name, ok := targetDevices[target]
	if !ok {
		panic(fmt.Sprintf("BUG: no device stands for target %q", target))
	}
	return device.Find(name)
}
