// Command load tests a service: it starts the service, finds how many requests a second it answers at most, and
// then sends it 90 % of that for some time, by turns, so that the share stays right when other work comes to the
// machine. No request may fail, and the memory of the process must not grow. Then it kills the process and starts
// it again, and at last ends it while requests are on their way.
//
//	load [-seconds 600] [-share 0.9] [-connections 16] [-triton MODEL] [-out result.json] -- SERVICE ARGUMENT…
package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
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

// result is what the test found. Times are milliseconds from when a request was due to the end of its answer, so a
// stalled service shows in all requests that were due meanwhile.
type result struct {
	Schema     string  `json:"schema"`
	Service    string  `json:"service"`
	CPUs       int     `json:"cpus"`
	Saturation float64 `json:"saturation_per_s"` // the mean of saturations
	// Saturations are what was answered in a second at most, measured before each minute.
	Saturations []float64 `json:"saturations_per_s"`
	Rate        float64   `json:"rate_per_s"`
	Seconds     float64   `json:"seconds"`
	Requests    int       `json:"requests"`
	Errors      int       `json:"errors"`
	Refused     int       `json:"refused"` // with 503, because the queue was full
	P50         float64   `json:"p50_ms"`
	P99         float64   `json:"p99_ms"`
	Max         float64   `json:"max_ms"`
	MeanBatch   float64   `json:"mean_batch"`
	// MemoryMB are the resident megabytes of the service, after a fifth of the time, or the first minute, and at
	// the end.
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
	name := flag.String("name", "", "what the result calls the service; by default the name of its file")
	model := flag.String("triton", "", "the service is Triton Inference Server, and this is the model's name in it")
	metrics := flag.String("metrics", "http://127.0.0.1:8002/metrics", "where Triton's counters are")
	flag.Parse()
	t := &tester{url: "http://" + *address, command: flag.Args(), protocol: plain{}}
	if *model != "" {
		t.protocol = triton{*model, *metrics}
	}
	t.client = &http.Client{Timeout: 30 * time.Second,
		Transport: &http.Transport{MaxIdleConnsPerHost: 512, MaxConnsPerHost: 512}}
	r, err := t.run(cmp.Or(*name, filepath.Base(flag.Arg(0))), *seconds, *share, *connections)
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
	protocol protocol
	request  message
	want     []byte // the answer to it
	onTheWay atomic.Int64
}

func (t *tester) run(name string, seconds, share float64, connections int) (*result, error) {
	if _, err := t.start(); err != nil {
		return nil, err
	}
	if err := t.sample(); err != nil {
		return nil, err
	}
	r := &result{Schema: "rammerc/service-load/v1", Service: name, CPUs: runtime.NumCPU(),
		Problems: []string{}}
	before := t.counts()
	t.rounds(r, seconds, share, connections)
	if after := t.counts(); after.batches > before.batches {
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
		if res, err := t.client.Get(t.url + t.protocol.ready()); err == nil {
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
	inputs, err := t.protocol.inputs(t.get)
	if err != nil {
		return err
	}
	var tensors [][]byte
	for _, in := range inputs {
		draw := rand.New(rand.NewPCG(1, 2))
		var data []byte
		for range in.elements {
			data = append(data, 0, 0, byte(draw.IntN(128)), 0x3f) // between 0.5 and 1
		}
		tensors = append(tensors, data)
	}
	t.request = t.protocol.request(inputs, tensors)
	answer, code, err := t.send(t.request)
	if err != nil || code != http.StatusOK {
		return fmt.Errorf("the first request: status %d, %v, %.200s", code, err, answer)
	}
	t.want = answer
	if _, code, err := t.send(t.request.short()); err != nil || code != http.StatusBadRequest {
		return fmt.Errorf("a short request: status %d, %v; want 400", code, err)
	}
	return nil
}

// right reports whether an answer is as good as the first one: a sample's results depend on the program of its
// batch by rounding only.
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
				if _, code, err := t.send(t.request); err == nil && code == http.StatusOK {
					answered.Add(1)
				}
			}
		})
	}
	all.Wait()
	return float64(answered.Load()) / seconds
}

