package difftest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/internal/commands"
	"github.com/rammerc/rammerc/internal/driver"
	"github.com/rammerc/rammerc/internal/toolchain"
	"github.com/rammerc/rammerc/ir"
)

// stepper grows a model that takes a few rows in each run and keeps states: caches, to which each run appends rows, and
// one that it replaces. All rows are as long.
type stepper struct {
	*rand.Rand
	text   strings.Builder
	width  int
	rows   []string // values of shape [batch,seq,width]
	caches []string // of shape [batch,past+seq,width]
	names  int
}

func (s *stepper) name() string { s.names++; return "%v" + strconv.Itoa(s.names) }

// put adds a node with one result.
func (s *stepper) put(format string, args ...any) string {
	v := s.name()
	fmt.Fprintf(&s.text, "  %s = %s\n", v, fmt.Sprintf(format, args...))
	return v
}

func (s *stepper) row() string { return s.rows[s.IntN(len(s.rows))] }

// weight is a constant matrix.
func (s *stepper) weight() string {
	v := s.name()
	list := make([]string, s.width*s.width)
	for i := range list {
		list[i] = fmt.Sprintf("%.3f", (s.Float64()-0.5)*2/float64(s.width))
	}
	fmt.Fprintf(&s.text, "  %s = const float32[%d,%d] {%s}\n", v, s.width, s.width, strings.Join(list, ", "))
	return v
}

// attend has rows attend to all rows of a cache.
func (s *stepper) attend() string {
	keys := s.caches[s.IntN(len(s.caches))]
	scores := s.put("MatMul(%s, %s)", s.row(), s.put("Transpose(%s) {perm = [0, 2, 1]}", keys))
	return s.put("MatMul(%s, %s)", s.put("Softmax(%s)", scores), keys)
}

// step adds an operator on rows.
func (s *stepper) step() string {
	switch s.IntN(7) {
	case 0:
		return s.put("MatMul(%s, %s)", s.row(), s.weight())
	case 1:
		return s.put("%s(%s, %s)", []string{"Add", "Sub", "Mul", "Max"}[s.IntN(4)], s.row(), s.row())
	case 2:
		return s.put("%s(%s)", []string{"Tanh", "Sigmoid", "Neg", "Softmax", "Relu"}[s.IntN(5)], s.row())
	case 3:
		return s.put("Add(%s, %s)", s.row(), s.put("Unsqueeze(%%h, %%one)"))
	case 4: // one branch or the other, as the state says
		a, b, t := s.row(), s.row(), fmt.Sprintf("float32[batch,seq,%d]", s.width)
		x, y := s.name(), s.name()
		return s.put("If(%%positive) {then_branch = graph \"then\" () {\n      %s: %s = Tanh(%s)\n      return %s\n    }, "+
			"else_branch = graph \"else\" () {\n      %s: %s = Abs(%s)\n      return %s\n    }}", x, t, a, x, y, t, b, y)
	}
	if len(s.caches) > 0 {
		return s.attend()
	}
	return s.put("Exp(%s)", s.put("Tanh(%s)", s.row()))
}

// growStates is the model of a seed, as text without the types of results, and its states.
func growStates(seed uint64) (text string, states []string) {
	s := &stepper{Rand: rand.New(rand.NewPCG(seed, 17)), rows: []string{"%x"}}
	s.width = []int{4, 6, 8}[s.IntN(3)]
	inputs := fmt.Sprintf("%%x: float32[batch,seq,%d], %%h: float32[batch,%[1]d]", s.width)
	s.text.WriteString("  %one = const int64[1] {1}\n  %zero = const float32[] {0}\n")
	s.put("ReduceSum(%%h) {keepdims = 0}")
	fmt.Fprintf(&s.text, "  %%positive = Greater(%%v%d, %%zero)\n", s.names)
	results, states := []string{}, []string{"h=next"}
	for c := range 1 + s.IntN(2) {
		for range s.IntN(3) {
			s.rows = append(s.rows, s.step())
		}
		inputs += fmt.Sprintf(", %%past%d: float32[batch,past,%d]", c, s.width)
		fmt.Fprintf(&s.text, "  %%present%d = Concat(%%past%[1]d, %s) {axis = 1}\n", c, s.row())
		s.caches = append(s.caches, "%present"+strconv.Itoa(c))
		results, states = append(results, s.caches[c]), append(states, fmt.Sprintf("past%d=present%[1]d", c))
	}
	s.rows = append(s.rows, s.attend())
	for range 2 + s.IntN(5) {
		s.rows = append(s.rows, s.step())
	}
	mean := s.put("ReduceMean(%s, %%one) {keepdims = 0}", s.rows[len(s.rows)-1])
	kept := s.put("MatMul(%%h, %s)", s.weight())
	fmt.Fprintf(&s.text, "  %%next = Tanh(%s)\n", s.put("Add(%s, %s)", kept, mean))
	results = append(results, "%next", s.rows[len(s.rows)-1])
	return fmt.Sprintf("graph \"states\" (%s) {\n%s  return %s\n}\n", inputs, &s.text, strings.Join(results, ", ")), states
}

// TestStates compares programs that keep states with the evaluator, run after run, on random models: caches grow in place,
// and what a run leaves is what the next one begins with. Each is a library of its own, so DIFFTEST_SEEDS=FROM:TO has it
// draw one for 25 graphs of TestGraphs.
func TestStates(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: builds programs")
	}
	if _, err := toolchain.FindCxx(""); err != nil {
		t.Skip(err)
	}
	from, to := seeds(t)
	to = from + max(2, (to-from)/25)
	if os.Getenv("DIFFTEST_SEEDS") == "" {
		to = from + 2
	}
	for seed := from; seed < to; seed++ {
		text, states := growStates(seed)
		if err := statesDiffer(t.TempDir(), text, states, seed); err != nil {
			t.Errorf("seed %d: %v\n%s", seed, err, text)
		}
	}
}

// statesDiffer compiles a model and runs it a few times.
func statesDiffer(dir, text string, states []string, seed uint64) error {
	g, err := ir.ParseText("states", []byte(inferText(text)), ir.ParseOptions{})
	if err != nil {
		return err
	}
	if err := ir.InferShapes(g).Err(); err != nil {
		return err
	}
	path := filepath.Join(dir, "states.rir")
	if err := os.WriteFile(path, []byte(g.String()), 0o644); err != nil {
		return err
	}
	c := driver.CompileOptions{Out: filepath.Join(dir, "lib"), Target: driver.TargetEmu, Emit: driver.EmitLibrary,
		States: states, Check: true, Seed: seed}
	c.Path, c.Dims = path, []string{"batch=1..2", "seq=1..3", "past=0..9"}
	if _, err := driver.Compile(&driver.Job{}, c); err != nil {
		return err
	}
	o := commands.VerifyOptions{Model: path, Samples: 12, RandomSeed: seed}
	o.Path = c.Out
	r, err := commands.Verify(&driver.Job{}, o)
	if err == nil && !r.OK {
		err = fmt.Errorf("%+v", r.Outputs)
	}
	return err
}

// inferText leaves the types of results to inference.
func inferText(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "  %") && !strings.Contains(line, " = const") {
			lines[i] = strings.Replace(line, " = ", ": invalid? = ", 1)
		}
	}
	return strings.Join(lines, "\n")
}
