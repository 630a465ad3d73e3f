package driver

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rammerc/rammerc/codegen/abi"
	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/graphopt"
	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/ir/axes"
	"github.com/rammerc/rammerc/precision"
	"github.com/rammerc/rammerc/schedule"
)

// CompileOptions are the flags of `rammerc compile`.
type CompileOptions struct {
	ModelOptions
	Out     string // library directory
	Name    string // prefix of symbols and files; "" for the model's file name
	Target  string // of Targets; "" for the device's, or else what is at hand (defaultTarget)
	Device  string // name or file of the device to schedule for; "" for the one that stands for the target
	Plan    string // of Plans, or a file with a plan's text form (IsPlanText)
	Policy  string // of PolicyNames
	Emit    string // of Emits
	Offline bool   // no GPU is looked for

	found *axes.Found // what a run finds; nil: operators that find elements stay as they are

	Precision   string           // of package precision; "" for the default
	PrecisionOf []precision.Rule // of nodes that are to have another one
	// ErrorBudget, if it is not 0, chooses the precisions: the fastest with which no output is off by more, as relative
	// L2 error on the data of Calibrate.
	ErrorBudget float64
	Calibrate   []string // files or a folder; see calibrationData
	Weights     string   // of Weights: how the weights of products of few rows are stored; "" for as they are
	// Typical are extents that runs are likely to have, as NAME=32,128 of dims with ranges: special programs are made for
	// them. SampledSpecials alone leaves the choice to the compiler, and with GeneralAlone or nothing there are none.
	Typical []string

	// States are inputs that have the value of an output of the run before, as INPUT=OUTPUT; NamedStates alone asks for
	// those that have the usual names. The library keeps them.
	States []string

	// Generate, of Searches or beam=N, makes a library whose one run produces a whole answer of a decoder. Such a library
	// keeps the decoder's caches. EndTokens end an answer, and no row has more tokens than MaxTokens.
	Generate  string
	EndTokens []int64
	MaxTokens int64
	// generation is what Generate asks for, for the model at hand; nil without it.
	generation *graphopt.Generation
	// promptTokens is the symbol of how many tokens the decoder takes at once; "" if it takes one.
	promptTokens string

	Tries  int  // how many plans are built and timed at most; below 2 the cost model decides
	Verify bool // compare the result with the evaluator before reporting success
	// Inputs are what Verify runs on: NAME=FILE, where a file may hold many samples. Those that are not given are drawn;
	// integers of which the model says nothing lie in [0, RandomMax), or are 0 and 1 if that is 0.
	Inputs    []string
	RandomMax int64
	Check     bool   // run the verifiers between all stages, and shuffle the order of nodes
	Seed      uint64 // of that shuffling
	Debug     bool   // build with the watchdog, which reports waits that never end
	Code      bool   // report how much machine code each rKernel instance is
	Trace     bool   // build so that every vEU records what it does
	Sanitize  bool   // build the emulated library with ThreadSanitizer

	Dump    string // directory for every stage's text form, and for a bundle that repeats the command
	Command []Word // the command line, which the dump keeps

	// ProfileBudget is how long rTasks are measured that the database lacks; 0: none are.
	ProfileBudget time.Duration

	rTasks *bench      // for tests: measures rTasks instead of the GPU at hand
	lab    *laboratory // for tests: times plans instead of the GPU at hand
}

// What compilation produces.
const (
	EmitSources = "cu"    // sources, header and weights
	EmitLibrary = "lib"   // header, weights and the built library
	EmitWheel   = "wheel" // the same, and a Python wheel of it
	EmitCubin   = "cubin" // machine code and a list of its launches, for callers of CUDA's driver interface
	EmitAll     = "all"   // sources and library; sources alone where the compiler is missing
)

// targetDevices is the device that stands for an architecture when --device names none.
var targetDevices = map[string]string{
	"sm_70": "v100", "sm_80": "a100", "sm_89": "rtx4090", "sm_90": "h200", TargetEmu: "emu4",
}

// TargetEmu is the CPU emulator as a target.
const TargetEmu = "emu"

// Targets lists the values of --target. This list and the following ones serve messages and completion; in those of a
// flag with a default, the default is the first.
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

// Weights lists the forms in which weights can be stored.
func Weights() []string { return []string{"int8", "int4"} }

