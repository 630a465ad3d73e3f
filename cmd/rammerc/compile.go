package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/rammerc/rammerc/internal/driver"
)

func newCompile() *cobra.Command {
	var o driver.CompileOptions
	cmd := &cobra.Command{
		Use:   "compile MODEL",
		Short: "Compile an ONNX model into a library directory",
		Long: `compile reads MODEL, optimises it, cuts it into rTasks, schedules them on the vEUs of the device and
emits a library: NAME.cu, NAME.h, NAME.weights, bindings, and libNAME.so where nvcc (or, for --target emu,
a C++20 compiler) is at hand.

Nothing is written when the model cannot be compiled. An existing directory is only written to when it
holds the same library or nothing.`,
		Example: `  rammerc compile model.onnx -o out --verify
  rammerc compile bert.onnx -o out --dim batch=1 --dim seq=128 --target sm_90`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Path = args[0]
			r, err := driver.Compile(ui(cmd), o)
			if err != nil {
				return err
			}
			emit(cmd, r, func(w io.Writer) { printCompiled(cmd, w, r) })
			return nil
		},
	}
	modelFlags(cmd, &o.ModelOptions)
	f := cmd.Flags()
	f.StringVarP(&o.Out, "out", "o", "out", "library directory")
	f.StringVar(&o.Name, "name", "", "prefix of symbols and files (default: the model's file name)")
	compileFlags(cmd, &o)
	f.StringVar(&o.Emit, "emit", "all", "what to produce: cu (sources), lib or all (sources and library)")
	f.StringVar(&o.Style, "emit-style", "table", "table, or unrolled: also print each vEU's steps as straight-line code")
	f.BoolVar(&o.Verify, "verify", false, "run the result against the evaluator before saying success")
	return cmd
}

// compileFlags are shared by the commands that compile on the way.
func compileFlags(cmd *cobra.Command, o *driver.CompileOptions) {
	f := cmd.Flags()
	f.StringVar(&o.Target, "target", "", "sm_90, sm_80, … or emu (default: the GPU at hand, else emu)")
	f.StringVar(&o.Device, "device", "", "device to schedule for: a name that the command devices lists, or a YAML file")
	f.StringVar(&o.Plan, "plan", "auto", "auto, rprogram or waves")
	f.StringVar(&o.Policy, "policy", "wavefront", "scheduling policy")
	f.BoolVar(&o.Offline, "offline", false, "cost model only; no GPU is asked")
	f.BoolVar(&o.Check, "check", false, "run every stage's verifier and shuffle node order")
	f.Uint64Var(&o.Seed, "check-seed", 1, "seed of the shuffling under --check")
	f.StringVar(&o.Dump, "dump", "", "write every stage's text form into this directory")
	f.BoolVar(&o.Debug, "debug", false, "build with the watchdog, which reports a wait that never ends")
}

// printCompiled prints the paths of the artefacts on stdout and the summary on stderr.
func printCompiled(cmd *cobra.Command, w io.Writer, r *driver.Compiled) {
	s := r.Summary
	ui(cmd).Printf("%s for %s (%s): %d rOperators, %d rTasks, %d segments, %d kernel instances, %d waits; %.1f µs predicted\n",
		r.Name, r.Target, r.Device, s.ROperators, s.RTasks, s.Segments, s.Instances, s.Waits, s.PredictedUS)
	if r.Verified != "" {
		ui(cmd).Printf("verified on the %s engine against the evaluator\n", r.Verified)
	}
	for _, a := range r.Artefacts {
		fmt.Fprintln(w, a)
	}
}
