package driver

import (
	"reflect"
	"testing"

	"github.com/rammerc/rammerc/internal/toolchain"
)

func TestCodeByInstance(t *testing.T) {
	lines := []string{
		"  case 0: return veu.template compute<kernels::gemm_A>(args, rtask);",
		"  case 1: return veu.template run_resident<kernels::cell_B>(step);",
		"  x += y;",
	}
	got := codeByInstance(lines, []toolchain.Span{
		{Bytes: 100, Lines: []int{3, 1}}, {Bytes: 40, Lines: []int{2}}, {Bytes: 7, Lines: []int{3}}, {Bytes: 500, Lines: []int{3, 2}},
		{Bytes: 3}, {Bytes: 1, Lines: []int{99}},
	})
	want := []InstanceCode{{"cell_B", 540}, {"gemm_A", 100}, {executorCode, 11}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
