package main

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// metrics are what /metrics shows.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	seconds  prometheus.Histogram
	batches  *prometheus.CounterVec
	samples  prometheus.Counter
	running  prometheus.Histogram
}

func newMetrics(waiting func() float64) *metrics {
	times := prometheus.ExponentialBuckets(50e-6, 2, 18)
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "service_requests_total",
			Help: "Requests by status."}, []string{"code"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "service_request_seconds",
			Help: "From a request's headers to its answer.", Buckets: times}),
		batches: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "service_batches_total",
			Help: "Runs by the size of the program."}, []string{"size"}),
		samples: prometheus.NewCounter(prometheus.CounterOpts{Name: "service_samples_total",
			Help: "Samples that were run, without padding."}),
		running: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "service_run_seconds",
			Help: "Runs of the model.", Buckets: times}),
	}
	queue := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "service_queue_length", Help: "Requests that wait."},
		waiting)
	m.registry.MustRegister(m.requests, m.seconds, m.batches, m.samples, m.running, queue,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *metrics) request(code int, took time.Duration) {
	m.requests.WithLabelValues(strconv.Itoa(code)).Inc()
	m.seconds.Observe(took.Seconds())
}

func (m *metrics) batch(samples, size int, took time.Duration) {
	m.batches.WithLabelValues(strconv.Itoa(size)).Inc()
	m.samples.Add(float64(samples))
	m.running.Observe(took.Seconds())
}
