package report

import (
	"bytes"
	"fmt"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"context"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/internal/trace"
)

// planText is a plan of two segments: an rProgram on two vEUs, whose step of the second vEU waits for the first, and a
// wave of two steps on one vEU.
const planText = `{"schema": 2, "name": "small", "model": "small.onnx", "device": "emu4", "precision": "fp32",
 "predicted_us": 12.5, "weights_bytes": 2048, "arena_bytes": 768,
 "kernels": [{"name": "Kernel0", "threads": 256, "registers": 40, "blocks_per_sm": 1, "instances": ["a_1", "b_1"]}],
 "ops": [
  {"name": "first</script>", "kind": "Conv", "instance": "a_1", "rkernel": "a", "rtasks": 1, "predicted_ns": 1000, "source": "measured",
   "nodes": ["/first"], "reads": [0], "writes": [1]},
  {"name": "second", "kind": "Relu", "instance": "b_1", "rkernel": "b", "rtasks": 1, "predicted_ns": 500, "source": "modelled",
   "nodes": ["/second"], "reads": [1], "writes": [2]},
  {"name": "third", "kind": "Add", "instance": "b_1", "rkernel": "b", "rtasks": 2, "predicted_ns": 250, "source": "modelled",
   "nodes": ["/third", "/fourth"], "reads": [1, 2], "writes": [3]}],
 "buffers": [
  {"name": "x", "kind": "input", "dtype": "float32", "bytes": 256, "offset": -1},
  {"name": "y", "kind": "arena", "dtype": "float32", "bytes": 512, "offset": 0},
  {"name": "z", "kind": "arena", "dtype": "float32", "bytes": 256, "offset": 512},
  {"name": "out", "kind": "output", "dtype": "float32", "bytes": 256, "offset": -1}],
 "segments": [
  {"kind": "rprogram", "waves": 2, "counters": 0, "steps": [[[0,0,0,1,-1]], [[1,0,1,0,-1,0,0]]], "follows": []},
  {"kind": "waves", "waves": 1, "counters": 0, "steps": [[[2,0,0,0,-1],[2,1,0,0,-1]]], "follows": []}]}`

