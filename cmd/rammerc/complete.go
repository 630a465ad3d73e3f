package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/driver"
	"github.com/rammerc/rammerc/internal/engine"
	"github.com/rammerc/rammerc/precision"
)

// completeFlags registers the values that shells offer for flags and arguments, on every command that has them.
func completeFlags(root *cobra.Command) {
	fixed := map[string][]string{
		"target": driver.Targets(), "device": driver.DeviceNames(), "plan": driver.Plans(),
		"policy":    driver.PolicyNames(),
		"precision": precision.Names(), "weights": driver.Weights(),
		"emit": driver.Emits(), "engine": engine.Names(), "format": benchFormats,
		"base": driver.DeviceNames(),
	}
	fromModel := map[string]func(model string) []string{
		"dim": driver.DeclaredDims, "shape": driver.DeclaredInputs, "input": driver.DeclaredInputs,
	}
	for _, cmd := range root.Commands() {
		for flag, values := range fixed {
			if cmd.Flags().Lookup(flag) != nil {
				_ = cmd.RegisterFlagCompletionFunc(flag,
					cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
			}
		}
		for flag, names := range fromModel {
			if cmd.Flags().Lookup(flag) != nil {
				_ = cmd.RegisterFlagCompletionFunc(flag, completeNames(names))
			}
		}
		switch {
		case strings.Contains(cmd.Use, "LIBDIR"):
			cmd.ValidArgsFunction = completeLibrary(strings.Contains(cmd.Use, "MODEL"), strings.Contains(cmd.Use, "…"))
		case strings.Contains(cmd.Use, "MODEL"):
			cmd.ValidArgsFunction = completeModel
		}
	}
}

// addCompletion adds cobra's command completion, and makes it report a shell that it does not know. By itself the
// command would print its help then.
func addCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() != "completion" {
			continue
		}
		c.RunE = func(_ *cobra.Command, args []string) error {
			return &diag.Diagnostic{
				ID: "bad-shell", Message: fmt.Sprintf("no known shell among %q", args),
				Help: "shells are bash, fish, powershell, zsh",
			}
		}
		c.Args = cobra.ArbitraryArgs
	}
}

// completeNames offers NAME= for the names found in the model that is the first argument.
func completeNames(names func(model string) []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 || strings.Contains(word, "=") {
			return nil, cobra.ShellCompDirectiveDefault
		}
		var out []string
		for _, n := range names(args[0]) {
			out = append(out, n+"=")
		}
		return out, cobra.ShellCompDirectiveNoSpace
	}
}

func completeModel(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return []string{"onnx", "rir"}, cobra.ShellCompDirectiveFilterFileExt
}

// completeLibrary offers the library directories in the folder of what has been typed, and models where a command takes
// these, too. What only leads to either is left to the shell.
func completeLibrary(models, several bool) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 && !several {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var found []string
		for _, l := range driver.LibrariesIn(filepath.Dir(word + "x")) {
			found = append(found, cobra.CompletionWithDesc(l.Dir, "library "+l.Name))
		}
		if models {
			for _, pattern := range []string{"*.onnx", "*.rir"} {
				files, _ := filepath.Glob(filepath.Join(filepath.Dir(word+"x"), pattern))
				for _, f := range files {
					found = append(found, cobra.CompletionWithDesc(f, "model"))
				}
			}
		}
		found = slices.DeleteFunc(found, func(c string) bool { return !strings.HasPrefix(c, word) })
		if len(found) > 0 {
			return found, cobra.ShellCompDirectiveNoFileComp
		}
		if models {
			return completeModel(nil, nil, word)
		}
		return nil, cobra.ShellCompDirectiveFilterDirs
	}
}
