package commands

import (
	"strings"
	"testing"

	"github.com/rammerc/rammerc/internal/driver"
	"github.com/rammerc/rammerc/internal/runner"
)

// TestSanitizerFindings: a process that ended badly after answering everything is a failed check when
// it ran under ThreadSanitizer, else a crash.
func TestSanitizerFindings(t *testing.T) {
	crash := &runner.Crash{State: "exit status 66", Stderr: "WARNING: ThreadSanitizer: data race"}
	err := closingError(crash, true)
	if driver.ExitCode(err) != driver.ExitCheck || !strings.Contains(err.Error(), "data race") {
		t.Errorf("got %v", err)
	}
	if err := closingError(crash, false); driver.ExitCode(err) != driver.ExitInternal {
		t.Errorf("got %v", err)
	}
}
