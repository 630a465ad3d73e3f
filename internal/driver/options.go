package driver

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/schedule"
)

// What compilation produces.
const (
	EmitSources = "cu"  // sources, header and weights
	EmitLibrary = "lib" // header, weights and the built library
	EmitAll     = "all" // both; sources alone where the compiler is missing
)

// How the program is printed.
const (
	StyleTable    = "table"    // tables only
	StyleUnrolled = "unrolled" // each vEU's steps as straight-line code too (Rammer, Figure 9)
)

// targetDevices is the device that stands for an architecture when --device names none.
var targetDevices = map[string]string{
	"sm_70": "v100", "sm_80": "a100", "sm_89": "rtx4090", "sm_90": "h200", TargetEmu: "emu4",
}

// TargetEmu is the CPU emulator as a target.
const TargetEmu = "emu"

// Valid values of flags, for messages and completion; the first is the default where there is one.

// Targets lists the architectures.
func Targets() []string { return sortedNames(targetDevices) }

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

// Styles lists how the program can be printed.
func Styles() []string { return []string{StyleTable, StyleUnrolled} }

// Engines lists what can carry out a model.
func Engines() []string { return []string{EngineEval, EngineEmu, EngineGPU} }

// choice adds a problem unless value is empty or one of known.
func choice(l *diag.List, flag, value string, known []string) {
	if value != "" && !slices.Contains(known, value) {
		l.Add(usage("bad-flag", "--%s %q: want one of %s", flag, value, strings.Join(known, ", ")))
	}
}

// validate reports every flag that makes no sense, before any work is done.
func (o *CompileOptions) validate() error {
	var l diag.List
	o.problems(&l)
	return l.Err()
}

func (o *CompileOptions) problems(l *diag.List) {
	choice(l, "target", o.Target, Targets())
	if !isPlanText(o.Plan) {
		choice(l, "plan", o.Plan, Plans())
	}
	choice(l, "policy", o.Policy, PolicyNames())
	choice(l, "emit", o.Emit, Emits())
	choice(l, "emit-style", o.Style, Styles())
	if o.Code && o.Emit == EmitSources {
		l.Add(usage("bad-flag", "--code measures the built library, and --emit %s makes none", o.Emit))
	}
	if o.Tries < 0 {
		l.Add(usage("bad-flag", "--tries %d: want a number of plans, not below 0", o.Tries))
	}
	if o.Verify && o.Emit == EmitSources {
		l.Add(usage("bad-flag", "--verify runs the library, and --emit %s makes none", o.Emit))
	}
	if o.Device != "" {
		if s, err := device.Find(o.Device); err != nil {
			for _, d := range diag.All(err) {
				l.Add(d)
			}
		} else if o.Target != "" && s.Arch != o.Target {
			l.Add(usage("bad-flag", "--device %s is of %s, --target is %s", o.Device, s.Arch, o.Target))
		}
	}
	_, err := o.onnxOptions(true)
	for _, d := range diag.All(err) {
		l.Add(d)
	}
}

// validate reports every flag of `run` and `verify` that makes no sense.
func (o *SubjectOptions) validate() error {
	var l diag.List
	choice(&l, "engine", o.Engine, Engines())
	o.problems(&l)
	emulated := o.Target == "" || o.Target == TargetEmu
	if o.Sanitize && (o.Engine != "" && o.Engine != EngineEmu || !emulated) {
		l.Add(usage("bad-flag", "--tsan builds for the emulator; it goes with --engine emu"))
	}
	if o.Engine == EngineEmu && !emulated {
		l.Add(usage("bad-flag", "--engine emu runs what is built for the emulator, --target is %s", o.Target))
	}
	if o.Engine == EngineGPU && o.Target == TargetEmu {
		l.Add(usage("bad-flag", "--engine gpu runs what is built for a GPU, --target is emu"))
	}
	if o.Waves && o.Engine == EngineEval {
		l.Add(usage("bad-flag", "--waves says how a library is launched; --engine eval launches none"))
	}
	if o.Delays != 0 && o.Engine == EngineEval {
		l.Add(usage("bad-flag", "--delays are of a library's vEUs; --engine eval has none"))
	}
	return l.Err()
}

// name is the symbol prefix: --name, or the model's file name.
func (o *CompileOptions) name() string {
	if o.Name != "" {
		return o.Name
	}
	return strings.TrimSuffix(filepath.Base(o.Path), filepath.Ext(o.Path))
}

// spec finds the device to schedule for: --device, or the known one of the target's architecture.
func (o *CompileOptions) spec(ui *UI) (*device.Spec, error) {
	if o.Device != "" {
		return device.Find(o.Device)
	}
	target := o.Target
	if target == "" {
		target = defaultTarget(ui, o.Offline)
	}
	name, ok := targetDevices[target]
	if !ok {
		panic(fmt.Sprintf("BUG: no device stands for target %q", target))
	}
	return device.Find(name)
}
