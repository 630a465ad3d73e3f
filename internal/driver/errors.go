package driver

import (
	"errors"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/runner"
	"github.com/rammerc/rammerc/internal/toolchain"
)

// Exit statuses of the command, as its manual has them.
const (
	ExitOK       = 0
	ExitInternal = 1 // a bug of rammerc, or a machine that fails: a full disk
	ExitInput    = 2 // the user's model, data, flags or files
	ExitCheck    = 3 // what the user asked to be checked does not hold
	ExitTool     = 4 // a compiler or a GPU is missing, or a compiler fails, or a child is killed
)

// CheckError says that a check the user asked for did not hold: results differ, or there was a data race.
type CheckError struct{ Message string }

func (e *CheckError) Error() string { return e.Message }

// ExitCode maps an error to the process's exit status.
func ExitCode(err error) int {
	var check *CheckError
	var crash *runner.Crash
	var internal *InternalError
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &internal):
		return ExitInternal
	case errors.As(err, &check), errors.As(err, &crash) && crash.Under != "":
		return ExitCheck
	case toolchain.IsMissing(err), toolchain.HasFailed(err), errors.As(err, &crash) && crash.Killed:
		return ExitTool
	case len(diag.All(err)) > 0:
		return ExitInput
	}
	return ExitInternal
}
