package driver

import (
	"errors"
	"fmt"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/toolchain"
)

// Exit codes of the command (CLI manual).
const (
	ExitOK       = 0
	ExitInternal = 1
	ExitInput    = 2
	ExitCheck    = 3
	ExitTool     = 4
)

// CheckError says that a check the user asked for did not hold: results differ, a regression.
type CheckError struct{ Message string }

func (e *CheckError) Error() string { return e.Message }

// ExitCode maps an error to the process's exit status.
func ExitCode(err error) int {
	var check *CheckError
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &check):
		return ExitCheck
	case toolchain.IsMissing(err):
		return ExitTool
	case len(diag.All(err)) > 0:
		return ExitInput
	}
	return ExitInternal
}

// usage is a user error that has no file: a flag, an environment variable.
func usage(id, format string, args ...any) error {
	return &diag.Diagnostic{ID: id, Message: fmt.Sprintf(format, args...)}
}
