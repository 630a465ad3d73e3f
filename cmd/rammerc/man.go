package main

import (
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/rammerc/rammerc/internal/commands"
	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/driver"
)

// manCommand writes man pages, one for each command, for packagers.
func (a *app) manCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "man DIR",
		Short:  "Write man pages into a directory",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			err := os.MkdirAll(args[0], 0o777)
			if err == nil {
				err = doc.GenManTree(cmd.Root(), manHeader(), args[0])
			}
			if err != nil {
				return &diag.Diagnostic{ID: "cannot-write", File: args[0], Message: err.Error()}
			}
			a.emit(cmd, commands.ManPages{Schema: "rammerc/man/v1", Dir: args[0]}, func(io.Writer) {})
			return nil
		},
	}
}

// manHeader dates the pages with the commit they are made from, so that they do not depend on the clock.
func manHeader() *doc.GenManHeader {
	v := driver.Version()
	date, err := time.Parse(time.RFC3339, v.Time)
	if err != nil {
		date = time.Unix(0, 0).UTC()
	}
	return &doc.GenManHeader{Section: "1", Source: "rammerc " + v.Version, Manual: "rammerc manual", Date: &date}
}
