package calibrate

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/internal/toolchain"
)

// table reads the names, units and architectures of the measurements from the CUDA program.
func table(t *testing.T) []Measurement {
	t.Helper()
	source, err := sources.ReadFile("cuda/calibrate.cu")
	if err != nil {
		t.Fatal(err)
	}
	var out []Measurement
	for _, m := range regexp.MustCompile(`(?m)^    \{"(\w+)", "([^"]+)", (\d),`).FindAllStringSubmatch(string(source), -1) {
		var major float64
		fmt.Sscan(m[3], &major)
		out = append(out, Measurement{m[1], m[2], []float64{major}})
	}
	if len(out) < 30 {
		t.Fatalf("read %d rows of kTable", len(out))
	}
	return out
}

// output is what the program would print on a device of compute capability major.0, if the n-th measurement of its
// table had the median 100n.
func output(t *testing.T, major int) string {
	var rows []string
	for n, m := range table(t) {
		if int(m.Samples[0]) <= major {
			rows = append(rows, fmt.Sprintf(`{"name": %q, "unit": %q, "samples": [%d, %d, %d]}`, m.Name, m.Unit, 100*n+
				101, 100*n+99, 100*n+100))
		}
	}
	return fmt.Sprintf(`{"device": {"product": "NVIDIA Test 9", "major": %d, "minor": 0, "sms": 132, "max_threads": 1024, "shared_bytes": 233472,
		"shared_per_block": 232448, "registers": 65536, "l2_bytes": 62914560, "memory_bytes": 150754820096, "clock_khz": 1980000,
		"cuda_driver": 13000, "cuda_runtime": 12080, "clusters": {"4": 30, "8": 15}}, "measurements": %d}
`, major, len(rows)) + strings.Join(rows, "\n") + "\n"
}

