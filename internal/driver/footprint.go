package driver

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/rammerc/rammerc/codegen"
	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/toolchain"
)

// LargeCode is how many bytes of machine code an rKernel instance may have without a warning.
const LargeCode = 8 << 10

// executorCode stands for the code of no instance.
const executorCode = "(executor)"

// InstanceCode is the machine code that came from one rKernel instance, or from the executor.
type InstanceCode struct {
	Instance string `json:"instance"`
	Bytes    int64  `json:"bytes"`
}

// footprint tells every instance's code from the others', by the lines of NAME.cu that it was inlined at,
// and warns of large ones.
func (c *compilation) footprint(ui *UI, dir string, r *Compiled, spans []toolchain.Span) error {
	source, err := os.ReadFile(filepath.Join(dir, r.Name+".cu"))
	if err != nil {
		return err
	}
	r.Code = codeByInstance(strings.Split(string(source), "\n"), spans)
	var large []*diag.Diagnostic
	for _, k := range r.Code {
		if k.Bytes > LargeCode && k.Instance != executorCode {
			large = append(large, &diag.Diagnostic{
				Severity: diag.Warning, ID: "large-code", File: c.opt.Path,
				Message: fmt.Sprintf("the rKernel instance %s is %s of machine code; where it runs once in an inference, fetching it takes longer than it should", k.Instance, byteCount(k.Bytes)),
			})
		}
	}
	ui.Warn(large)
	return nil
}

// codeByInstance adds up spans, the largest instance first.
func codeByInstance(lines []string, spans []toolchain.Span) []InstanceCode {
	sum := map[string]int64{}
	for _, s := range spans {
		name := executorCode
		for _, line := range s.Lines {
			if line < 1 || line > len(lines) {
				continue
			}
			if in := codegen.InstanceAt(lines[line-1]); in != "" {
				name = in
			}
		}
		sum[name] += s.Bytes
	}
	out := make([]InstanceCode, 0, len(sum))
	for _, name := range sortedNames(sum) {
		out = append(out, InstanceCode{name, sum[name]})
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].Bytes > out[j].Bytes })
	return out
}
