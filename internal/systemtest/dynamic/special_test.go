package dynamic

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/internal/commands"
	"github.com/rammerc/rammerc/internal/driver"
	"github.com/rammerc/rammerc/internal/systemtest"
)

// TestSpecial has one library for all of its parts: an encoder for ranges of extents, with special programs for three
// combinations of them.
func TestSpecial(t *testing.T) {
	systemtest.NeedCxx(t)
	t.Parallel()
	model, dir := specialLibrary(t)
	t.Run("programs", func(t *testing.T) { specialPrograms(t, model, dir) })
	t.Run("in place", func(t *testing.T) { specialInPlace(t, dir) })
	t.Run("Go package", func(t *testing.T) { specialGoPackage(t, dir) })
}

func specialLibrary(t *testing.T) (model, dir string) {
	t.Helper()
	model, dir = encoder(t, 1), filepath.Join(t.TempDir(), "lib")
	c := driver.CompileOptions{Out: dir, Name: "encoder", Target: driver.TargetEmu, Emit: driver.EmitAll}
	c.Path, c.Dims, c.Typical = model, []string{"batch=1,2", "seq=1..24"}, []string{"batch=1", "seq=5"}
	if _, err := driver.Compile(&driver.Job{}, c); err != nil {
		t.Fatal(err)
	}
	return model, dir
}

// Special programs compute what the general one does, each for the extents that are its own; a run says which one it was,
// and inspect lists them.
func specialPrograms(t *testing.T, model, dir string) {
	all := []string{"batch=1 seq=1..5", "batch=1,2 seq=1..5", "batch=1 seq=1..24", "batch=1,2 seq=1..24"}
	for _, c := range []struct {
		dims []string
		want string
	}{
		{[]string{"batch=1", "seq=1"}, all[0]}, {[]string{"batch=1", "seq=5"}, all[0]},
		{[]string{"batch=2", "seq=4"}, all[1]}, {[]string{"batch=1", "seq=6"}, all[2]},
		{[]string{"batch=2", "seq=6"}, all[3]}, {[]string{"batch=2", "seq=24"}, all[3]},
	} {
		o := commands.RunOptions{Random: true, RandomMax: 32}
		o.Path, o.Dims = dir, c.dims
		r, err := commands.Run(&driver.Job{}, o)
		if err != nil || r.Program != c.want {
			t.Errorf("%v: %+v, %v; want the program for %s", c.dims, r, err, c.want)
		}
	}
	o := commands.VerifyOptions{Model: model, Samples: 30, RandomSeed: 2, RandomMax: 32}
	o.Path = dir
	if r, err := commands.Verify(&driver.Job{}, o); err != nil || !r.OK {
		t.Errorf("%+v, %v", r, err)
	}
	i, err := commands.InspectLibrary(&driver.Job{}, dir)
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, x := range i.Specials {
		listed = append(listed, x.Dims)
		if x.Packed <= 0 || x.Packed >= x.Tables {
			t.Errorf("%s: %d bytes of tables are packed in %d", x.Dims, x.Tables, x.Packed)
		}
	}
	if !slices.Equal(listed, all[:3]) {
		t.Errorf("inspect lists %q", listed)
	}
}

// specialUser is a program that takes a library with special programs through its Go package. Whatever the limit of
// special programs on the device, each program always computes the same bits, and all compute about the same.
const specialUser = `package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"encoder"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func run(m *encoder.Model, batch, seq int64) []float32 {
	dims := []int64{batch, seq}
	check(m.SetDims([][]int64{dims, dims}))
	var ids, padding []byte
	for i := range batch * seq {
		ids = binary.LittleEndian.AppendUint64(ids, uint64(i*7%32))
		padding = binary.LittleEndian.AppendUint32(padding, 0)
	}
	if !slices.Equal(m.Outputs[0].Dims, []int64{batch, seq, 64}) {
		panic(fmt.Sprint(m.Outputs[0].Dims))
	}
	out, err := m.Run([][]byte{ids, padding})
	check(err)
	var list []float32
	for i := 0; i < len(out[0]); i += 4 {
		list = append(list, math.Float32frombits(binary.LittleEndian.Uint32(out[0][i:])))
	}
	return list
}

func main() {
	m, err := encoder.Open(encoder.Options{})
	check(err)
	defer m.Close()
	known := map[string][]float32{}
	extents := [][2]int64{{1, 3}, {2, 4}, {1, 9}, {1, 3}, {2, 20}, {1, 5}, {2, 4}}
	for _, most := range []int{16, 1, 0, 2} {
		check(m.LimitSpecials(most))
		for _, e := range extents {
			got := run(m, e[0], e[1])
			key := fmt.Sprint(e, m.Program())
			if most == 0 && m.Program() != "batch=1,2 seq=1..24" {
				panic(m.Program())
			}
			if before, ok := known[key]; ok && !slices.Equal(before, got) {
				panic("other results than before: " + key)
			}
			known[key] = got
			for k, x := range known[fmt.Sprint(e, "batch=1,2 seq=1..24")] {
				if d := math.Abs(float64(x - got[k])); !(d < 1e-3) {
					panic(fmt.Sprint(key, " differs from the general program by ", d))
				}
			}
		}
	}
	fmt.Println(len(known))
	fmt.Println(m.SetDims([][]int64{{3, 3}, {3, 3}}))
	fmt.Println(m.LimitSpecials(-1))
}
`

