package driver

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/codegen/abi"
	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/schema"
)

// A launch list says of each launch what its kernel reads: addresses lie in the memories, and steps know where their
// arguments are. That programs run by their launch lists is tested in interop/cu.
func TestCubin(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	model := filepath.Join("..", "..", "testdata", "models", "digits_branchy.onnx")
	r, err := Compile(&Job{}, CompileOptions{ModelOptions: ModelOptions{Path: model}, Out: dir, Target: TargetEmu,
		Plan: "rprogram", Emit: EmitCubin})
	if err != nil {
		t.Fatal(err)
	}
	if want := "files.json launches.json plan.json tables weights cubin"; len(r.Artefacts) != len(strings.Fields(want)) {
		t.Errorf("made %v, want %s", r.Artefacts, want)
	}
	var list abi.LaunchList
	data, err := os.ReadFile(filepath.Join(dir, "digits_branchy.launches.json"))
	if err == nil {
		err = json.Unmarshal(data, &list)
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Segments) != 1 || list.Segments[0].Whole == nil || list.Segments[0].Whole.Blocks != 4 {
		t.Fatalf("want one segment, an rProgram of 4 vEUs: %+v", list.Segments)
	}
	for i, l := range append(list.Segments[0].Launches, *list.Segments[0].Whole) {
		checkLaunch(t, &list, i, &l)
	}
	checkArgs(t, dir, &list)
}

// checkLaunch checks that addresses lie in their memories, and beside each other in the parameter.
func checkLaunch(t *testing.T, list *abi.LaunchList, i int, l *abi.Launch) {
	t.Helper()
	sizes := map[string]int64{}
	for _, m := range list.Memories {
		sizes[m.Name] = max(m.Bytes, 1)
	}
	if len(l.Parameter) != list.Kernels[l.Kernel].ParameterBytes {
		t.Errorf("launch %d has a parameter of %d bytes, want %d", i, len(l.Parameter), list.Kernels[l.Kernel].ParameterBytes)
	}
	taken := map[int]bool{}
	for _, a := range l.Addresses {
		if a.At%8 != 0 || a.At+8 > len(l.Parameter) || taken[a.At] {
			t.Errorf("launch %d: an address has no place of its own at %d", i, a.At)
		}
		taken[a.At] = true
		if size := sizes[a.Of]; a.Of != "input" && a.Of != "output" && a.Plus >= size {
			t.Errorf("launch %d: %s has %d bytes, and an address lies at %d", i, a.Of, size, a.Plus)
		}
	}
	if l.Threads > list.Kernels[l.Kernel].Threads || l.Shared > list.Kernels[l.Kernel].Shared {
		t.Errorf("launch %d takes more than its kernel allows: %+v", i, l)
	}
}

// checkArgs checks that each step's arguments are behind the tables, each rOperator's at a place of its own.
func checkArgs(t *testing.T, dir string, list *abi.LaunchList) {
	t.Helper()
	tables, err := os.ReadFile(filepath.Join(dir, "digits_branchy.tables"))
	if err != nil {
		t.Fatal(err)
	}
	args := int64(0) // the arguments stand behind all tables, of which the steps' is the first
	for _, a := range list.Segments[0].Whole.Addresses {
		if a.Of == "tables" {
			args = max(args, a.Plus)
		}
	}
	places := map[uint32]uint32{}
	for at := 0; at < 16*schema.StepBytes; at += schema.StepBytes {
		op, place := binary.LittleEndian.Uint32(tables[at:]), binary.LittleEndian.Uint32(tables[at+8:])
		words := binary.LittleEndian.Uint16(tables[at+20:])
		if before, known := places[op]; known && before != place {
			t.Errorf("the arguments of rOperator %d are at %d and at %d", op, before, place)
		}
		places[op] = place
		if end := args + int64(place) + 16*int64(words); words == 0 || end > int64(len(tables)) {
			t.Errorf("the arguments of rOperator %d end at %d of %d bytes", op, end, len(tables))
		}
	}
	distinct := map[uint32]bool{}
	for _, place := range places {
		distinct[place] = true
	}
	if len(places) != 12 || len(distinct) != len(places) {
		t.Errorf("12 rOperators have arguments at %v", places)
	}
}

// Programs whose host code sets what changes from run to run are refused.
func TestCubinOfRanges(t *testing.T) {
	model := filepath.Join("..", "..", "testdata", "models", "digits_branchy_dyn.onnx")
	_, err := Compile(&Job{}, CompileOptions{ModelOptions: ModelOptions{Path: model, Dims: []string{"batch=1..4"}},
		Out: filepath.Join(t.TempDir(), "out"), Target: TargetEmu, Emit: EmitCubin})
	var d *diag.Diagnostic
	if !errors.As(err, &d) || d.ID != "cubin-general" {
		t.Errorf("got %v, want cubin-general", err)
	}
}
