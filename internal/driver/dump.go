package driver

import (
	"fmt"
	"strings"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/dump"
)

// openDump opens the directory of --dump and puts a script that repeats the compilation there. Without --dump it
// returns nil, which writes nothing.
func openDump(job *Job, opt CompileOptions) (*dump.Dir, error) {
	if opt.Dump == "" {
		return nil, nil
	}
	d, err := dump.Create(opt.Dump)
	if err == nil {
		err = d.WriteNamed("repro.sh", []byte(script(opt.Command)))
	}
	if err != nil {
		return nil, &diag.Diagnostic{
			ID: "cannot-write", File: opt.Dump, Message: diag.Reason(err).Error(),
			Help: "choose another directory with --dump",
		}
	}
	job.dump = opt.Dump
	return d, nil
}

// script is a shell script that runs command where it was run before.
func script(command []string) string {
	var b strings.Builder
	v := Version()
	fmt.Fprintf(&b, "#!/bin/sh\n# Repeats the compilation; paths are as given. Made by rammerc %s %s.\n", v.Version,
		v.Commit)
	for i, a := range command {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString("'" + strings.ReplaceAll(a, "'", `'\''`) + "'")
	}
	b.WriteByte('\n')
	return b.String()
}
