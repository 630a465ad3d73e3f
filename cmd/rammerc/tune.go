package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/rammerc/rammerc/internal/commands"
	"github.com/rammerc/rammerc/internal/driver"
)

func (a *app) tuneCommand() *cobra.Command {
	var o driver.TuneOptions
	cmd := &cobra.Command{
		Use:   "tune MODEL",
		Short: "Search for the fastest schedule of a model on the GPU at hand",
		Long: `tune first measures the rTasks of all candidates that the database lacks, then schedules: kinds of plan,
policies, which candidates carry out which rOperators, and precisions: those that are more accurate than the
flags ask for, and with --error-budget all that are inside it. Every schedule is verified before it is built. A
search can be stopped at any time; started again it goes on. It never ends with a slower schedule than it
began with. compile uses the result wherever model, flags, GPU, driver and compiler are the same.`,
		Example: `  rammerc tune model.onnx --budget 10m
  rammerc compile model.onnx -o out`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Path, o.Command = args[0], command(cmd, args)
			r, err := driver.Tune(a.job, o)
			if err != nil {
				return err
			}
			a.emit(cmd, r, r.Text)
			return nil
		},
	}
	measuringFlags(cmd, &o.CompileOptions, &o.Budget, "how long to measure and search in all")
	f := cmd.Flags()
	f.Uint64Var(&o.Search, "seed", 1, "seed of the search")
	f.IntVar(&o.Batch, "batch", driver.DefaultTuneBatch, "how many schedules are built and timed together")
	f.BoolVar(&o.CandidatesOnly, "candidates-only", false, "measure rTasks, and search for no schedule")
	f.BoolVar(&o.DryRun, "dry-run", false, "say what would be measured and searched, and stop")
	return cmd
}

// measuringFlags are those of commands that measure what compiling a model can use.
func measuringFlags(cmd *cobra.Command, o *driver.CompileOptions, budget *time.Duration, usage string) {
	modelFlags(cmd, &o.ModelOptions)
	compileFlags(cmd, o)
	cmd.Flags().DurationVar(budget, "budget", driver.DefaultTuneBudget, usage)
}

func (a *app) collectCommand() *cobra.Command {
	var o driver.CollectOptions
	cmd := &cobra.Command{
		Use:   "collect MODEL…",
		Short: "Measure the rTasks of several models on the GPU at hand",
		Long: `collect measures the candidates of all models that the database lacks, the most promising first. Instances
of rKernels that several models have are compiled once. --build-only compiles the programs that measure and
keeps them in the folder --built, where the same command without --build-only finds them: so the GPU is needed
for a short time only.`,
		Example: `  rammerc collect *.onnx --precision tf32 --built DIR --build-only
  rammerc collect *.onnx --precision tf32 --built DIR --budget 2m`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Paths, o.Command = args, command(cmd, args)
			r, err := driver.Collect(a.job, o)
			if err != nil {
				return err
			}
			a.emit(cmd, r, r.Text)
			return nil
		},
	}
	measuringFlags(cmd, &o.CompileOptions, &o.Budget, "how long to build and to measure in all")
	f := cmd.Flags()
	f.StringVar(&o.Built, "built", "", "folder in which the programs that measure are kept")
	f.BoolVar(&o.BuildOnly, "build-only", false, "make these programs, and measure nothing")
	return cmd
}

func (a *app) cacheCommand() *cobra.Command {
	var o commands.CacheOptions
	cmd := &cobra.Command{
		Use:   "cache ACTION",
		Short: "Look at the database of measured rTasks, merge, clean or export it",
		Long: `cache works on the database in which compile and tune keep what rTasks take: a file of JSON lines, which
RAMMER_CACHE names if it is not the one in the user's cache folder. A line is used where its whole key is the
same: kernel sources, arguments, GPU, clocks, driver, nvcc and run time.

Actions:
` + commands.CacheManual(),
		Example: `  rammerc cache ls
  rammerc cache show gemm bert
  rammerc cache export h200.jsonl.gz --gpu 'NVIDIA H200'`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Args = args
			r, err := commands.Cache(o)
			if err != nil {
				return err
			}
			a.emit(cmd, r, r.Text)
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.File, "file", "", "the database (default: RAMMER_CACHE, or the one in the user's cache folder)")
	f.StringVar(&o.GPU, "gpu", "", "only entries of this product, such as 'NVIDIA H200'")
	return cmd
}
