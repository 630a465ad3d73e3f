package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rammerc/rammerc/internal/commands"
	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/driver"
)

// modelFlags adds the flags that specialise a model.
func modelFlags(cmd *cobra.Command, o *driver.ModelOptions) {
	cmd.Flags().StringArrayVar(&o.Shapes, "shape", nil, "shape of an input, NAME=1x3x224x224 (repeatable)")
	cmd.Flags().StringArrayVar(&o.Dims, "dim", nil,
		"extent of a symbolic dim, NAME=N, or what a run may have, NAME=1..512 or NAME=1,4,16 (repeatable)")
	cmd.Flags().StringArrayVar(&o.Binds, "bind", nil, "make an input a constant, NAME=[1,2] or NAME=@FILE (repeatable)")
	cmd.Flags().StringVar(&o.Kernels, "kernels", "",
		"folder of converted kernels, for operators of which the model has functions")
	cmd.Flags().Int64Var(&o.ChannelBlock, "channel-block", 0,
		"channels in a block of images and weights, 8 or 16, of a model that ONNX Runtime saved for a CPU")
}

func (a *app) checkCommand() *cobra.Command {
	var o driver.CompileOptions
	cmd := &cobra.Command{
		Use:   "check MODEL",
		Short: "List everything that prevents a model from being compiled",
		Long: `check reads the model, runs the passes, and looks for an rKernel for every operator that fits the device.
It lists all problems that a stage finds at once, in groups, with the nodes that they concern. The exit
status is 2 when there are any.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Path = args[0]
			a.job.Quiet = true
			r, err := commands.Check(a.job, o)
			if err != nil {
				return err
			}
			a.emit(cmd, r, r.Text)
			if len(r.Rows) > 0 {
				return shown{&diag.Diagnostic{ID: "check-failed", File: o.Path,
					Message: "cannot be compiled as it stands"}}
			}
			return nil
		},
	}
	modelFlags(cmd, &o.ModelOptions)
	deviceFlags(cmd, &o)
	typicalFlag(cmd, &o)
	stateFlag(cmd, &o)
	generateFlags(cmd, &o)
	return cmd
}

func (a *app) inspectCommand() *cobra.Command {
	var o driver.CompileOptions
	cmd := &cobra.Command{
		Use:   "inspect MODEL|PLAN.rprog|LIBDIR",
		Short: "Show what a model or a plan contains",
		Long: `inspect shows a model's inputs, outputs, dims, operators, parameters and arithmetic. Dims need not be bound;
if all of them are, it also runs the passes and shows what is left after them. For a library directory it
shows the segments of the plan, and the plans that were timed before this one was chosen. For a plan in text
form, as --dump writes it, it shows the segments and what is illegal in the plan; --model names its model.`,
		Example: `  rammerc inspect model.onnx
  rammerc compile model.onnx --target sm_90 --dump dump -o out
  rammerc inspect dump/000_import_model.rir
  rammerc inspect dump/031_schedule_wavefront.rprog --model model.onnx --target sm_90`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			a.job.Quiet = true
			result, err := a.inspect(cmd, o, args[0])
			if err != nil {
				return err
			}
			a.emit(cmd, result, result.Text)
			return nil
		},
	}
	modelFlags(cmd, &o.ModelOptions)
	deviceFlags(cmd, &o)
	cmd.Flags().StringVar(&o.Path, "model", "", "model that a plan in text form is for")
	return cmd
}

// result is what a command shows: a struct for --json, which also prints itself for people.
type result interface{ Text(w io.Writer) }

// inspect chooses what to show by what subject is: a plan in text form, a library directory, or a model.
func (a *app) inspect(cmd *cobra.Command, o driver.CompileOptions, subject string) (result, error) {
	isPlan := driver.IsPlanText(subject)
	var l diag.List
	for _, name := range []string{"model", "target", "device", "offline"} {
		if given(cmd, name) && !isPlan {
			l.Add(diag.New("bad-flag", "--%s applies only to plans in text form, and %s is not one", name, subject))
		}
	}
	if err := l.Err(); err != nil {
		return nil, err
	}
	if isPlan {
		o.Plan = subject
		return commands.InspectPlan(a.job, o)
	}
	if info, err := os.Stat(subject); err == nil && info.IsDir() {
		return commands.InspectLibrary(a.job, subject)
	}
	o.Path = subject
	return commands.Inspect(a.job, o.ModelOptions)
}

func (a *app) opsCommand() *cobra.Command {
	var internal, markdown bool
	cmd := &cobra.Command{
		Use:   "ops",
		Short: "List the supported operators",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ops := commands.Ops(internal)
			result := commands.OpList{Schema: "rammerc/ops/v1", Ops: ops}
			a.emit(cmd, result, func(w io.Writer) {
				if markdown {
					commands.OpsMarkdown(w, ops)
					return
				}
				commands.OpsText(w, ops)
			})
			return nil
		},
	}
	cmd.Flags().BoolVar(&internal, "internal", false, "list also the operators that only passes create")
	cmd.Flags().BoolVar(&markdown, "markdown", false, "print in the form of docs/OPS.md")
	return cmd
}

func (a *app) devicesCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "devices",
		Short: "List the known devices and the costs that the scheduler assumes for them",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := commands.Devices()
			if err != nil {
				return err
			}
			a.emit(cmd, r, r.Text)
			return nil
		},
	}
}

func (a *app) calibrateCommand() *cobra.Command {
	var o commands.CalibrateOptions
	var report bool
	cmd := &cobra.Command{
		Use:   "calibrate",
		Short: "Measure the GPU at hand and write a device file for it",
		Long: `calibrate compiles a measuring program with nvcc, runs it on the GPU of this machine, and writes a device
file for use with --device. It measures the time that launches, flags, counters, tagged words, clusters and
the steps of an rProgram take, the bandwidths of L2 and device memory, and the rate of fp32 arithmetic. It
takes about a minute, in which nothing else should use the GPU.

With --report or --fit it compares the cost model with the rTasks that compile, tune and collect have measured, with
profiles of whole programs (--profiles), or predictions with the times of programs (--programs).`,
		Example: `  rammerc calibrate -o mine.yaml
  rammerc compile model.onnx --device mine.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if report || o.Fit != "" {
				r, err := commands.ReportFit(o)
				if err != nil {
					return err
				}
				a.emit(cmd, r, r.Text)
				return nil
			}
			r, err := commands.Calibrate(a.job, o)
			if err != nil {
				return err
			}
			a.emit(cmd, r, func(w io.Writer) {
				for _, line := range r.Lines() {
					a.job.Printf("%s\n", line)
				}
				r.Text(w)
			})
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.Out, "out", "o", "device.yaml", "device file to write")
	f.StringVar(&o.Base, "base", "", "device from which to take the name and the number of vEUs of an SM, "+
		"which are not measured: a name that 'rammerc devices' lists, or a YAML file")
	f.StringVar(&o.Raw, "raw", "", "also write every sample of every measurement into this file, as JSON")
	f.BoolVar(&o.Force, "force", false, "replace files that exist already")
	f.BoolVar(&report, "report", false, "measure nothing, and say how far the cost model for --base is from the measured "+
		"rTasks of the database")
	f.StringVar(&o.Profiles, "profiles", "", "folder with X.plan.json and X.profile.json, to use instead of the database")
	f.StringVar(&o.Programs, "programs", "", "folder with X.compile.json and X.bench.json, as compile and bench print "+
		"them with --json, to use instead of the database")
	f.StringVar(&o.Fit, "fit", "", "as --report, and write --base with what was fitted into this file")
	return cmd
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print build information",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r := driver.Version()
			a.emit(cmd, r, r.Text)
			return nil
		},
	}
}

func (a *app) schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema [FORM]",
		Short: "Print the JSON Schema of what a command prints with --json, and of files",
		Long: `schema prints the JSON Schema of a form of JSON, which its field "schema" names; without a FORM it lists them.
The forms of files are those of NAME.plan.json, of device files, which are YAML, and of .rprog files, as an array of
their lines. Fields may be added to a form; what else changes gives it another name.`,
		Example: `  rammerc schema rammerc/bench/v2`,
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				a.emit(cmd, commands.Forms(), func(w io.Writer) { fmt.Fprintln(w, strings.Join(commands.Forms(), "\n")) })
				return nil
			}
			s, err := commands.JSONSchema(args[0])
			if err != nil {
				return err
			}
			printJSON(a.stdout, s)
			return nil
		},
	}
}
