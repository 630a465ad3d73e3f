package dynamic

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/internal/commands"
	"github.com/rammerc/rammerc/internal/driver"
	"github.com/rammerc/rammerc/internal/systemtest"
)

// expertsText is a mixture of experts as exporters write it: each expert finds its tokens, takes them with their shares,
// and adds what it makes of them. How many tokens there are only a run knows. An index of -1 is the last of them.
func expertsText(experts int) string {
	b := &strings.Builder{}
	b.WriteString(`graph "experts" (%x: float32[tokens,16], %gate: float32[16,3], %w: float32[16,16]) {
  %zero = const float32[] {0}
  %two = const int64[1] {2}
  %rows = const int64[1] {1}
  %end = const int64[1,1] {-1}
  %logits = MatMul(%x, %gate)
  %scores = Softmax(%logits)
  %share: invalid?, %who = TopK(%scores, %two)
  %none = Mul(%x, %zero)
`)
	total := "none"
	for e := range experts {
		fmt.Fprintf(b, strings.ReplaceAll(`  %%e@ = const int64[] {@}
  %%mine@ = Equal(%%who, %%e@)
  %%at@ = NonZero(%%mine@)
  %%pairs@ = Transpose(%%at@)
  %%begin@ = const int64[1] {0}
  %%tuples@ = Slice(%%pairs@, %%begin@, %%rows, %%rows)
  %%given@ = GatherND(%%x, %%tuples@)
  %%made@ = MatMul(%%given@, %%w)
  %%part@ = GatherND(%%share, %%pairs@)
  %%column@ = Unsqueeze(%%part@, %%rows)
  %%scaled@ = Mul(%%made@, %%column@)
  %%total@ = ScatterND(%%%s, %%tuples@, %%scaled@) {reduction = "add"}
`, "@", fmt.Sprint(e)), total)
		total = fmt.Sprint("total", e)
	}
	fmt.Fprintf(b, "  %%last = GatherND(%%x, %%end)\n  return %%%s, %%last\n}\n", total)
	return b.String()
}

func TestExperts(t *testing.T) {
	systemtest.NeedCxx(t)
	t.Parallel()
	model, dir := systemtest.Inferred(t, expertsText(3)), filepath.Join(t.TempDir(), "lib")
	c := driver.CompileOptions{Out: dir, Target: driver.TargetEmu, Emit: driver.EmitLibrary}
	c.Path, c.Dims = model, []string{"tokens=1..12"}
	if _, err := driver.Compile(&driver.Job{}, c); err != nil {
		t.Fatal(err)
	}
	o := commands.VerifyOptions{Model: model, Samples: 20, RandomSeed: 4}
	o.Path = dir
	if r, err := commands.Verify(&driver.Job{}, o); err != nil || !r.OK || len(r.Outputs) != 2 {
		t.Errorf("%+v, %v", r, err)
	}
}
