// Command rammerc compiles ONNX models into persistent GPU programs. `rammerc help` is the manual.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/rammerc/rammerc/internal/commands"
	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/driver"
	"github.com/rammerc/rammerc/internal/process"
)

// exitSignal is the exit status of a command that a signal stopped, less the signal's number.
const exitSignal = 128

func main() {
	a := newApp(os.Args[1:], os.Stdout, os.Stderr)
	a.job = driver.NewJob(os.Stderr)
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		s := <-interrupted
		process.EndAll()
		a.job.Folders.Abandon()
		os.Exit(exitSignal + int(s.(syscall.Signal)))
	}()
	os.Exit(a.run())
}

// app is one invocation of rammerc.
type app struct {
	args    []string // as typed, without the program's name
	stdout  *output
	stderr  io.Writer
	job     *driver.Job
	started bool // the command line was understood, and the command has begun
}

func newApp(args []string, stdout, stderr io.Writer) *app {
	a := &app{args: args, stdout: &output{w: stdout}, stderr: stderr, job: &driver.Job{}}
	a.job.W = stderr
	return a
}

// output is standard output. It keeps the first error, such as that of a full disk, so that a result that was not
// written whole is no success.
type output struct {
	w   io.Writer
	err error
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.w.Write(p)
	if o.err == nil {
		o.err = err
	}
	return n, err
}

func (o *output) problem() error {
	if o.err == nil {
		return nil
	}
	return fmt.Errorf("cannot write to standard output: %w", diag.Reason(o.err))
}

// run executes the command line and returns the exit status.
func (a *app) run() int {
	root := a.root()
	root.SetArgs(a.args)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	cmd, err := root.ExecuteC()
	if err == nil {
		err = a.stdout.problem()
	}
	if err == nil {
		return driver.ExitOK
	}
	code := driver.ExitCode(err)
	if !a.started {
		code = driver.ExitInput
	}
	if !errors.As(err, new(shown)) {
		a.report(cmd, err, code)
	}
	return code
}

// shown is an error that has already been printed as part of the command's result. It only sets the exit status.
type shown struct{ error }

func (s shown) Unwrap() error { return s.error }

// report prints err as lines on standard error, and with --json as an object on standard output too.
func (a *app) report(cmd *cobra.Command, err error, code int) {
	list := diag.All(err)
	if a.wantsJSON(cmd) {
		printJSON(a.stdout, commands.ErrorResult{Schema: "rammerc/error/v1", ExitCode: code, Error: err.Error(), Diagnostics: list})
	}
	if len(list) == 0 {
		fmt.Fprintf(diag.Writer(a.stderr), "error: %v\n", err)
	}
	for _, d := range list {
		fmt.Fprintf(a.stderr, "%v: %v\n", d.Severity, d)
	}
	if !a.started {
		fmt.Fprintf(a.stderr, "run '%s --help' for the manual\n", cmd.CommandPath())
	}
}

// wantsJSON reports whether --json is given. It looks for the word itself in a command line that was not understood, so
// that errors in it are printed as JSON too.
func (a *app) wantsJSON(cmd *cobra.Command) bool {
	asJSON, _ := cmd.Flags().GetBool("json")
	return asJSON || !a.started && slices.Contains(a.args, "--json")
}

func printJSON(w io.Writer, v any) {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic("BUG: " + err.Error())
	}
	w.Write(diag.PrintableJSON(text.Bytes()))
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "rammerc",
		Short: "Compile ONNX models into one persistent program for a whole GPU",
		Long: `rammerc compiles a DNN, given as an ONNX file, into one program for a whole GPU: operators are cut
into rTasks, and a schedule made at compile time places every rTask on a virtual execution unit.

MODEL is an ONNX file, or a graph in text form (.rir) as --dump writes it after every stage.
Exit status: 0 ok, 1 internal error, 2 wrong input, 3 a check failed, 4 a tool is missing or fails.
Flags take precedence over rammerc.yaml (in the current folder, or --config), and that over defaults.
Results go to standard output, progress and messages to standard error.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRun: func(cmd *cobra.Command, _ []string) {
			a.started = true
			a.job.Quiet, _ = cmd.Flags().GetBool("quiet")
		},
	}
	root.PersistentFlags().Bool("json", false, "print the result as JSON on standard output")
	root.PersistentFlags().BoolP("quiet", "q", false, "no progress on standard error")
	root.PersistentFlags().String("config", "", "configuration file (default: rammerc.yaml when there is one)")
	root.PersistentFlags().String("max-memory", "", "the most that the tensors of one stage may take, such as 2GiB "+
		"(default: half of what the process can have)")
	root.PersistentFlags().Bool("print-config", false, "print the flags in force, as a configuration file, and stop")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return plainFlagError(err) })
	root.Version = driver.Version().Version
	root.AddCommand(
		a.compileCommand(), a.tuneCommand(), a.collectCommand(), a.runCommand(), a.verifyCommand(), a.benchCommand(),
		a.profileCommand(), a.reportCommand(), a.checkCommand(),
		a.inspectCommand(), a.opsCommand(), a.devicesCommand(), a.calibrateCommand(), a.convertCommand(), a.cacheCommand(),
		a.versionCommand(), a.schemaCommand(),
		a.manCommand(),
	)
	for _, c := range root.Commands() {
		c.Args = argsUnlessConfig(c.Args)
		c.RunE = a.withConfig(c.RunE)
	}
	root.SetHelpCommand(helpCommand(root))
	completeFlags(root)
	addCompletion(root)
	return root
}

// helpCommand is cobra's, except that a command that is not there is an error.
func helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Show the manual of a command",
		RunE: func(_ *cobra.Command, args []string) error {
			cmd, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return diag.New("unknown-command", "there is no command %q; 'rammerc help' lists them", strings.Join(args, " "))
			}
			cmd.InitDefaultHelpFlag()
			return cmd.Help()
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			var names []string
			for _, c := range root.Commands() {
				if len(args) == 0 && c.IsAvailableCommand() {
					names = append(names, cobra.CompletionWithDesc(c.Name(), c.Short))
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
	}
}

// argsUnlessConfig checks the positional arguments, except with --print-config, which needs none.
func argsUnlessConfig(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if show, _ := cmd.Flags().GetBool("print-config"); show {
			return nil
		}
		return check(cmd, args)
	}
}

// emit prints a command's result: v as JSON with --json, and otherwise what text writes.
func (a *app) emit(cmd *cobra.Command, v any, text func(w io.Writer)) {
	if a.wantsJSON(cmd) {
		printJSON(a.stdout, v)
		return
	}
	text(diag.Writer(a.stdout))
}
