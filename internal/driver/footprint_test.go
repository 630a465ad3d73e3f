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
	const (
		gemm    = "_ZN2rk4GemmILi3ENS0_9functor_1ES2_E13compute_rtaskERKNS_4TaskE"
		cell    = "_ZN2rk4CellILi3EE13compute_rtaskERKNS_4TaskE"
		load    = "_ZN2rk4CellILi3EE4loadERKNS_4TaskE"
		runGemm = "_ZN2rt3VEUINS_7ProgramEE7computeINS_2rk4GemmILi3ENS5_9functor_1ES7_EEEEvPKvi"
		runCell = "_ZN2rt3VEUINS_7ProgramEE12run_residentINS_2rk4CellILi3EEEEEjj"
	)
	frames := func(inner string, innerLine int, run string, call int) []toolchain.Frame {
		return []toolchain.Frame{{Function: "f", Line: 3}, {Function: inner, Line: innerLine}, {Function: run, Line: 3},
			{Function: "g", Line: call}, {Line: 3}}
	}
	got := codeByInstance(lines, []toolchain.Span{
		{Bytes: 100, Frames: frames(gemm, 3, runGemm, 1)},
		{Bytes: 40, Frames: frames(cell, 3, runCell, 2)},
		{Bytes: 500, Frames: frames(gemm, 3, runCell, 2)}, // the table took one call for the other
		{Bytes: 20, Frames: frames(load, 3, runCell, 2)},
		{Bytes: 9, Frames: []toolchain.Frame{{Function: runCell, Line: 3}, {Line: 2}}},
		{Bytes: 7, Frames: []toolchain.Frame{{Line: 3}}},
		{Bytes: 3},
		{Bytes: 1, Frames: []toolchain.Frame{{Line: 99}}},
		{Bytes: 16, Routine: true},
	})
	want := []InstanceCode{{"gemm_A", 600}, {"cell_B", 60}, {arithmeticCode, 16}, {executorCode, 11},
		{runsOf("cell_B"), 9}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
