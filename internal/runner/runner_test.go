package runner

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rammerc/rammerc/codegen/abi"
	"github.com/rammerc/rammerc/internal/toolchain"
	"github.com/rammerc/rammerc/schema"
)

// A hand-written library with the C interface: it adds its second input's byte to its first input's
// bytes. Some second inputs make it fail in ways of their own.
const fakeLibrary = `
#include "fake.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>

struct fake_ctx { char error[64]; int runs; };
static const int64_t dims[] = {2, 2};
static const fake_tensor in[] = {{"a \"quoted\"", 2, 2, dims, 4}, {"b", 2, 0, dims, 1}};
static const fake_tensor out[] = {{"sum", 2, 2, dims, 4}, {"none", 1, 1, dims, 0}};
static const fake_io io = {2, in, 2, out};

extern "C" {
int fake_create(const fake_options* o, fake_ctx** c) {
  std::printf("printed by the library\n");
  if (o->size != sizeof *o || o->mode == fake_MODE_WAVES) return fake_NOT_RESIDENT;
  *c = new fake_ctx{};
  (*c)->runs = static_cast<int>(o->emu_seed);
  return fake_OK;
}
int fake_run(fake_ctx* c, const void* const i[], void* const o[], fake_memory) {
  const unsigned char* a = static_cast<const unsigned char*>(i[0]);
  const unsigned char b = *static_cast<const unsigned char*>(i[1]);
  std::printf("noise\n");
  if (b == 100) std::strcpy(c->error, "a hundred is too much");
  if (b == 100) return fake_RUN_FAILED;
  if (b == 101) std::fprintf(stderr, "last words"), std::abort();
  ++c->runs;
  for (int k = 0; k < 4; ++k) static_cast<unsigned char*>(o[0])[k] = a[k] + b + (b == 102 && c->runs % 2);
  return fake_OK;
}
int fake_run_async(fake_ctx*, void*, const void* const*, void* const*) { return fake_INTERNAL; }
void fake_destroy(fake_ctx* c) { delete c; }
const char* fake_last_error(const fake_ctx* c) { return c ? c->error : "not this time"; }
const fake_io* fake_io_info(void) { return &io; }
const char* fake_build_info(void) { return "{\"fake\":true}"; }
const char* fake_run_info(const fake_ctx*) { return "{\"mode\":\"waves\",\"reason\":\"test\"}"; }
int fake_trace(fake_ctx* c, void* to, size_t* bytes) {
  if (!to) *bytes = sizeof c->runs;
  else std::memcpy(to, &c->runs, *bytes);
  return c->runs > 100 ? fake_BAD_ARGUMENT : fake_OK;
}
}
`

func buildFake(t *testing.T) string {
	t.Helper()
	cxx, err := toolchain.FindCxx("")
	if err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"fake.cu": fakeLibrary, "fake.h": abi.Header("fake")} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := cxx.BuildLibrary(context.Background(), dir, "fake"); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "libfake.so")
}

