package codegen

import (
	"fmt"
	"io"
)

type file struct {
	name  string
	write func(io.Writer) error
}

// files lists everything but the weights file, which is written first because its hash goes into others.
func files(l *layout) []file {
	n := l.opt.Name
	out := []file{
		{n + ".cu", l.writeSource},
		{n + ".h", text(l.header())},
		{n + ".plan.json", l.writePlan},
		{n + ".map", text(fmt.Sprintf("{ global: %s_*; local: *; };\n", n))},
	}
	for _, name := range emulatorFiles() {
		out = append(out, file{name, text(string(emulatorFile(name)))})
	}
	return out
}

func text(s string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, s)
		return err
	}
}
