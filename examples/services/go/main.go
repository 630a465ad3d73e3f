// Command service serves a compiled model over HTTP: it gathers requests into batches and runs them on the program of
// the smallest batch that holds them.
//
//	POST /v1/infer   the inputs of one sample, one behind the other, as little-endian elements; the answer is its outputs
//	GET  /v1/model   what the inputs and outputs are, as JSON
//	GET  /healthz    200 while the process lives
//	GET  /readyz     200 while it takes requests, 503 once it is told to stop
//	GET  /metrics    counts and times for Prometheus
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"model"
)

func main() {
	address := flag.String("address", "127.0.0.1:8080", "where to listen")
	workers := flag.Int("workers", 1, "contexts of the model, each of which runs one batch at a time")
	queue := flag.Int("queue", 256, "requests that may wait; more are refused with 503")
	delay := flag.Duration("delay", time.Millisecond, "how long a request waits for others to make a batch with it")
	drain := flag.Duration("drain", time.Second, "how long to go on after SIGTERM, until whoever sends requests has seen /readyz")
	patience := flag.Duration("patience", 10*time.Second, "how long to finish requests after SIGTERM")
	flag.Parse()
	if err := serve(*address, *workers, *queue, *delay, *drain, *patience); err != nil {
		slog.Error("stopped", "error", err)
		os.Exit(1)
	}
}

func serve(address string, workers, queue int, delay, drain, patience time.Duration) error {
	var models []*model.Model
	for range workers {
		m, err := model.Open(model.Options{})
		if err != nil {
			return err
		}
		models = append(models, m)
	}
	described, err := json.Marshal(map[string]any{"inputs": describe(models[0].Inputs),
		"outputs": describe(models[0].Outputs)})
	if err != nil {
		return err
	}
	b, err := newBatcher(models, queue, delay)
	if err != nil {
		return err
	}
	s := &http.Server{Handler: routes(b, described), ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	slog.Info("listening", "address", listener.Addr().String(), "batches", b.sizes, "workers", workers)
	stop, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer cancel()
	failed := make(chan error, 1)
	go func() { failed <- s.Serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-stop.Done():
	}
	// From here on /readyz says 503. Requests that still come are answered, then the contexts are given back.
	b.stopping.Store(true)
	time.Sleep(drain)
	ctx, done := context.WithTimeout(context.Background(), patience)
	defer done()
	err = s.Shutdown(ctx)
	b.close()
	slog.Info("stopped", "error", err)
	return err
}

// tensor is an input or output in the answer to /v1/model. The first of its dims is the largest batch.
type tensor struct {
	Name  string  `json:"name"`
	DType int     `json:"dtype"` // ONNX's TensorProto.DataType
	Dims  []int64 `json:"dims"`
}

func describe(list []model.Tensor) []tensor {
	out := []tensor{}
	for _, t := range list {
		out = append(out, tensor{t.Name, t.DType, t.Dims})
	}
	return out
}

func routes(b *batcher, described []byte) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok\n") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if b.stopping.Load() {
			http.Error(w, "stopping", http.StatusServiceUnavailable)
			return
		}
		io.WriteString(w, "ok\n")
	})
	mux.HandleFunc("GET /v1/model", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Write(described)
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(b.metrics.registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("POST /v1/infer", func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		code := infer(b, w, r)
		b.metrics.request(code, time.Since(start))
	})
	return mux
}

// infer answers one request and returns the status.
func infer(b *batcher, w http.ResponseWriter, r *http.Request) int {
	fail := func(code int, text string) int {
		if code == http.StatusServiceUnavailable {
			w.Header().Set("Retry-After", "1")
		}
		http.Error(w, text, code)
		return code
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, int64(b.sampleBytes)+1))
	if err != nil || len(body) != b.sampleBytes {
		return fail(http.StatusBadRequest, "the body must hold the inputs of one sample; GET /v1/model describes them")
	}
	out, err := b.infer(r.Context(), body)
	switch {
	case errors.Is(err, errFull):
		return fail(http.StatusServiceUnavailable, err.Error())
	case errors.Is(err, context.Canceled):
		return 499 // the client has gone; nobody reads an answer
	case err != nil:
		return fail(http.StatusInternalServerError, err.Error())
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Write(out)
	return http.StatusOK
}
