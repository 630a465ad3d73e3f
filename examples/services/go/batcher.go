package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"model"
)

// errFull says that the queue is full: whoever asks should try again later, or elsewhere.
var errFull = errors.New("too many requests are waiting")

// batcher gathers requests into batches, the first dim of all inputs and outputs, and runs them.
type batcher struct {
	models      []*model.Model
	sizes       []int // the batches that the library has programs for, the smallest first
	inputs      []int // bytes of each input for one sample
	outputs     []int
	sampleBytes int
	queue       chan *request
	delay       time.Duration
	metrics     *metrics
	stopping    atomic.Bool
	done        sync.WaitGroup
}

// request is a sample on its way. Its answer comes once, through a channel with room for it, so that no worker waits for
// a client that has gone.
type request struct {
	body   []byte
	answer chan answer
}

type answer struct {
	body []byte
	err  error
}

func newBatcher(models []*model.Model, queue int, delay time.Duration) (*batcher, error) {
	b := &batcher{models: models, queue: make(chan *request, queue), delay: delay}
	b.metrics = newMetrics(func() float64 { return float64(len(b.queue)) })
	m := models[0]
	if len(m.Inputs) == 0 || len(m.Inputs[0].Dims) == 0 {
		return nil, errors.New("the model has no input with a batch dim")
	}
	most := int(m.Inputs[0].Dims[0])
	for _, side := range []struct {
		tensors []model.Tensor
		bytes   *[]int
	}{{m.Inputs, &b.inputs}, {m.Outputs, &b.outputs}} {
		for _, t := range side.tensors {
			if len(t.Dims) == 0 || int(t.Dims[0]) != most {
				return nil, fmt.Errorf("%s has shape %v; its first dim must be the batch, %d", t.Name, t.Dims, most)
			}
			*side.bytes = append(*side.bytes, t.Bytes/most)
		}
	}
	for _, n := range b.inputs {
		b.sampleBytes += n
	}
	dims := inputDims(m)
	for n := 1; n <= most; n++ {
		if setBatch(m, dims, n) == nil {
			b.sizes = append(b.sizes, n)
		}
	}
	if len(b.sizes) == 0 {
		return nil, errors.New("the library takes no batch; compile it with --dim batch=1,4,16")
	}
	for _, m := range models {
		b.done.Add(1)
		go b.work(m, dims)
	}
	return b, nil
}

func inputDims(m *model.Model) [][]int64 {
	var dims [][]int64
	for _, t := range m.Inputs {
		dims = append(dims, slices.Clone(t.Dims))
	}
	return dims
}

func setBatch(m *model.Model, dims [][]int64, n int) error {
	now := make([][]int64, len(dims))
	for i := range dims {
		now[i] = slices.Clone(dims[i])
		now[i][0] = int64(n)
	}
	return m.SetDims(now)
}

// infer waits for the outputs of a sample. It fails at once if the queue is full.
func (b *batcher) infer(ctx context.Context, body []byte) ([]byte, error) {
	r := &request{body, make(chan answer, 1)}
	select {
	case b.queue <- r:
	default:
		return nil, errFull
	}
	select {
	case a := <-r.answer:
		return a.body, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// close ends the workers when they have answered what is in the queue.
func (b *batcher) close() {
	close(b.queue)
	b.done.Wait()
	for _, m := range b.models {
		m.Close()
	}
}

// work runs batches with one context until the queue is closed and empty.
func (b *batcher) work(m *model.Model, dims [][]int64) {
	defer b.done.Done()
	for first := range b.queue {
		batch := b.gather(first)
		n := b.sizes[slices.IndexFunc(b.sizes, func(n int) bool { return n >= len(batch) })]
		start := time.Now()
		outputs, err := b.run(m, dims, batch, n)
		b.metrics.batch(len(batch), n, time.Since(start))
		for i, r := range batch {
			a := answer{err: err}
			if err == nil {
				for k, size := range b.outputs {
					a.body = append(a.body, outputs[k][i*size:(i+1)*size]...)
				}
			}
			r.answer <- a
		}
	}
}

// gather takes what comes behind the first request until the batch is full or the first has waited long enough.
func (b *batcher) gather(first *request) []*request {
	batch := []*request{first}
	most := b.sizes[len(b.sizes)-1]
	late := time.NewTimer(b.delay)
	defer late.Stop()
	for len(batch) < most {
		select {
		case r, open := <-b.queue:
			if !open {
				return batch
			}
			batch = append(batch, r)
		case <-late.C:
			return batch
		}
	}
	return batch
}

// run runs a batch on the program for n samples. The places behind the last sample repeat it.
func (b *batcher) run(m *model.Model, dims [][]int64, batch []*request, n int) ([][]byte, error) {
	if err := setBatch(m, dims, n); err != nil {
		return nil, err
	}
	inputs := make([][]byte, len(b.inputs))
	at := 0
	for k, size := range b.inputs {
		for i := range n {
			inputs[k] = append(inputs[k], batch[min(i, len(batch)-1)].body[at:at+size]...)
		}
		at += size
	}
	return m.Run(inputs)
}
