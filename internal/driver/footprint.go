package driver

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strings"

	"github.com/rammerc/rammerc/codegen"
	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/progress"
	"github.com/rammerc/rammerc/internal/toolchain"
)

// LargeCode is how many bytes of machine code an rKernel instance may have without a warning.
const LargeCode = 8 << 10

// Names for code that belongs to no instance.
const (
	executorCode   = "(executor)"
	arithmeticCode = "(arithmetic)" // routines that nvcc adds once, for rare cases of divisions and roots
)

// runsOf names the executor's loop over consecutive steps of an instance that keeps a constant on chip. The loop is
// compiled once for each such instance and is not part of the rKernel.
func runsOf(instance string) string { return "(runs of " + instance + ")" }

// InstanceCode is the machine code that came from one rKernel instance, or from the executor.
type InstanceCode struct {
	Instance string `json:"instance"`
	Bytes    int64  `json:"bytes"`
}

// footprint computes how much of the machine code belongs to each instance, and warns of large ones. spans are pieces
// of the code with the lines of NAME.cu at which they were inlined.
func (c *Compilation) footprint(job *Job, dir string, r *Compiled, spans []toolchain.Span) error {
	source, err := os.ReadFile(filepath.Join(dir, r.Name+".cu"))
	if err != nil {
		return err
	}
	r.Code = codeByInstance(strings.Split(string(source), "\n"), spans)
	var large []*diag.Diagnostic
	for _, k := range r.Code {
		if k.Bytes > LargeCode && !strings.HasPrefix(k.Instance, "(") {
			large = append(large, &diag.Diagnostic{
				Severity: diag.Warning, ID: "large-code", File: c.opt.Path,
				Message: fmt.Sprintf("the rKernel instance %s is %s of machine code; where it runs once in an inference, "+
					"fetching it takes longer than it should", k.Instance, progress.Bytes(k.Bytes)),
			})
		}
	}
	job.Warn(large)
	return nil
}

// codeByInstance adds up the spans of each instance, the largest first. lines are those of NAME.cu.
//
// The frames of a span lead from the innermost function out to the executor, which calls every instance on a line of
// its own. That line would name the instance, but the compiler's line table sometimes takes one such call for another.
// The mangled name of the rKernel's function is certain, so it decides where a frame has one. Code that the compiler
// found in two instances and kept once counts for one of them.
func codeByInstance(lines []string, spans []toolchain.Span) []InstanceCode {
	called := callers(lines, spans)
	sum := map[string]int64{}
	for _, s := range spans {
		name := executorCode
		if s.Routine {
			name = arithmeticCode
		}
		for i, f := range s.Frames {
			if in := instanceAt(lines, f); in != "" {
				name = in
				if i > 0 && strings.Contains(s.Frames[i-1].Function, runFunction) {
					name = runsOf(in)
				}
			}
			if k := kernelOf(f.Function); k != "" && i+1 < len(s.Frames) {
				if in := called.instance(k); in != "" {
					name = in
					break
				}
			}
		}
		sum[name] += s.Bytes
	}
	out := make([]InstanceCode, 0, len(sum))
	for _, name := range slices.Sorted(maps.Keys(sum)) {
		out = append(out, InstanceCode{name, sum[name]})
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].Bytes > out[j].Bytes })
	return out
}

// instanceAt is the instance that a frame's line calls.
func instanceAt(lines []string, f toolchain.Frame) string {
	if f.Line < 1 || f.Line > len(lines) {
		return ""
	}
	return codegen.InstanceAt(lines[f.Line-1])
}

// callerTable has those functions of the executor that run an instance, each with its instance.
type callerTable []struct{ function, instance string }

func callers(lines []string, spans []toolchain.Span) callerTable {
	found := map[string]string{}
	for _, s := range spans {
		for i := 1; i < len(s.Frames); i++ {
			if in := instanceAt(lines, s.Frames[i]); in != "" {
				found[withoutSubstitutions(s.Frames[i-1].Function)] = in
			}
		}
	}
	var t callerTable
	for _, fn := range slices.Sorted(maps.Keys(found)) {
		t = append(t, struct{ function, instance string }{fn, found[fn]})
	}
	return t
}

// instance is the instance that is run by the function whose template argument is the given kernel.
func (t callerTable) instance(kernel string) string {
	for _, c := range t {
		if strings.Contains(c.function, kernel) {
			return c.instance
		}
	}
	return ""
}

// runFunction is part of the mangled name of the executor's loop over consecutive steps (runsOf).
const runFunction = "12run_resident"

// kernelMembers are the functions of an rKernel that the executor calls, as mangled names have them behind the class.
var kernelMembers = []string{"13compute_rtaskE", "4loadE", "7prepareE"}

// kernelOf is the mangled rKernel class, with its template arguments, whose member function is given; "" for functions
// that are no member of one.
func kernelOf(function string) string {
	for _, member := range kernelMembers {
		before, _, ok := strings.Cut(function, "E"+member)
		if !ok {
			continue
		}
		if at := strings.LastIndex(before, "2rk"); at >= 0 { // the namespace
			before = before[at:]
		}
		return withoutSubstitutions(before)
	}
	return ""
}

// substitution is how a mangled name refers to a part that it has already spelled out. Its number depends on the whole
// name, so that the same class is spelled differently in different names.
var substitution = regexp.MustCompile(`S[0-9A-Z]*_`)

func withoutSubstitutions(mangled string) string { return substitution.ReplaceAllString(mangled, "") }
