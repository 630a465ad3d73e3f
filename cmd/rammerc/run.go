package main

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rammerc/rammerc/internal/commands"
	"github.com/rammerc/rammerc/internal/diag"
)

// subjectFlags are shared by the commands that run a model or a library directory.
func subjectFlags(cmd *cobra.Command, o *commands.SubjectOptions) {
	modelFlags(cmd, &o.ModelOptions)
	compileFlags(cmd, &o.CompileOptions)
	f := cmd.Flags()
	f.StringVar(&o.Engine, "engine", "", "eval, emu or gpu (default: the best at hand)")
	f.BoolVar(&o.Waves, "waves", false, "run the library with one launch for each wave instead of as an rProgram")
	f.StringVar(&o.RunUnder, "run-under", "",
		"run the library's process under this command, e.g. 'compute-sanitizer --log-file log'")
	f.Uint64Var(&o.Delays, "delays", 0,
		"make vEUs sleep for random times drawn from this seed; the library must be built with --debug")
	f.Uint64Var(&o.EmuSeed, "emu-seed", 0, "seed of the order in which the emulator runs threads")
}

// rejectCompileFlags refuses flags that say how to compile a model when path is a library directory, where they would
// have no effect. Only flags of the command line are refused: a configuration file is for models and libraries alike.
func rejectCompileFlags(cmd *cobra.Command, path string) error {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return nil
	}
	var l diag.List
	names := []string{
		"target", "device", "offline", "plan", "policy", "precision", "precision-of", "weights", "check", "check-seed", "dump",
		"debug", "tsan",
	}
	if !given(cmd, "model") { // the reference of a library is a model, too
		names = append(names, "shape", "bind", "channel-block")
	}
	for _, name := range names {
		if given(cmd, name) {
			l.Add(diag.New("bad-flag", "--%s applies only to models, and %s is a library directory, which is compiled already",
				name, path))
		}
	}
	return l.Err()
}

func (a *app) runCommand() *cobra.Command {
	var o commands.RunOptions
	cmd := &cobra.Command{
		Use:   "run MODEL|LIBDIR",
		Short: "Run one inference",
		Long: `run computes one inference of a model, or of a library directory that compile has made. A model is compiled
first, unless the engine is eval.`,
		Example: `  rammerc run model.onnx --input image=digit.npy -o results
  rammerc run out --random 1
  rammerc run dump/007_graphopt_fold-constants.rir --engine eval --random 1`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Path, o.Command = args[0], command(cmd, args)
			if err := rejectCompileFlags(cmd, args[0]); err != nil {
				return err
			}
			o.Random = cmd.Flags().Changed("random")
			r, err := commands.Run(a.job, o)
			if err != nil {
				return err
			}
			a.emit(cmd, r, r.Text)
			return nil
		},
	}
	subjectFlags(cmd, &o.SubjectOptions)
	f := cmd.Flags()
	valueFlags(f, &o.Inputs, &o.RandomSeed, 0, &o.RandomMax)
	f.StringVarP(&o.Out, "out", "o", "", "write NAME.npy for each output into this directory, or all into this .npz file")
	f.StringVar(&o.SaveInputs, "save-inputs", "", "write the inputs likewise, so that others can run on them")
	return cmd
}

func (a *app) verifyCommand() *cobra.Command {
	var o commands.VerifyOptions
	cmd := &cobra.Command{
		Use:   "verify MODEL|LIBDIR",
		Short: "Compare an engine with the evaluator or with expected outputs",
		Long: `verify runs an engine and compares its outputs with those of the evaluator, or with expected ones. Files
given with --input and --expect may hold many samples along the first axis, which are run one batch after
another. The exit status is 3 if a difference is larger than the tolerance.`,
		Example: `  rammerc verify digits.onnx --input image=test.npz:images --expect logits=logits.npy
  rammerc verify out --model model.onnx --random 7 --samples 3`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Path, o.Command = args[0], command(cmd, args)
			if err := rejectCompileFlags(cmd, args[0]); err != nil {
				return err
			}
			r, err := commands.Verify(a.job, o)
			if r == nil {
				return err
			}
			a.emit(cmd, r, r.Text)
			if err != nil {
				a.job.Printf("error: %v\n", err)
				return shown{err}
			}
			return nil
		},
	}
	subjectFlags(cmd, &o.SubjectOptions)
	f := cmd.Flags()
	f.StringVar(&o.Model, "model", "", "reference model of a library directory")
	f.StringArrayVar(&o.Inputs, "input", nil, "samples of an input, NAME=FILE (repeatable)")
	f.StringArrayVar(&o.Expect, "expect", nil,
		"expected samples of an output, NAME=FILE; without --input for the inputs that --random draws, which are not those of "+
			"the model if its operators want certain numbers: run --save-inputs keeps these (repeatable)")
	f.StringVar(&o.Data, "data", "", "folder with test_data_set_* folders of input_N.pb and output_N.pb")
	f.Uint64Var(&o.RandomSeed, "random", 1, "seed of random inputs when no data is given")
	randomMaxFlag(f, &o.RandomMax)
	f.IntVar(&o.Samples, "samples", 1, "number of random samples")
	f.Float64Var(&o.Limit, "limit", 0, "largest relative L2 error that is accepted, instead of that of the tolerance table")
	f.BoolVar(&o.Bisect, "bisect", false, "if outputs differ, find the first node whose result differs")
	f.StringVar(&o.Extract, "extract", "", "with --bisect, write the part of the model that makes that node's result into this "+
		"folder: a model of its own, its inputs, and a script that compares it")
	f.IntVar(&o.Repeat, "repeat", 0, "run the first sample this many times more, and compare all bits of the outputs")
	f.BoolVar(&o.Sanitize, "tsan", false, "build the emulated library with ThreadSanitizer")
	return cmd
}