// TestProtocol asks the child everything that a caller can ask, of a library that answers by its input.
//
// Long: one conversation, in which each answer depends on what was asked before.
func TestProtocol(t *testing.T) {
	lib := buildFake(t)
	l, err := Open(t.Context(), lib, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(l.Inputs) != 2 || l.Inputs[0].Name != `a "quoted"` || l.Inputs[0].Bytes != 4 || l.Outputs[0].Dims[1] != 2 {
		t.Errorf("%+v", l.Info)
	}
	if l.Launch.Mode != "waves" || string(l.Build) != `{"fake":true}` {
		t.Errorf("%+v, %s", l.Launch, l.Build)
	}
	run := func(b byte) ([][]byte, error) { return l.Run([][]byte{{1, 2, 3, 250}, {b}}) }
	for range 2 {
		out, err := run(7)
		if err != nil || !bytes.Equal(out[0], []byte{8, 9, 10, 1}) || len(out[1]) != 0 {
			t.Errorf("%v, %v", out, err)
		}
		var status *StatusError
		if _, err := run(100); !errors.As(err, &status) || status.Code != schema.StatusRunFailed ||
			status.Text != "a hundred is too much" {
			t.Errorf("got %v", err)
		}
	}
	for _, c := range []struct {
		b    byte
		want int
	}{{1, 0}, {102, 5}} {
		if n, err := l.Repeat([][]byte{{1, 2, 3, 4}, {c.b}}, 10, nil); err != nil || n != c.want {
			t.Errorf("%d runs differ, want %d; %v", n, c.want, err)
		}
	}
	if ms, err := l.Bench([][]byte{{1, 2, 3, 4}, {0}}, 2, 3); err != nil || len(ms) != 3 {
		t.Errorf("%v, %v", ms, err)
	}
	if ms, err := l.Time([][]byte{{1, 2, 3, 4}, {0}}); err != nil || ms <= 0 || l.Load <= 0 || l.Create <= 0 {
		t.Errorf("a run takes %f ms, loading %f, making a context %f; %v", ms, l.Load, l.Create, err)
	}
	before, err := l.Trace([][]byte{{1, 2, 3, 4}, {0}}, 0)
	if err != nil || len(before) != 4 {
		t.Fatalf("%v, %v", before, err)
	}
	if after, err := l.Trace([][]byte{{1, 2, 3, 4}, {0}}, 4); err != nil || after[0] != before[0]+5 {
		t.Errorf("the trace is of run %d, then with four warm-ups of run %d, %v", before[0], after[0], err)
	}
	var status *StatusError
	if _, err := l.Trace([][]byte{{1, 2, 3, 4}, {0}}, 100); !errors.As(err, &status) ||
		status.Code != schema.StatusBadArgument {
		t.Errorf("a refused trace: %v", err)
	}
	if _, err := l.Run([][]byte{{1}, {2}}); err == nil || !strings.Contains(err.Error(), "has 1 bytes, want 4") {
		t.Errorf("a short input: %v", err)
	}
	if _, err := l.Run(nil); err == nil {
		t.Error("no inputs were taken")
	}
	var crash *Crash
	if _, err := run(101); !errors.As(err, &crash) || !strings.Contains(crash.State, "abort") ||
		!strings.Contains(crash.Stderr, "last words") {
		t.Errorf("got %v", err)
	}
	if _, err := run(1); !errors.As(err, &crash) {
		t.Errorf("after the end: %v", err)
	}
}

// TestKilled: whoever ends the library's process from outside is not taken for a crash of the library.
func TestKilled(t *testing.T) {
	lib := buildFake(t)
	for signal, killed := range map[syscall.Signal]bool{syscall.SIGKILL: true, syscall.SIGTERM: true, syscall.SIGSEGV: false} {
		l, err := Open(t.Context(), lib, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := l.cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		var crash *Crash
		if _, err := l.Run([][]byte{{1, 2, 3, 4}, {0}}); !errors.As(err, &crash) || crash.Killed != killed {
			t.Errorf("%v: %v", signal, err)
		}
	}
}

func TestOpenFails(t *testing.T) {
	lib := buildFake(t)
	var status *StatusError
	if _, err := Open(t.Context(), lib, Options{Mode: Waves}); !errors.As(err, &status) ||
		status.Code != schema.StatusNotResident || status.Text != "not this time" {
		t.Errorf("got %v", err)
	}
	if _, err := Open(t.Context(), lib, Options{Name: "other"}); !errors.As(err, &status) || status.Code != -1 ||
		!strings.Contains(status.Text, "other_create") {
		t.Errorf("got %v", err)
	}
	if _, err := Open(t.Context(), lib+"x", Options{}); !errors.As(err, &status) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	l, err := Open(ctx, lib, Options{})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	var crash *Crash
	if err := l.Close(); err != nil && !errors.As(err, &crash) {
		t.Errorf("got %v", err)
	}
}

// Several contexts run at once, as often as they are asked to; a failure of one is the result.
func TestAtOnce(t *testing.T) {
	l, err := Open(t.Context(), buildFake(t), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	all, each, err := l.AtOnce([][]byte{{1, 2, 3, 4}, {5}}, 3, 4)
	if err != nil || len(each) != 12 || all <= 0 {
		t.Errorf("%v ms in all, %v, %v", all, each, err)
	}
	var status *StatusError
	if _, _, err := l.AtOnce([][]byte{{1, 2, 3, 4}, {100}}, 3, 4); !errors.As(err, &status) || status.Code != schema.StatusRunFailed {
		t.Errorf("a failing context: %v", err)
	}
	if _, _, err := l.Copies([][]byte{{1, 2, 3, 4}, {5}}, 1); err == nil {
		t.Error("copies without a device")
	}
}