func parse(t *testing.T, text string) *Result {
	t.Helper()
	calls := 0
	r, err := Parse(strings.NewReader(text), func(done, total int) {
		if calls++; done != calls || total < done {
			t.Errorf("progress %d of %d in call %d", done, total, calls)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestSpec(t *testing.T) {
	at := map[string]float64{}
	for n, m := range table(t) {
		at[m.Name] = device.ThreeDigits(float64(100*n + 100))
	}
	r := parse(t, output(t, 9))
	s, err := Spec(r, nil, "580.1")
	if err != nil {
		t.Fatal(err)
	}
	want := &device.Spec{
		Name: "test-9", Product: "NVIDIA Test 9", Arch: "sm_90", SMs: 132, VEUsPerSM: 1, Threads: 1024, Shared: 233472,
		SharedPerVEU: 232448, Registers: 65536, L2Bytes: 62914560, Memory: 150754820096,
		Clusters: device.Clusters{Of4: 30, Of8: 15},
		Cost: device.Cost{
			Launch: at["node_cooperative"], Node: at["node_all"], PDL: at["pdl_all"], Hop: at["hop"],
			Barrier: at["wait_all"], Counter: at["barrier_counter"], Tagged: at["tagged_1"], Cluster: at["cluster_8"], Step: at["step"],
			Latency: at["ring_values"] - at["wait_1"], L2PerSM: at["l2_one"], L2Total: at["l2_all"], DRAM: at["dram"],
			FlopsPerSM: at["fp32"], WaitEach: s.Cost.WaitEach, TaggedRoot: s.Measured.TaggedRoot,
			Source: s.Cost.Source,
		},
	}
	h200, err := device.Find("h200") // the known device of the same architecture
	if err != nil {
		t.Fatal(err)
	}
	fromModels(&want.Cost, &h200.Measured)
	latency, l2 := want.Cost.Latency, want.Cost.L2PerSM
	want.Cost.Latency, want.Cost.L2PerSM = h200.Measured.Latency, h200.Measured.L2PerSM
	want.Measured, want.Kernels, want.InPrograms = want.Cost, h200.Kernels, h200.InPrograms
	want.Fitted, want.Tensor, want.Slower, want.Programs = h200.Fitted, h200.Tensor, h200.Slower, h200.Programs
	want.Cost = want.Fitted.Planned(want.Measured)
	if d := cmp.Diff(want, s); d != "" {
		t.Error(d)
	}
	for _, part := range []string{"measured", "NVIDIA Test 9", "driver 580.1", "CUDA 12.8", "of 3 runs", "is that of h200"} {
		if !strings.Contains(s.Cost.Source, part) {
			t.Errorf("the source does not say %q: %s", part, s.Cost.Source)
		}
	}
	base := &device.Spec{Name: "mine", Product: "another", Arch: "sm_80", SMs: 4, VEUsPerSM: 2,
		Cost: device.Cost{Hop: 1}, Fitted: device.Fit{"hop_ns": 2}, Tensor: map[string]float64{"float16": 9}}
	b, err := Spec(r, base, "")
	if err != nil {
		t.Fatal(err)
	}
	want.Name, want.VEUsPerSM, want.Measured.Source, want.Fitted, want.Tensor = "mine", 2, b.Cost.Source, base.Fitted,
		base.Tensor
	fromModels(&want.Measured, &device.Cost{})
	want.Measured.Latency, want.Measured.L2PerSM = latency, l2
	want.Kernels, want.InPrograms, want.Slower, want.Programs = nil, nil, nil, device.ProgramFit{}
	want.Cost = want.Measured
	want.Cost.Hop, want.Clusters = 2*want.Cost.Hop, device.Clusters{} // base has several vEUs in an SM
	if d := cmp.Diff(want, b); d != "" {
		t.Error(d)
	}
	if !strings.Contains(b.Cost.Source, "those of mine") || strings.Contains(b.Cost.Source, "driver") {
		t.Errorf("source: %s", b.Cost.Source)
	}
}

// Times on a straight line give back its slope.
func TestWaitEach(t *testing.T) {
	if got := eachOf([]float64{580 + 7*0, 580 + 7*7, 580 + 7*15, 580 + 7*31}); got < 6.999 || got > 7.001 {
		t.Errorf("got %v, want 7", got)
	}
	if got := eachOf([]float64{900, 800, 700, 600}); got != 0 {
		t.Errorf("got %v, want 0", got)
	}
}

// So do times on a curve with the square root of the number of words.
func TestTaggedRoot(t *testing.T) {
	if got := rootOf([]float64{400, 400 + 40*(math.Sqrt(8)-1), 400 + 40*7, 400 + 40*15}); got < 39.999 || got > 40.001 {
		t.Errorf("got %v, want 40", got)
	}
	if got := rootOf([]float64{400, 390, 380, 370}); got != 0 {
		t.Errorf("got %v, want 0", got)
	}
}

// An architecture without programmatic dependent launch and clusters gets the figures that stand in for them.
func TestSpecBeforeHopper(t *testing.T) {
	s, err := Spec(parse(t, output(t, 8)), nil, "")
	if err != nil {
		t.Fatal(err)
	}
	if s.Cost.PDL != s.Cost.Node || s.Cost.Cluster != s.Cost.Tagged || s.Arch != "sm_80" {
		t.Errorf("%+v", s)
	}
}

func TestSpecMissing(t *testing.T) {
	r := parse(t, output(t, 9))
	for i := range r.Measurements {
		if r.Measurements[i].Name == "hop" {
			r.Measurements[i].Name = "other"
		}
	}
	if _, err := Spec(r, nil, ""); err == nil || !strings.Contains(err.Error(),
		"hop_ns cannot be told: hop was not measured") {
		t.Errorf("got %v", err)
	}
}

// Every cost has a figure, and every measurement that a figure needs is one of the program's.
func TestFigures(t *testing.T) {
	measured := map[string]bool{}
	for _, m := range table(t) {
		measured[m.Name] = true
	}
	var c device.Cost
	for i, f := range figures {
		if *c.Field(f.key) != 0 {
			t.Errorf("%s: another figure has its cost", f.key)
		}
		*c.Field(f.key) = float64(i + 1)
		for _, w := range f.ways {
			for _, n := range w.needs {
				if !measured[n] {
					t.Errorf("%s needs %s, which the program does not measure", f.key, n)
				}
			}
		}
	}
	c.Source = "x"
	text, err := YAML(&device.Spec{
		Name: "x", Product: "x", Arch: "sm_90", SMs: 1, VEUsPerSM: 1, Threads: 32, Shared: 1 << 10,
		SharedPerVEU: 1 << 10,
		Registers:    1 << 10, L2Bytes: 1, Memory: 1, Cost: c, Measured: c,
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range figures {
		if !strings.Contains(string(text), fmt.Sprintf("  %s: %d\n", f.key, i+1)) {
			t.Errorf("%s is not where its figure says:\n%s", f.key, text)
		}
	}
	if got := strings.Count(string(text), ":") - 12 - 1; got != len(figures) {
		t.Errorf("%d figures for %d costs:\n%s", len(figures), got, text)
	}
}

func TestYAML(t *testing.T) {
	s, err := Spec(parse(t, output(t, 9)), nil, "580.1")
	if err != nil {
		t.Fatal(err)
	}
	text, err := YAML(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(string(text), "\n") {
		if len(line) > sourceWidth {
			t.Errorf("a line of %d characters: %s", len(line), line)
		}
	}
	file := filepath.Join(t.TempDir(), "d.yaml")
	if err := os.WriteFile(file, text, 0o666); err != nil {
		t.Fatal(err)
	}
	back, err := device.Find(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(s, back); d != "" {
		t.Error(d)
	}
	s.SMs = 0
	if _, err := YAML(s); err == nil {
		t.Error("a device without SMs was written")
	}
}

func TestRounded(t *testing.T) {
	for in, want := range map[float64]string{
		0: "0", 580.4: "580", 1234.5: "1230", 44.949: "44.9", 6.0649: "6.06", 0.012345: "0.0123", 4512.9: "4510",
		999.7: "1000",
	} {
		if got := fmt.Sprint(device.ThreeDigits(in)); got != want {
			t.Errorf("%v: got %s, want %s", in, got, want)
		}
	}
}

func TestShortName(t *testing.T) {
	for in, want := range map[string]string{
		"NVIDIA H200": "h200", "NVIDIA GeForce RTX 4090": "geforce-rtx-4090",
		"Tesla V100-SXM2-32GB": "tesla-v100-sxm2-32gb", "é": "gpu",
	} {
		if got := shortName(in); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}

func TestQuantile(t *testing.T) {
	m := Measurement{Samples: []float64{4, 1, 3, 2}}
	for q, want := range map[float64]float64{0: 1, 0.5: 2.5, 1: 4} {
		if got := m.Quantile(q); got != want {
			t.Errorf("%v: got %v, want %v", q, got, want)
		}
	}
	if m.Samples[0] != 4 {
		t.Error("the samples lost their order")
	}
}

func TestParseRefuses(t *testing.T) {
	good := output(t, 9)
	first := strings.Split(good, "\n")[3]
	for name, c := range map[string]struct{ text, want string }{
		"nothing":     {"", "does not begin with the device"},
		"no device":   {`{"measurements": 1}`, "does not begin with the device"},
		"cut":         {good[:len(good)-40], "EOF"},
		"too many":    {good + first, "more than"},
		"twice":       {strings.Replace(good, `"name": "hop"`, `"name": "fp32"`, 1), "came twice"},
		"no samples":  {strings.Replace(good, first, `{"name": "fp32", "samples": []}`, 1), "has no samples"},
		"zero":        {strings.Replace(good, first, `{"name": "fp32", "samples": [0]}`, 1), "sample of 0"},
		"not a float": {strings.Replace(good, first, `{"name": "fp32", "samples": [nan]}`, 1), "invalid character"},
	} {
		if _, err := Parse(strings.NewReader(c.text), nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

// script writes a shell script that plays the measuring program.
func script(t *testing.T, body string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+body), 0o700); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestRun(t *testing.T) {
	r, err := Run(t.Context(), script(t, "cat <<'END'\n"+output(t, 9)+"END\n"), nil)
	if err != nil || len(r.Measurements) != len(table(t)) {
		t.Errorf("%v, %v", r, err)
	}
	if _, err := Run(t.Context(), script(t, "echo out of luck >&2\nexit 1\n"), nil); err == nil ||
		!strings.Contains(err.Error(), "out of luck") {
		t.Errorf("got %v", err)
	}
	if _, err := Run(t.Context(), script(t, "echo '{}'\n"), nil); err == nil ||
		!strings.Contains(err.Error(), "does not begin with the device") {
		t.Errorf("got %v", err)
	}
}

// The programs of bench/micro use parts of the measuring program and must go on compiling. They can be built without
// cuBLAS.
func TestPeersCompile(t *testing.T) {
	t.Parallel()
	nvcc, err := toolchain.FindNVCC("")
	if err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	if err := writeSources(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(dir, os.DirFS("../../bench/micro")); err != nil {
		t.Fatal(err)
	}
	if err := nvcc.BuildProgramFor(t.Context(), dir, "peers.o", "peers.cu", "sm_90", "-O1", "-I.", "-c"); err != nil {
		t.Fatal(err)
	}
}

// The program compiles for architectures with and without clusters; where there is a GPU, it runs.
func TestBuild(t *testing.T) {
	nvcc, err := toolchain.FindNVCC("")
	if err != nil {
		t.Skip(err)
	}
	local := toolchain.LocalArch(t.Context())
	for _, arch := range []string{"sm_80", "sm_90"} {
		t.Run(arch, func(t *testing.T) {
			t.Parallel()
			program, err := Build(t.Context(), nvcc, t.TempDir(), arch)
			if err != nil {
				t.Fatal(err)
			}
			if arch != local {
				return
			}
			r, err := Run(t.Context(), program, nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := Spec(r, nil, ""); err != nil {
				t.Error(err)
			}
		})
	}
}