func readPlan(t *testing.T, text string) *trace.Plan {
	t.Helper()
	p, err := trace.ReadPlan([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

var cost = device.Cost{Launch: 100, Hop: 10, Step: 1, Node: 50, Cold: 70}

// Steps come after what they wait for, by the costs of launches, edges and steps.
func TestPredict(t *testing.T) {
	want := []Bar{
		{0, 0, 0, 0, 100, 1101},  // the launch, then 1 + 1000
		{0, 1, 1, 0, 1111, 1612}, // a hop later
		{1, 0, 2, 0, 1682, 1933}, // a cold launch after the rProgram
		{1, 0, 2, 1, 1933, 2184}, // the next step of the same vEU
	}
	if got := predict(readPlan(t, planText), cost); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	// Nodes of a parallel graph: the second is on another stream and waits for none, the third waits for both.
	const parallel = `{"kind": "parallel", "waves": 3, "counters": 0,
	 "nodes": [{"stream": 0}, {"stream": 1}, {"stream": 0, "after": [1]}],
	 "steps": [[[0,0,0,0,-1],[2,0,2,0,-1]], [[1,0,1,0,-1]]], "follows": []}]}`
	head, _, _ := strings.Cut(planText, `{"kind": "rprogram"`)
	got := predict(readPlan(t, head+parallel), cost)
	want = []Bar{{0, 0, 0, 0, 50, 1051}, {0, 1, 1, 0, 50, 551}, {0, 0, 2, 0, 1101, 1352}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// Tensors live from the first step that touches them to the last, and rOperators read what others wrote before them.
func TestMake(t *testing.T) {
	p := Make(readPlan(t, planText), cost, nil)
	if got := []float64{p.Buffers[1].Begin, p.Buffers[1].End, p.Buffers[2].Begin, p.Buffers[2].End}; !reflect.DeepEqual(got,
		[]float64{0.1, 2.184, 1.111, 2.184}) {
		t.Errorf("lives %v", got)
	}
	if got := [][]int{p.Ops[0].Inputs, p.Ops[1].Inputs, p.Ops[2].Inputs}; !reflect.DeepEqual(got, [][]int{{}, {0}, {0, 1}}) {
		t.Errorf("inputs %v", got)
	}
	if p.Ops[2].Predicted != 0.5 || p.Kernels[0].Ops != 3 || p.RTasks != 4 || p.Buffers[2].Writer != 1 || p.Buffers[0].Writer != -1 {
		t.Errorf("%+v", p)
	}
}

// browser finds a headless Chromium, or skips the test.
func browser(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("there is no Chromium in PATH")
	return ""
}

// look opens a page in the browser with more flags, and returns what it prints.
func look(t *testing.T, page string, flags ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	args := append([]string{"--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1200,1600",
		"--user-data-dir=" + t.TempDir()}, flags...)
	var errors bytes.Buffer
	cmd := exec.CommandContext(ctx, browser(t), append(args, "file://"+page)...)
	cmd.Stderr = &errors
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, errors.String())
	}
	return string(out)
}

// The page shows every rOperator, edge, step and tensor, draws them, in light and in dark, and names break nothing.
func TestPageInABrowser(t *testing.T) {
	plan := readPlan(t, planText)
	p := Make(plan, cost, &Measured{
		Timeline: &trace.Timeline{Plan: plan, Runs: []trace.Run{{VEU: 0, Op: 0, Started: 0, Computed: 2500}, {VEU: 1, Op: 1, Started: 2600, Computed: 3000}}},
		Report:   &trace.Report{Engine: "emu", Device: "CPU emulator", Span: 3.5},
	})
	file := filepath.Join(t.TempDir(), "page.html")
	var text bytes.Buffer
	if err := p.Write(&text); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text.String(), "http://") && !strings.Contains(text.String(), "http://www.w3.org/2000/svg") ||
		strings.Contains(text.String(), "https://") {
		t.Error("the page refers to others")
	}
	dom := look(t, file, "--dump-dom")
	for want, times := range map[string]int{
		`data-ready="yes"`: 1, `class="node"`: 3, `class="edge"`: 3, `id="planned"`: 1, `data-boxes="4"`: 1, `data-boxes="2"`: 2,
		"first&lt;/script&gt; (/first)": 1, "third (/third, /fourth)": 1, ">2.50<": 2, ">12.50 µs<": 1, ">3.50 µs<": 1,
		"measured on CPU emulator (emu)": 1, "at most 768 B are alive": 1,
	} {
		if got := strings.Count(dom, want); got != times {
			t.Errorf("%d times %q, want %d", got, want, times)
		}
	}
	var first string
	for _, scheme := range []int{0, 1} { // Chromium's numbers for dark and light
		shot := filepath.Join(t.TempDir(), "shot.png")
		look(t, file, fmt.Sprintf("--blink-settings=preferredColorScheme=%d", scheme), "--screenshot="+shot)
		back, hues := colours(t, shot)
		if hues < 3 {
			t.Errorf("scheme %d: %d colours of rOperators", scheme, hues)
		}
		if back == first {
			t.Errorf("light and dark have the same background %s", back)
		}
		first = back
	}
}

// colours returns the colour of a screenshot's corner, and how many saturated ones cover more than a few pixels.
func colours(t *testing.T, file string) (corner string, saturated int) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	img, err := png.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	count := map[[3]uint32]int{}
	b := img.Bounds()
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			r, g, bl, _ := img.At(x, y).RGBA()
			count[[3]uint32{r >> 8, g >> 8, bl >> 8}]++
		}
	}
	for c, n := range count {
		if n > 200 && max(c[0], c[1], c[2])-min(c[0], c[1], c[2]) > 60 {
			saturated++
		}
	}
	r, g, bl, _ := img.At(b.Min.X, b.Min.Y).RGBA()
	return fmt.Sprint(r>>8, g>>8, bl>>8), saturated
}