func (a *app) profileCommand() *cobra.Command {
	var o commands.ProfileOptions
	cmd := &cobra.Command{
		Use:   "profile MODEL|LIBDIR",
		Short: "Show where the time of an inference goes, by rOperator and vEU",
		Long: `profile builds a model, or the sources of a library directory, in a form in which every vEU records what it
does. It runs the program, first to warm up and then to record, and reports the time of each rOperator, of
the critical path and of each vEU, next to the times of the cost model. On the emulator the times are those
of the host: they show what waits for what, and say nothing about the speed on a GPU.

--perfetto writes the trace-event form for ui.perfetto.dev and chrome://tracing; --html writes a page that
needs no other files.`,
		Example: `  rammerc profile model.onnx --html profile.html
  rammerc profile out --warm-up 20 --top 30 --perfetto trace.json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Path, o.Command = args[0], command(cmd, args)
			if err := rejectCompileFlags(cmd, args[0]); err != nil {
				return err
			}
			r, err := commands.RunProfile(a.job, o)
			if err != nil {
				return err
			}
			a.emit(cmd, r, r.Text)
			return nil
		},
	}
	subjectFlags(cmd, &o.SubjectOptions)
	f := cmd.Flags()
	valueFlags(f, &o.Inputs, &o.RandomSeed, 1, &o.RandomMax)
	f.IntVar(&o.WarmUp, "warm-up", 10, "runs before the one that is recorded")
	f.IntVar(&o.Top, "top", 15, "rows of each table; 0 shows all")
	f.StringVar(&o.Perfetto, "perfetto", "", "write the timeline in the trace-event form into this file")
	f.StringVar(&o.HTML, "html", "", "write a page with timeline and tables into this file")
	return cmd
}

func (a *app) reportCommand() *cobra.Command {
	var o commands.ReportOptions
	cmd := &cobra.Command{
		Use:   "report LIBDIR",
		Short: "Write a web page about a library: graph, schedule, memory, kernels, times",
		Long: `report writes one web page that needs no other files: the graph of rOperators, the schedule along time as it
was planned, the places of tensors in memory, the kernels, and the time that each rOperator was expected to
take. If the library's sources and the compiler for them are at hand, it builds them with tracing, as profile
does, and shows what was measured beside what was planned.`,
		Example: `  rammerc report out
  rammerc report out -o report.html --planned`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Path = args[0]
			r, err := commands.Report(a.job, o)
			if err != nil {
				return err
			}
			a.emit(cmd, r, r.Text)
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.Out, "out", "o", "report.html", "file of the page")
	f.BoolVar(&o.NotTimed, "planned", false, "show what was planned, and measure nothing")
	f.StringVar(&o.Engine, "engine", "", "emu or gpu (default: the one that the library is for, if it is at hand)")
	f.StringArrayVar(&o.Dims, "dim", nil, "extent of a dim that has a range in the library, NAME=N; the largest if not given "+
		"(repeatable)")
	valueFlags(f, &o.Inputs, &o.RandomSeed, 1, &o.RandomMax)
	f.IntVar(&o.WarmUp, "warm-up", 10, "runs before the one that is measured")
	return cmd
}

// benchFormats are the values of bench --format.
var benchFormats = []string{"text", "json", "gobench"}

func (a *app) benchCommand() *cobra.Command {
	var o commands.BenchOptions
	var format string
	cmd := &cobra.Command{
		Use:   "bench LIBDIR…",
		Short: "Measure the latency of compiled libraries",
		Long: `bench runs each library on random inputs and prints min, p50, p90, p99, max and mean of the latency, and the
throughput. On a GPU, inputs and outputs are in device memory, and times are measured with device events;
copies of inputs to the device and of outputs back are timed apart. With --transfers the host's clock
measures the whole call with its copies. --contexts N also runs N contexts at once. Before that it measures, by the host's clock, what a
new process needs: loading the library, creating a context, and the first run. A lock makes sure that only
one of a user's processes on a machine measures at a time.

With --baseline it compares each library with an earlier one: with its library directory, which is timed in
turns with the new one, or with the times that --save has written on the same device. The exit status is 3 if
one is slower by more than --max-regress and chance makes that less probable than 1 %.`,
		Example: `  rammerc bench out
  rammerc bench out --baseline before --max-regress 5%
  rammerc bench out --save times.json
  rammerc bench out --baseline times.json --max-regress 10%`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Dirs = args
			return a.bench(cmd, o, format)
		},
	}
	benchFlags(cmd, &o)
	cmd.Flags().StringVar(&format, "format", "text", "text, json or gobench")
	return cmd
}

// bench checks what only the command line knows, times, and prints the result in one of benchFormats.
func (a *app) bench(cmd *cobra.Command, o commands.BenchOptions, format string) error {
	if !slices.Contains(benchFormats, format) {
		return diag.New("bad-flag", "--format %q: want one of %s", format, strings.Join(benchFormats, ", "))
	}
	if given(cmd, "max-regress") && len(o.Baselines) == 0 {
		return diag.New("bad-flag", "--max-regress says by how much --baseline may be exceeded, and there is none")
	}
	if !given(cmd, "rounds") && len(o.Baselines) == 0 && o.Save == "" {
		o.Rounds = 1
	}
	r, err := commands.RunBench(a.job, o)
	if r == nil {
		return err
	}
	switch format {
	case "text":
		a.emit(cmd, r, r.Text)
	case "json":
		printJSON(a.stdout, r)
	case "gobench":
		a.emit(cmd, r, r.GoBench)
	}
	if err != nil {
		a.job.Printf("error: %v\n", err)
		return shown{err}
	}
	return nil
}

func benchFlags(cmd *cobra.Command, o *commands.BenchOptions) {
	f := cmd.Flags()
	f.IntVar(&o.Runs, "runs", 300, "timed runs")
	f.IntVar(&o.Rounds, "rounds", 20, "rounds in which they are timed with --save and --baseline; those of a library and its "+
		"baseline alternate")
	f.IntVar(&o.WarmUp, "warm-up", 50, "untimed runs; each round begins with its share of them")
	f.Uint64Var(&o.RandomSeed, "random", 1, "seed of the inputs")
	randomMaxFlag(f, &o.RandomMax)
	f.StringArrayVar(&o.Dims, "dim", nil, "extent of a dim that has a range in the libraries, NAME=N; the largest if not given "+
		"(repeatable)")
	f.BoolVar(&o.Transfers, "transfers", false, "pass inputs and outputs in host memory, and time the copies too")
	f.IntVar(&o.Contexts, "contexts", 0, "time so many contexts at once, too, each in a thread of one process")
	f.BoolVar(&o.Waves, "waves", false, "run with one launch for each wave instead of as an rProgram")
	f.StringVar(&o.Save, "save", "", "write the result as JSON into this file, for a later --baseline")
	f.StringArrayVar(&o.Baselines, "baseline", nil,
		"file that --save has written, or the library directory that a library is "+
			"compared with (repeatable: one for each LIBDIR)")
	o.MaxRegress = 0.05
	f.Var(percentFlag{&o.MaxRegress}, "max-regress", "by how much of the baseline's latency a library may be slower")
}

// percentFlag is a flag with a part of something: 5% or 0.05.
type percentFlag struct{ part *float64 }

func (p percentFlag) String() string {
	if p.part == nil {
		return ""
	}
	return strconv.FormatFloat(100**p.part, 'g', -1, 64) + "%"
}

func (p percentFlag) Set(text string) error {
	number, ofHundred := strings.CutSuffix(text, "%")
	x, err := strconv.ParseFloat(number, 64)
	if err != nil || !(x >= 0) || math.IsInf(x, 0) {
		return fmt.Errorf("want a part that is not negative, such as 5%% or 0.05")
	}
	if ofHundred {
		x /= 100
	}
	*p.part = x
	return nil
}

func (p percentFlag) Type() string { return "percent" }

// valueFlags say what the inputs of one inference hold.
func valueFlags(f *pflag.FlagSet, inputs *[]string, seed *uint64, usual uint64, most *int64) {
	f.StringArrayVar(inputs, "input", nil, "value of an input, NAME=FILE: .npy, .pb, .npz or FILE.npz:MEMBER; "+
		"or FILE.npz, whose arrays have the inputs' names (repeatable)")
	f.Uint64Var(seed, "random", usual, "draw the inputs that no --input gives from this seed")
	randomMaxFlag(f, most)
}

func randomMaxFlag(f *pflag.FlagSet, most *int64) {
	f.Int64Var(most, "random-max", 100, "integers are drawn from [0, N) where the model does not say what they can be")
}
