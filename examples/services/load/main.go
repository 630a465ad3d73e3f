// Command load tests a service: it starts the service, finds how many requests a second it answers at most, and then
// sends it 90 % of that for some time. No request may fail, and the memory of the process must not grow. Then it kills
// the process and starts it again, and at last ends it while requests are on their way.
//
//	load [-seconds 600] [-share 0.9] [-connections 16] [-out result.json] -- SERVICE ARGUMENT…
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// result is what the test found. Times are milliseconds from when a request was due to the end of its answer, so a stalled
// service shows in all requests that were due meanwhile.
type result struct {
	Schema     string  `json:"schema"`
	Service    string  `json:"service"`
	CPUs       int     `json:"cpus"`
	Saturation float64 `json:"saturation_per_s"`
	Rate       float64 `json:"rate_per_s"`
	Seconds    float64 `json:"seconds"`
	Requests   int     `json:"requests"`
	Errors     int     `json:"errors"`
	Refused    int     `json:"refused"` // with 503, because the queue was full
	P50        float64 `json:"p50_ms"`
	P99        float64 `json:"p99_ms"`
	Max        float64 `json:"max_ms"`
	MeanBatch  float64 `json:"mean_batch"`
	// MemoryMB are the resident megabytes of the service, at a fifth of the time and at its end.
	MemoryMB [2]float64 `json:"memory_mb"`
	// Killed: requests that failed when the process was killed, and how many were on their way.
	KilledLost     int     `json:"killed_lost"`
	KilledOnTheWay int     `json:"killed_on_the_way"`
	RestartMS      float64 `json:"restart_ms"`
	// Stopped: answers that were cut off after SIGTERM, and the exit status.
	StoppedCut int      `json:"stopped_cut"`
	StopStatus int      `json:"stop_status"`
	Problems   []string `json:"problems"`
}