// PlanDoc says what a kind of plan is.
func PlanDoc(name string) string { return schedule.PlanDoc(name) }

// Emits lists what compilation can produce.
func Emits() []string { return []string{EmitAll, EmitSources, EmitLibrary, EmitWheel, EmitCubin} }

// withoutSources reports whether the built library is wanted alone, so that it must be possible to build it.
func (o *CompileOptions) withoutSources() bool { return o.Emit == EmitLibrary || o.Emit == EmitWheel }

// Choice adds a problem for a flag whose value is neither empty nor one of those known.
func Choice(l *diag.List, flag, value string, known []string) {
	if value != "" && !slices.Contains(known, value) {
		l.Add(diag.New("bad-flag", "--%s %q: want one of %s", flag, value, strings.Join(known, ", ")))
	}
}

// maxName is the most characters of a library's name, which file names and identifiers begin with.
const maxName = 128

// Validate reports every flag that makes no sense, before any work is done.
func (o *CompileOptions) Validate() error {
	var l diag.List
	o.Problems(&l)
	return l.Err()
}

// Problems adds everything that makes no sense in the flags.
func (o *CompileOptions) Problems(l *diag.List) {
	if len(o.libraryName()) > maxName {
		d := diag.New("bad-flag", "the library's name has %d characters, at most %d are wanted", len(o.libraryName()),
			maxName)
		d.Help = "choose another with --name"
		l.Add(d)
	}
	Choice(l, "target", o.Target, Targets())
	if !IsPlanText(o.Plan) {
		Choice(l, "plan", o.Plan, Plans())
	}
	Choice(l, "policy", o.Policy, PolicyNames())
	Choice(l, "precision", o.Precision, precision.Names())
	Choice(l, "weights", o.Weights, Weights())
	o.budgetProblems(l)
	o.generateProblems(l)
	if _, err := o.typical(o.ranges()); err != nil {
		for _, d := range diag.All(err) {
			l.Add(d)
		}
	}
	Choice(l, "emit", o.Emit, Emits())
	o.withoutLibrary(l)
	if o.Tries < 0 {
		l.Add(diag.New("bad-flag", "--tries %d: want a number of plans, not below 0", o.Tries))
	}
	if o.ProfileBudget < 0 {
		l.Add(diag.New("bad-flag", "--profile-budget %v: want a time, not below 0", o.ProfileBudget))
	}
	if !o.Verify && (len(o.Inputs) > 0 || o.RandomMax != 0) {
		l.Add(diag.New("bad-flag", "--input and --random-max say on what --verify runs, and it is not given"))
	}
	if o.RandomMax < 0 {
		l.Add(diag.New("bad-flag", "--random-max %d: want at least 1", o.RandomMax))
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

// withoutLibrary adds the flags that need a library where --emit makes none.
func (o *CompileOptions) withoutLibrary(l *diag.List) {
	if o.Emit != EmitSources && o.Emit != EmitCubin {
		return
	}
	if o.Code {
		l.Add(diag.New("bad-flag", "--code measures the built library, and --emit %s makes none", o.Emit))
	}
	if o.Verify {
		l.Add(diag.New("bad-flag", "--verify runs the library, and --emit %s makes none", o.Emit))
	}
	for _, f := range []struct {
		name string
		set  bool
	}{{"debug", o.Debug}, {"trace", o.Trace}, {"sanitize", o.Sanitize}} {
		if f.set && o.Emit == EmitCubin {
			l.Add(diag.New("bad-flag", "--%s is of the C++ run time, and a cubin has none", f.name))
		}
	}
}

// PrecisionChoice is the precision of each node as the flags ask for it.
func (o *CompileOptions) PrecisionChoice() precision.Choice {
	p, _ := precision.Parse(o.Precision) // an empty name is the default, others have been checked
	return precision.Choice{Program: p, Rules: o.PrecisionOf}
}

// name is the symbol prefix: --name, or the model's file name.
func (o *CompileOptions) name() string {
	if o.Name != "" {
		return o.Name
	}
	return strings.TrimSuffix(filepath.Base(o.Path), filepath.Ext(o.Path))
}

// libraryName is name as an identifier, which is how files and functions of the library begin.
func (o *CompileOptions) libraryName() string { return abi.Identifier(o.name()) }

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
