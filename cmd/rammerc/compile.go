package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/driver"
	"github.com/rammerc/rammerc/precision"
)

func (a *app) compileCommand() *cobra.Command {
	var o driver.CompileOptions
	cmd := &cobra.Command{
		Use:   "compile MODEL",
		Short: "Compile an ONNX model into a library directory",
		Long: `compile reads MODEL, optimises it, cuts it into rTasks, schedules them on the vEUs of the device and
emits a library: NAME.cu, NAME.h, NAME.weights, bindings, and libNAME.so if nvcc (or, for --target emu,
a C++20 compiler) is found.

Kinds of plan (--plan):
` + planKinds() + `
Nothing is written if the model cannot be compiled. A directory that exists is written to only if it is
empty or holds the same library.`,
		Example: `  rammerc compile model.onnx -o out --verify
  rammerc compile bert.onnx -o out --dim batch=1 --dim seq=128 --target sm_90`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Path, o.Command = args[0], command(cmd, args)
			if o.Tries == 0 { // for the driver: as many as it sees fit
				return diag.New("bad-flag", "--tries 0: want at least one plan")
			}
			r, err := driver.Compile(a.job, o)
			if err != nil {
				return err
			}
			a.emit(cmd, r, func(w io.Writer) { a.printCompiled(w, r) })
			return nil
		},
	}
	modelFlags(cmd, &o.ModelOptions)
	f := cmd.Flags()
	f.StringVarP(&o.Out, "out", "o", "out", "library directory")
	f.StringVar(&o.Name, "name", "", "prefix of symbols and files (default: the model's file name)")
	compileFlags(cmd, &o)
	f.StringVar(&o.Emit, "emit", driver.EmitAll, "what to produce: cu (sources), lib (the built library), wheel (the "+
		"library and a Python wheel of it), cubin (machine code and the list of its launches, for callers of CUDA's driver "+
		"interface) or all, which is cu and lib, or cu alone if the compiler is missing")
	f.BoolVar(&o.Code, "code", false, "report the size of the machine code of each rKernel instance; "+
		"the library keeps line information, which profilers use too")
	f.IntVar(&o.Tries, "tries", driver.DefaultTries,
		"largest number of plans that --plan auto builds and times on the GPU at hand; with 1 the cost model chooses")
	f.DurationVar(&o.ProfileBudget, "profile-budget", driver.DefaultProfileBudget,
		"how long to measure rTasks that the database lacks, on the GPU at hand; 0: not at all")
	f.Float64Var(&o.ErrorBudget, "error-budget", 0,
		"choose the fastest precision of each operator such that no output is off by more than this, as relative L2 "+
			"error against the evaluator; measured on the CPU before anything is compiled")
	f.StringArrayVar(&o.Calibrate, "calibrate", nil,
		"data on which --error-budget measures: NAME=FILE for each input (repeatable), an .npz with all inputs, or a "+
			"folder with test_data_set_* folders (default: random)")
	f.BoolVar(&o.Verify, "verify", false,
		"compare the outputs of the library with those of the evaluator before reporting success")
	f.StringArrayVar(&o.Inputs, "input", nil, "samples of an input for --verify, NAME=FILE (repeatable; others are drawn)")
	f.Int64Var(&o.RandomMax, "random-max", 0,
		"for --verify, integers are drawn from [0, N) where the model does not say what they can be (default 2)")
	return cmd
}

func planKinds() string {
	text := ""
	for _, p := range driver.Plans() {
		text += fmt.Sprintf("  %-11s %s\n", p, driver.PlanDoc(p))
	}
	return text
}

// deviceFlags say what to compile for.
func deviceFlags(cmd *cobra.Command, o *driver.CompileOptions) {
	f := cmd.Flags()
	f.StringVar(&o.Target, "target", "", "sm_90, sm_80, … or emu (default: the GPU at hand; without one, and with --offline, emu)")
	f.StringVar(&o.Device, "device", "", "device to schedule for: a name that 'rammerc devices' lists, or a YAML file")
	f.BoolVar(&o.Offline, "offline", false, "choose by the cost model alone, and do not use a GPU")
}

func typicalFlag(cmd *cobra.Command, o *driver.CompileOptions) {
	cmd.Flags().StringArrayVar(&o.Typical, "typical", []string{driver.SampledSpecials},
		"extents for which a library whose dims have ranges gets programs of their own, NAME=32,128 (repeatable); auto: "+
			"halves of the largest, if these can share their weights; or none")
}

func stateFlag(cmd *cobra.Command, o *driver.CompileOptions) {
	cmd.Flags().StringArrayVar(&o.States, "state", nil,
		"an input that has the value of an output of the run before, INPUT=OUTPUT (repeatable), or auto: past… and present…; "+
			"the library keeps it, and appends to caches in place")
}

// generateFlags are about libraries that produce whole answers.
func generateFlags(cmd *cobra.Command, o *driver.CompileOptions) {
	f := cmd.Flags()
	f.StringVar(&o.Generate, "generate", "",
		"make a library of which one run produces a whole answer of a decoder, with the search "+
			strings.Join(driver.Searches(), " or "))
	f.Int64SliceVar(&o.EndTokens, "end-token", nil, "a token that ends an answer of --generate (repeatable)")
	f.Int64Var(&o.MaxTokens, "max-tokens", 0, "how many tokens prompt and answer of --generate have at most, together")
}

// compileFlags are shared by the commands that compile on the way.
func compileFlags(cmd *cobra.Command, o *driver.CompileOptions) {
	deviceFlags(cmd, o)
	f := cmd.Flags()
	f.StringVar(&o.Plan, "plan", driver.Plans()[0],
		strings.Join(driver.Plans(), ", ")+", or a .rprog file as --dump writes it")
	f.StringVar(&o.Policy, "policy", driver.PolicyNames()[0],
		"scheduling policy: "+strings.Join(driver.PolicyNames(), ", "))
	f.StringVar(&o.Precision, "precision", precision.Names()[0],
		"how products of float32 are made: fp32 (as accurate as float32, on tensor cores where that is faster), "+
			"strict (IEEE float32), tf32 (rounded to 10 bits of mantissa where that is faster), "+
			"fp16 and bf16 (weights and values between operators in 16 bits, sums in float32)")
	f.Var(ruleFlag{&o.PrecisionOf}, "precision-of",
		"another precision for nodes of the model, named by their name, a pattern with * and ?, or a type of operators "+
			"(repeatable; the last that names a node holds)")
	f.StringVar(&o.Weights, "weights", "",
		"how weights are stored that are multiplied by few rows: int8 (a scale for each column), "+
			"int4 (a scale for each column and 64 weights) (default: as they are)")
	typicalFlag(cmd, o)
	stateFlag(cmd, o)
	generateFlags(cmd, o)
	f.BoolVar(&o.Check, "check", false, "run the verifier of every stage, and shuffle the nodes before every pass")
	f.Uint64Var(&o.Seed, "check-seed", 1, "seed of the shuffling under --check")
	f.StringVar(&o.Dump, "dump", "", "write the result of every stage, in text form, into this directory")
	f.BoolVar(&o.Debug, "debug", false, "build with the watchdog, which reports a wait that never ends")
}

// printCompiled prints the paths of the artefacts, and the summary on stderr.
func (a *app) printCompiled(w io.Writer, r *driver.Compiled) {
	for _, line := range r.SummaryLines() {
		a.job.Printf("%s\n", line)
	}
	for _, f := range r.Artefacts {
		fmt.Fprintln(w, f)
	}
}
