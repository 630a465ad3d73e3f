package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// input is an input of the model without its first dim, the batch.
type input struct {
	name     string
	elements int64
	shape    []int64 // of one sample, with the batch of 1
}

// protocol is how a service is asked.
type protocol interface {
	ready() string // the path that answers 200 when the service takes requests
	inputs(get func(path string, to any) error) ([]input, error)
	request(inputs []input, tensors [][]byte) message
	outputs(res *http.Response, body []byte) ([]byte, error) // the tensors of an answer
	metrics(url string) string                               // where the counters are
	counters() (samples, batches string)                     // their names, without labels
}

type message struct {
	path   string
	header map[string]string
	body   []byte
}

// short is the same request without the end of its tensors, which a service must refuse.
func (m message) short() message {
	m.body = m.body[:len(m.body)-5]
	return m
}

// plain is the protocol of the services in Go and in C++.
type plain struct{}

func (plain) ready() string { return "/readyz" }

func (plain) metrics(url string) string { return url + "/metrics" }

func (plain) counters() (samples, batches string) {
	return "service_samples_total", "service_batches_total"
}

func (plain) outputs(_ *http.Response, body []byte) ([]byte, error) { return body, nil }

func (plain) inputs(get func(string, any) error) ([]input, error) {
	var m struct {
		Inputs []struct {
			Name  string  `json:"name"`
			DType int     `json:"dtype"`
			Dims  []int64 `json:"dims"`
		} `json:"inputs"`
	}
	if err := get("/v1/model", &m); err != nil {
		return nil, err
	}
	var list []input
	for _, in := range m.Inputs {
		if in.DType != 1 {
			return nil, fmt.Errorf("inputs of type %d; this test sends float32", in.DType)
		}
		list = append(list, sampleOf(in.Name, in.Dims))
	}
	return list, nil
}

func (plain) request(_ []input, tensors [][]byte) message {
	return message{path: "/v1/infer", body: slices.Concat(tensors...)}
}

// triton is the protocol of Triton Inference Server: HTTP with tensors as bytes behind a header in JSON.
type triton struct{ model, metricsURL string }

const headerLength = "Inference-Header-Content-Length"

func (triton) ready() string { return "/v2/health/ready" }

func (t triton) metrics(string) string { return t.metricsURL }

func (triton) counters() (samples, batches string) {
	return "nv_inference_count", "nv_inference_exec_count"
}

func (t triton) inputs(get func(string, any) error) ([]input, error) {
	var m struct {
		Inputs []struct {
			Name     string  `json:"name"`
			DataType string  `json:"datatype"`
			Shape    []int64 `json:"shape"`
		} `json:"inputs"`
	}
	if err := get("/v2/models/"+t.model, &m); err != nil {
		return nil, err
	}
	var list []input
	for _, in := range m.Inputs {
		if in.DataType != "FP32" {
			return nil, fmt.Errorf("inputs of type %s; this test sends FP32", in.DataType)
		}
		list = append(list, sampleOf(in.Name, in.Shape))
	}
	return list, nil
}

func sampleOf(name string, dims []int64) input {
	in := input{name, 1, slices.Clone(dims)}
	in.shape[0] = 1
	for _, d := range dims[1:] {
		in.elements *= d
	}
	return in
}

func (t triton) request(inputs []input, tensors [][]byte) message {
	type part struct {
		Name       string           `json:"name"`
		Shape      []int64          `json:"shape"`
		DataType   string           `json:"datatype"`
		Parameters map[string]int64 `json:"parameters"`
	}
	var parts []part
	for i, in := range inputs {
		size := map[string]int64{"binary_data_size": int64(len(tensors[i]))}
		parts = append(parts, part{in.name, in.shape, "FP32", size})
	}
	head, _ := json.Marshal(map[string]any{"inputs": parts, "parameters": map[string]bool{"binary_data_output": true}})
	return message{
		path:   "/v2/models/" + t.model + "/infer",
		header: map[string]string{headerLength: strconv.Itoa(len(head))},
		body:   append(head, slices.Concat(tensors...)...),
	}
}

func (triton) outputs(res *http.Response, body []byte) ([]byte, error) {
	n, err := strconv.Atoi(res.Header.Get(headerLength))
	if err != nil || n > len(body) {
		return nil, errors.New("an answer without tensors as bytes")
	}
	return body[n:], nil
}

// send sends a request and returns the tensors of the answer.
func (t *tester) send(m message) ([]byte, int, error) {
	req, err := http.NewRequest(http.MethodPost, t.url+m.path, bytes.NewReader(m.body))
	if err != nil {
		return nil, 0, err
	}
	req.Header.Set("Content-Type", "application/octet-stream")
	for k, v := range m.header {
		req.Header.Set(k, v)
	}
	res, err := t.client.Do(req)
	if err != nil {
		return nil, 0, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode == http.StatusOK {
		body, err = t.protocol.outputs(res, body)
	}
	return body, res.StatusCode, err
}

func (t *tester) get(path string, to any) error {
	res, err := t.client.Get(t.url + path)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	return json.NewDecoder(res.Body).Decode(to)
}

type counts struct{ samples, batches float64 }

// counts reads the counters of samples and of batches.
func (t *tester) counts() counts {
	var c counts
	res, err := t.client.Get(t.protocol.metrics(t.url))
	if err != nil {
		return c
	}
	defer res.Body.Close()
	text, _ := io.ReadAll(res.Body)
	samples, batches := t.protocol.counters()
	for line := range strings.Lines(string(text)) {
		at := strings.LastIndex(line, " ")
		if at < 0 {
			continue
		}
		n, _ := strconv.ParseFloat(strings.TrimSpace(line[at:]), 64)
		switch name, _, _ := strings.Cut(line[:at], "{"); name {
		case samples:
			c.samples += n
		case batches:
			c.batches += n
		}
	}
	return c
}
