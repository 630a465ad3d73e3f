package diag

import (
	"errors"
	"fmt"
	"io/fs"
)

// New makes a diagnostic without a place, such as one about a flag. The message is formatted as by fmt.Sprintf.
func New(id, format string, args ...any) *Diagnostic {
	return &Diagnostic{ID: id, Message: fmt.Sprintf(format, args...)}
}

// InFile sets the file of every diagnostic in err that names none, and returns err. A stage that works on a graph
// does not know which file the graph came from; its caller does.
func InFile(err error, file string) error {
	for _, d := range All(err) {
		if d.File == "" {
			d.File = file
		}
	}
	return err
}

// Reason strips the operation and the path from an error of package os, for messages that name the file
// themselves: "open x.npy: no such file or directory" becomes "no such file or directory".
func Reason(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