// inPlaceUser runs a library with tensors in host memory and in device memory, which are the same on the emulator, at
// extents at which tensors in device memory are used in place; then with an output that lies where an input does.
const inPlaceUser = `
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "encoder.h"

static void check(encoder_ctx *c, int status) {
  if (status == encoder_OK) return;
  printf("%s\n", encoder_last_error(c));
  exit(1);
}

static int differ(encoder_ctx *c, int64_t batch, int64_t seq) {
  const int64_t dims[] = {batch, seq};
  const int64_t *const both[] = {dims, dims};
  check(c, encoder_set_dims(c, both));
  const encoder_io *io = encoder_ctx_io(c);
  void *in[2], *out[2][2], *shared[2];
  for (int i = 0; i < 2; i++) {
    in[i] = aligned_alloc(64, (io->inputs[i].bytes + 63) / 64 * 64);
    memset(in[i], 0, io->inputs[i].bytes);
    for (int k = 0; k < 2; k++) out[k][i] = aligned_alloc(64, (io->outputs[i].bytes + 63) / 64 * 64);
  }
  for (int i = 0; i < batch * seq; i++) ((int64_t *)in[0])[i] = i % 32;
  shared[0] = aligned_alloc(64, (io->outputs[0].bytes + 63) / 64 * 64);
  shared[1] = out[1][1];
  memcpy(shared[0], in[1], io->inputs[1].bytes);
  check(c, encoder_run(c, (const void *const *)in, out[0], encoder_HOST));
  check(c, encoder_run(c, (const void *const *)in, out[1], encoder_DEVICE));
  int n = memcmp(out[0][0], out[1][0], io->outputs[0].bytes) != 0;
  n += memcmp(out[0][1], out[1][1], io->outputs[1].bytes) != 0;
  in[1] = shared[0];
  check(c, encoder_run(c, (const void *const *)in, shared, encoder_DEVICE));
  n += memcmp(out[0][0], shared[0], io->outputs[0].bytes) != 0;
  return n + (memcmp(out[0][1], shared[1], io->outputs[1].bytes) != 0);
}

int main(void) {
  encoder_ctx *c;
  check(NULL, encoder_create(NULL, &c));
  printf("%d %d %d\n", differ(c, 2, 24), differ(c, 1, 5), differ(c, 1, 4));
  encoder_destroy(c);
  return 0;
}
`

func specialInPlace(t *testing.T, dir string) {
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "inplace.c"), []byte(inPlaceUser), 0o666); err != nil {
		t.Fatal(err)
	}
	c := exec.Command("sh", "-c", cc+" inplace.c -L. -lencoder -Wl,-rpath,. -o inplace && ./inplace")
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil || string(out) != "0 0 0\n" {
		t.Errorf("%v\n%s", err, out)
	}
}

func specialGoPackage(t *testing.T, dir string) {
	for _, tool := range []string{"go", "cc"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(err)
		}
	}
	user := filepath.Join(dir, "user")
	if err := os.MkdirAll(user, 0o777); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"main.go": specialUser, "go.mod": "module user\n\ngo 1.22\n\nrequire encoder v0.0.0\n\nreplace encoder => ../go\n",
	} {
		if err := os.WriteFile(filepath.Join(user, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	c := exec.Command("go", "run", ".")
	c.Dir, c.Env = user, append(os.Environ(), "CGO_ENABLED=1", "GOFLAGS=-mod=mod", "GOWORK=off")
	out, err := c.CombinedOutput()
	lines := strings.Split(string(out), "\n")
	// Five extents in all; four of them have run by special programs and by the general one, the fifth by the latter.
	if err != nil || len(lines) < 3 || lines[0] != "9" || !strings.Contains(lines[1], "want batch=1,2") ||
		!strings.Contains(lines[2], "below 0") {
		t.Errorf("%v\n%s", err, out)
	}
}