// round is how long requests are sent at one rate. Then saturation is measured again, so that the rate is the share
// of what the machine can do now, whatever else runs on it.
const round = 60 * time.Second

func (t *tester) rounds(r *result, seconds, share float64, connections int) {
	var s sent
	begin := time.Now()
	end := begin.Add(time.Duration(seconds * float64(time.Second)))
	for first := true; first || time.Until(end) > round/10; first = false {
		most := t.saturate(connections, min(3, max(1, seconds/10)))
		r.Saturations = append(r.Saturations, most)
		until := time.Now().Add(min(round, max(time.Second, time.Until(end))))
		t.steady(r, &s, share*most, until)
		now := t.memory()
		if first || time.Since(begin) < end.Sub(begin)/5 {
			r.MemoryMB[0] = now
		}
		r.MemoryMB[1] = now
		fmt.Fprintf(os.Stderr, "%.0f of %.0f s: %d requests, %d errors, %.0f/s at most, %.1f MB\n",
			time.Since(begin).Seconds(), seconds, r.Requests, r.Errors, most, now)
	}
	for _, x := range r.Saturations {
		r.Saturation += x / float64(len(r.Saturations))
	}
	r.Rate, r.Seconds = float64(r.Requests)/s.took.Seconds(), s.took.Seconds()
	slices.Sort(s.times)
	if n := len(s.times); n > 0 {
		r.P50, r.P99, r.Max = s.times[n/2], s.times[n*99/100], s.times[n-1]
	}
}

// sent is what has been sent at steady rates.
type sent struct {
	mu    sync.Mutex
	times []float64 // milliseconds of requests that were answered
	took  time.Duration
}

// steady sends requests at the times at which they are due, whether earlier ones have been answered or not.
func (t *tester) steady(r *result, s *sent, rate float64, until time.Time) {
	var all sync.WaitGroup
	begin := time.Now()
	n := max(1, int(rate*until.Sub(begin).Seconds()))
	for i := range n {
		due := begin.Add(time.Duration(float64(i) / rate * float64(time.Second)))
		time.Sleep(time.Until(due))
		all.Go(func() {
			answer, code, err := t.send(t.request)
			took := time.Since(due).Seconds() * 1000
			s.mu.Lock()
			defer s.mu.Unlock()
			switch {
			case err == nil && code == http.StatusServiceUnavailable:
				r.Refused++
			case err != nil || code != http.StatusOK || !t.right(answer):
				r.Errors++
				fmt.Fprintf(os.Stderr, "request %d: status %d, %v\n", r.Requests+i, code, err)
			default:
				s.times = append(s.times, took)
			}
		})
	}
	all.Wait()
	r.Requests += n
	s.took += time.Since(begin)
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
	answer, code, err := t.send(t.request)
	if err != nil || code != http.StatusOK || !t.right(answer) {
		return fmt.Errorf("after the restart: status %d, %v", code, err)
	}
	return nil
}

// stop ends the process under load: requests that it has taken are answered.
func (t *tester) stop(r *result) {
	cut, _ := t.underLoad(r.Rate, func() {
		t.process.Process.Signal(syscall.SIGTERM)
		// Triton ends when all connections are closed, idle ones too.
		ended := make(chan bool)
		defer close(ended)
		go func() {
			for {
				select {
				case <-ended:
					return
				case <-time.After(50 * time.Millisecond):
					t.client.CloseIdleConnections()
				}
			}
		}()
		if err := t.process.Wait(); err != nil {
			r.StopStatus = t.process.ProcessState.ExitCode()
		}
	})
	r.StoppedCut = cut
}

// underLoad sends requests for half a second, ends the service by end, and returns how many requests that were sent
// before were lost, and how many were on their way. A connection that is not accepted any more has lost nothing.
func (t *tester) underLoad(rate float64, end func()) (lost, onTheWay int) {
	var failed atomic.Int64
	var all sync.WaitGroup
	ticker := time.NewTicker(time.Duration(float64(time.Second) / max(1, min(rate, 2000))))
	defer ticker.Stop()
	for begin := time.Now(); time.Since(begin) < 500*time.Millisecond; {
		<-ticker.C
		t.onTheWay.Add(1)
		all.Go(func() {
			answer, code, err := t.send(t.request)
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