func main() {
	seconds := flag.Float64("seconds", 600, "how long to send requests")
	share := flag.Float64("share", 0.9, "the part of saturation to send")
	connections := flag.Int("connections", 16, "requests at a time while saturation is measured")
	address := flag.String("address", "127.0.0.1:8080", "where the service listens")
	out := flag.String("out", "", "file for the result, as JSON")
	flag.Parse()
	t := &tester{url: "http://" + *address, command: flag.Args()}
	t.client = &http.Client{Timeout: 30 * time.Second,
		Transport: &http.Transport{MaxIdleConnsPerHost: 512, MaxConnsPerHost: 512}}
	r, err := t.run(*seconds, *share, *connections)
	if err != nil {
		t.kill()
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
	text, _ := json.MarshalIndent(r, "", " ")
	fmt.Println(string(text))
	if *out != "" {
		if err := os.WriteFile(*out, append(text, '\n'), 0o666); err != nil {
			fmt.Fprintln(os.Stderr, "error:", err)
			os.Exit(1)
		}
	}
	if len(r.Problems) > 0 {
		os.Exit(1)
	}
}

type tester struct {
	url      string
	command  []string
	client   *http.Client
	process  *exec.Cmd
	body     []byte // a request
	want     []byte // its answer
	onTheWay atomic.Int64
}

func (t *tester) run(seconds, share float64, connections int) (*result, error) {
	if _, err := t.start(); err != nil {
		return nil, err
	}
	if err := t.sample(); err != nil {
		return nil, err
	}
	r := &result{Schema: "rammerc/service-load/v1", Service: filepath.Base(t.command[0]), CPUs: runtime.NumCPU(),
		Problems: []string{}}
	r.Saturation = t.saturate(connections, min(10, max(2, seconds/10)))
	r.Rate = share * r.Saturation
	before := t.samples()
	t.steady(r, seconds)
	if after := t.samples(); after.batches > before.batches {
		r.MeanBatch = (after.samples - before.samples) / (after.batches - before.batches)
	}
	if err := t.killAndRestart(r); err != nil {
		return nil, err
	}
	t.stop(r)
	r.judge()
	return r, nil
}

func (r *result) judge() {
	bad := func(wrong bool, text string, args ...any) {
		if wrong {
			r.Problems = append(r.Problems, fmt.Sprintf(text, args...))
		}
	}
	bad(r.Errors > 0, "%d requests failed", r.Errors)
	// Garbage collectors and allocators settle late: a tenth and 8 MB are no leak.
	bad(r.MemoryMB[1] > 1.1*r.MemoryMB[0]+8, "memory grew from %.1f to %.1f MB", r.MemoryMB[0], r.MemoryMB[1])
	bad(r.KilledLost > r.KilledOnTheWay, "%d requests were lost, and %d were on their way", r.KilledLost,
		r.KilledOnTheWay)
	bad(r.StoppedCut > 0, "%d answers were cut off by SIGTERM", r.StoppedCut)
	bad(r.StopStatus != 0, "exit status %d after SIGTERM", r.StopStatus)
}

// start starts the service and waits until it is ready; it returns how long that took.
func (t *tester) start() (time.Duration, error) {
	begin := time.Now()
	t.process = exec.Command(t.command[0], t.command[1:]...)
	t.process.Stderr = os.Stderr
	t.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := t.process.Start(); err != nil {
		return 0, err
	}
	for time.Since(begin) < 30*time.Second {
		if res, err := t.client.Get(t.url + "/readyz"); err == nil {
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return time.Since(begin), nil
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
	return 0, errors.New("the service does not become ready")
}

func (t *tester) kill() {
	if t.process != nil && t.process.Process != nil {
		t.process.Process.Kill()
		t.process.Wait()
	}
}

// sample makes a request of random numbers, and keeps its answer, which all later ones must have.
func (t *tester) sample() error {
	var m struct {
		Inputs []struct {
			DType int     `json:"dtype"`
			Dims  []int64 `json:"dims"`
		} `json:"inputs"`
	}
	if err := t.get("/v1/model", &m); err != nil {
		return err
	}
	for _, in := range m.Inputs {
		if in.DType != 1 {
			return fmt.Errorf("inputs of type %d; this test sends float32", in.DType)
		}
		n := int64(1)
		for _, d := range in.Dims[1:] {
			n *= d
		}
		draw := rand.New(rand.NewPCG(1, 2))
		for range n {
			t.body = append(t.body, 0, 0, byte(draw.IntN(128)), 0x3f) // between 0.5 and 1
		}
	}
	answer, code, err := t.send()
	if err != nil || code != http.StatusOK {
		return fmt.Errorf("the first request: status %d, %v", code, err)
	}
	t.want = answer
	if _, code, err := t.post([]byte("short")); err != nil || code != http.StatusBadRequest {
		return fmt.Errorf("a short request: status %d, %v; want 400", code, err)
	}
	return nil
}

func (t *tester) get(path string, to any) error {
	res, err := t.client.Get(t.url + path)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	return json.NewDecoder(res.Body).Decode(to)
}

func (t *tester) send() ([]byte, int, error) { return t.post(t.body) }

func (t *tester) post(body []byte) ([]byte, int, error) {
	res, err := t.client.Post(t.url+"/v1/infer", "application/octet-stream", bytes.NewReader(body))
	if err != nil {
		return nil, 0, err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	return answer, res.StatusCode, err
}

// right reports whether an answer is as good as the first one: a sample's results depend on the program of its batch by
// rounding only.
func (t *tester) right(answer []byte) bool {
	if len(answer) != len(t.want) {
		return false
	}
	for i := 0; i+4 <= len(answer); i += 4 {
		a, b := float32At(answer[i:]), float32At(t.want[i:])
		if d := a - b; d > 1e-3 || d < -1e-3 || a != a {
			return false
		}
	}
	return true
}

// saturate keeps so many requests on their way and returns how many are answered in a second.
func (t *tester) saturate(connections int, seconds float64) float64 {
	var answered atomic.Int64
	end := time.Now().Add(time.Duration(seconds * float64(time.Second)))
	var all sync.WaitGroup
	for range connections {
		all.Go(func() {
			for time.Now().Before(end) {
				if _, code, err := t.send(); err == nil && code == http.StatusOK {
					answered.Add(1)
				}
			}
		})
	}
	all.Wait()
	return float64(answered.Load()) / seconds
}

// steady sends requests at the times at which they are due, whether earlier ones have been answered or not.
func (t *tester) steady(r *result, seconds float64) {
	var mu sync.Mutex
	var times []float64
	var all sync.WaitGroup
	begin := time.Now()
	n := int(r.Rate * seconds)
	shown := begin
	for i := range n {
		due := begin.Add(time.Duration(float64(i) / r.Rate * float64(time.Second)))
		time.Sleep(time.Until(due))
		if i == n/5 {
			r.MemoryMB[0] = t.memory()
		}
		if time.Since(shown) > 20*time.Second {
			shown = time.Now()
			fmt.Fprintf(os.Stderr, "%.0f of %.0f s, %.1f MB\n", time.Since(begin).Seconds(), seconds, t.memory())
		}
		all.Go(func() {
			answer, code, err := t.send()
			took := time.Since(due).Seconds() * 1000
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil && code == http.StatusServiceUnavailable:
				r.Refused++
			case err != nil || code != http.StatusOK || !t.right(answer):
				r.Errors++
				fmt.Fprintf(os.Stderr, "request %d: status %d, %v\n", i, code, err)
			default:
				times = append(times, took)
			}
		})
	}
	all.Wait()
	r.MemoryMB[1] = t.memory()
	r.Requests, r.Seconds = n, time.Since(begin).Seconds()
	slices.Sort(times)
	if len(times) > 0 {
		r.P50, r.P99, r.Max = times[len(times)/2], times[len(times)*99/100], times[len(times)-1]
	}
}

// killAndRestart kills the process under load. Only what is on its way may be lost, and a new process serves at once.
func (t *tester) killAndRestart(r *result) error {
	lost, onTheWay := t.underLoad(r.Rate, func() {
		t.process.Process.Kill()
		t.process.Wait()
	})
	r.KilledLost, r.KilledOnTheWay = lost, onTheWay
	took, err := t.start()
	if err != nil {
		return err
	}
	r.RestartMS = took.Seconds() * 1000
	answer, code, err := t.send()
	if err != nil || code != http.StatusOK || !t.right(answer) {
		return fmt.Errorf("after the restart: status %d, %v", code, err)
	}
	return nil
}

// stop ends the process under load: requests that it has taken are answered.
func (t *tester) stop(r *result) {
	cut, _ := t.underLoad(r.Rate, func() {
		t.process.Process.Signal(syscall.SIGTERM)
		if err := t.process.Wait(); err != nil {
			r.StopStatus = t.process.ProcessState.ExitCode()
		}
	})
	r.StoppedCut = cut
}

// underLoad sends requests for half a second, ends the service by end, and returns how many requests that were sent before
// were lost, and how many were on their way. A connection that is not accepted any more has lost nothing.
func (t *tester) underLoad(rate float64, end func()) (lost, onTheWay int) {
	var failed atomic.Int64
	var all sync.WaitGroup
	ticker := time.NewTicker(time.Duration(float64(time.Second) / max(1, min(rate, 2000))))
	defer ticker.Stop()
	for begin := time.Now(); time.Since(begin) < 500*time.Millisecond; {
		<-ticker.C
		t.onTheWay.Add(1)
		all.Go(func() {
			answer, code, err := t.send()
			t.onTheWay.Add(-1)
			if refused := err != nil && errors.Is(err, syscall.ECONNREFUSED); !refused &&
				(err != nil || code == http.StatusOK && !t.right(answer)) {
				failed.Add(1)
			}
		})
	}
	onTheWay = int(t.onTheWay.Load())
	end()
	all.Wait()
	return int(failed.Load()), onTheWay
}

// memory is the resident memory of the service in megabytes.
func (t *tester) memory() float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", t.process.Process.Pid))
	fields := strings.Fields(string(text))
	if err != nil || len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.Atoi(fields[1])
	return float64(pages*os.Getpagesize()) / (1 << 20)
}

type counts struct{ samples, batches float64 }

// samples reads the counters of samples and of batches from /metrics.
func (t *tester) samples() counts {
	var c counts
	res, err := t.client.Get(t.url + "/metrics")
	if err != nil {
		return c
	}
	defer res.Body.Close()
	text, _ := io.ReadAll(res.Body)
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, _ := strconv.ParseFloat(value, 64)
		if name == "service_samples_total" {
			c.samples = n
		}
		if strings.HasPrefix(name, "service_batches_total{") {
			c.batches += n
		}
	}
	return c
}
