package toolchain

import (
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// lineTable is a table with the header that nvcc writes, the given files and the given program.
func lineTable(files []string, program ...byte) []byte {
	le := binary.LittleEndian
	head := []byte{1, 1, 0xfb, 14, 10, 0, 1, 1, 1, 1, 0, 0, 0, 1} // line base -5, range 14, opcodes from 10
	head = append(head, "folder\x00\x00"...)
	for _, f := range files {
		head = append(head, f+"\x00\x01\x00\x00"...)
	}
	head = append(head, 0)
	body := le.AppendUint16(nil, 2)
	body = le.AppendUint32(body, uint32(len(head)))
	body = append(append(body, head...), program...)
	return append(le.AppendUint32(nil, uint32(len(body))), body...)
}

func TestSpans(t *testing.T) {
	address := []byte{0, 9, extSetAddress, 0x10, 0, 0, 0, 0, 0, 0, 0}
	names := []byte("f\x00inner\x00")
	program := slices.Concat(address, []byte{
		opAdvanceLine, 9, opCopy, // row 1: line 10 at 0x10
		opSetFile, 2, opAdvanceLine, 20, 0, 3, extInlinedCall, 1, 2, opAdvancePC, 0x20, opCopy, // row 2: the header's line 30 at 0x30, in row 1
		opSetFile, 3, opAdvanceLine, 0x7b, 0, 3, extInlinedCall, 2, 0, 10 + 5 + 14*0, // row 3: line 25 at the same address, in row 2
		opSetFile, 1, 0, 3, extInlinedCall, 0, 0, 10 + 5 + 1 + 14*16, // row 4: line 26 at 0x40
		opAdvancePC, 0x80, 1, 0, 1, extEndSequence, // up to 0xc0
	})
	table := lineTable([]string{"k.cu", "header.h", "other.hpp"}, program...)
	places := map[int]string{len(table) - len(program) + 3: ".text.k"}
	own := []routine{{".text.k", 0xb0, 0xc0}, {".text.k", 0xa0, 0xb0}, {".text.other", 0x10, 0xc0}}
	got, err := spansOf(table, names, places, own)
	want := []Span{
		{".text.k", 0x20, []Frame{{"", 10}}, false}, {".text.k", 0x10, []Frame{{"", 10}}, false},
		{".text.k", 0x10, nil, true},
		{".text.k", 0x10, nil, true}, {".text.k", 0x60, []Frame{{"", 26}}, false},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	if twice, err := spansOf(append(slices.Clone(table), table...), names, places, nil); err != nil || len(twice) != 6 {
		t.Errorf("two units give %v, %v", twice, err)
	}
	for n := range table {
		if spans, err := spansOf(table[:n], names, places, nil); n > 0 && err == nil {
			t.Errorf("of %d bytes the first %d give %v", len(table), n, spans)
		}
	}
}

// The spans of a kernel are all of its code, and tell calls apart that were inlined.
func TestSpansOfKernel(t *testing.T) {
	nvcc, err := FindNVCC("")
	if err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	source := `template <int N>
__device__ __forceinline__ float work(float x, const float* p) {
#pragma unroll
  for (int i = 0; i < N; ++i) x = x * p[i * 33] + p[i];
  return x / p[1];
}
__global__ void k(float* out, const float* p, int which) {
  float x = out[threadIdx.x];
  if (which == 0)
    x = work<4>(x, p);
  else
    x = work<40>(x, p);
  out[threadIdx.x] = x;
}
`
	for name, text := range map[string]string{"k.cu": source, "k.map": "{ local: *; };\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	b, err := nvcc.BuildLibrary(context.Background(), dir, "k", []string{"sm_90"}, LineInfo)
	if err != nil {
		t.Fatal(err)
	}
	var all, own int64
	at := map[int]int64{}
	for _, s := range b.Spans {
		all += s.Bytes
		if s.Routine {
			own += s.Bytes
		}
		for _, f := range s.Frames {
			at[f.Line] += s.Bytes
			if f.Line == 4 && !strings.Contains(f.Function, "work") {
				t.Errorf("line 4 is in %q", f.Function)
			}
		}
	}
	if len(b.Kernels) != 1 || all != b.Kernels[0].CodeBytes {
		t.Errorf("the spans have %d bytes, the kernels are %+v", all, b.Kernels)
	}
	if own == 0 {
		t.Error("no span is the routine that divisions call")
	}
	if small, large := at[10], at[12]; small == 0 || large < 4*small {
		t.Errorf("4 rounds take %d bytes, 40 take %d", small, large)
	}
}
