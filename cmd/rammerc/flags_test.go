package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// The configuration of the current folder may be a stranger's. So of every flag that takes a text it is known whether it
// says which program runs (commandLineOnly), where something is written (writing), or only what is read or chosen.
func TestFlagsThatStrangersMaySet(t *testing.T) {
	reads := strings.Fields("bind input expect data calibrate model device base profiles programs plan")
	chooses := strings.Fields("shape dim state typical generate name emit target policy precision precision-of weights " +
		"engine gpu format end-token max-regress")
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			switch f.Value.Type() {
			case "bool", "int", "int64", "uint64", "float64", "duration":
				return
			}
			known := 0
			for _, is := range []bool{
				onlyCommandLine(cmd, f.Name) != "", writing[f.Name], unconfigurable[f.Name],
				slices.Contains(reads, f.Name), slices.Contains(chooses, f.Name),
			} {
				if is {
					known++
				}
			}
			if known != 1 {
				t.Errorf("%s --%s is in %d of the lists, want one", cmd.CommandPath(), f.Name, known)
			}
		})
		for _, c := range cmd.Commands() {
			visit(c)
		}
	}
	visit((&app{}).root())
}
