// Command rammerc compiles ONNX models into persistent GPU programs. `rammerc help` is the manual.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/driver"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run executes the command line and returns the exit status.
func run(args []string, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteC()
	if err == nil {
		return driver.ExitOK
	}
	code := driver.ExitCode(err)
	if isUsage(err) {
		code = driver.ExitInput
	}
	if !errors.As(err, new(silent)) {
		report(cmd, err, code, stdout, stderr)
	}
	return code
}

// usageError marks an error of the command line itself.
type usageError struct{ error }

func isUsage(err error) bool {
	_, ok := err.(usageError)
	return ok
}

// report prints err: as lines on stderr, and with --json as an object on stdout too.
func report(cmd *cobra.Command, err error, code int, stdout, stderr io.Writer) {
	list := diag.All(err)
	if asJSON, _ := cmd.Flags().GetBool("json"); asJSON {
		printJSON(stdout, struct {
			Schema      string             `json:"schema"`
			ExitCode    int                `json:"exit_code"`
			Error       string             `json:"error"`
			Diagnostics []*diag.Diagnostic `json:"diagnostics,omitempty"`
		}{"rammerc/error/v1", code, err.Error(), list})
	}
	if len(list) > 0 {
		for _, d := range list {
			fmt.Fprintf(stderr, "%v: %v\n", d.Severity, d)
		}
		return
	}
	fmt.Fprintf(stderr, "error: %v\n", err)
	if isUsage(err) {
		fmt.Fprintf(stderr, "run '%s --help' for the manual\n", cmd.CommandPath())
	}
}

func printJSON(w io.Writer, v any) {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic("BUG: " + err.Error())
	}
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "rammerc",
		Short: "Compile ONNX models into one persistent program for a whole GPU",
		Long: `rammerc compiles a DNN, given as an ONNX file, into one program for a whole GPU: operators are cut
into rTasks, and a schedule made at compile time places every rTask on a virtual execution unit.

Exit status: 0 ok, 1 internal error, 2 wrong input, 3 a check failed, 4 a tool is missing.
Flags win over rammerc.yaml (in the current folder, or --config), which wins over defaults.`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.PersistentFlags().Bool("json", false, "print the result as JSON on standard output")
	root.PersistentFlags().BoolP("quiet", "q", false, "no progress on standard error")
	root.PersistentFlags().String("config", "", "configuration file (default: rammerc.yaml when there is one)")
	root.PersistentFlags().Bool("print-config", false, "print the flags in force, as a configuration file, and stop")
	root.AddCommand(
		newCompile(), newRun(), newVerify(), newBench(), newCheck(), newInspect(), newOps(), newDevices(), newVersion(),
	)
	for _, c := range root.Commands() {
		c.Args = usageArgs(c.Args)
		c.RunE = withConfig(c.RunE)
	}
	return root
}

// usageArgs marks errors of positional arguments as the user's.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usageError{err}
		}
		return nil
	}
}

// ui is the progress display of a command.
func ui(cmd *cobra.Command) *driver.UI {
	quiet, _ := cmd.Flags().GetBool("quiet")
	if f, ok := cmd.ErrOrStderr().(*os.File); ok {
		return driver.NewUI(f, quiet)
	}
	return &driver.UI{W: cmd.ErrOrStderr(), Quiet: quiet}
}

// emit prints a command's result: v as JSON with --json, otherwise what text writes.
func emit(cmd *cobra.Command, v any, text func(w io.Writer)) {
	if asJSON, _ := cmd.Flags().GetBool("json"); asJSON {
		printJSON(cmd.OutOrStdout(), v)
		return
	}
	text(cmd.OutOrStdout())
}
