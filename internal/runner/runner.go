// Package runner runs built libraries in a child process, so that whatever happens in a library cannot harm the caller.
// The child is a small C++ program (child/runner.cc) that loads the library. It takes commands on standard input and
// answers on standard output; tensors pass as bytes, and times are measured in the child.
package runner

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/rammerc/rammerc/codegen/abi"
	"github.com/rammerc/rammerc/internal/process"
	"github.com/rammerc/rammerc/internal/toolchain"
)

// Mode says how the program is launched. The zero value leaves that to the plan.
type Mode int

// The modes of the library's C interface.
const (
	Auto     Mode = 0
	RProgram Mode = 1
	Waves    Mode = 2
)

// Options say how to open a library. The zero value runs it as its users would.
type Options struct {
	Name       string   // prefix of its functions; "" takes it from the file name libNAME.so
	Weights    string   // weights file; "" is NAME.weights beside the library
	Mode       Mode     // how its program is launched
	Device     int      // CUDA device + 1; 0 for the current one
	OnDevice   bool     // on a GPU: inputs and outputs stay in device memory, and device events take times
	Seed       uint64   // on the emulator: draws the order of threads
	MaxBlocks  int      // on the emulator: how many blocks are resident at once, at most
	WatchdogNS uint64   // in debug builds: how long a wait may take, in nanoseconds
	Delays     uint64   // in debug builds: seed of random sleeps; 0 for none
	Env        []string // variables to add to the child's environment, NAME=VALUE
	Cxx        string   // compiler for the child's program; "" looks for one
	Flags      []string // for that compiler, such as -fsanitize=thread where the library has it too
	// Under is a command to run the child under, with its flags, such as compute-sanitizer. It must not use standard
	// input and standard output.
	Under []string
}

// Tensor describes an input or output.
type Tensor struct {
	Name  string  `json:"name"`
	DType int     `json:"dtype"` // ONNX TensorProto.DataType
	Bytes int     `json:"bytes"`
	Dims  []int64 `json:"dims"`
}

// Info is what a library says of itself when it is opened, and what opening took.
type Info struct {
	Inputs  []Tensor        `json:"inputs"`
	Outputs []Tensor        `json:"outputs"`
	Load    float64         `json:"load_ms"`   // to load the library
	Create  float64         `json:"create_ms"` // to make a context, with the driver's start and the weights' upload
	Build   json.RawMessage `json:"build"`
	Launch  RunInfo         `json:"run"`    // after the latest call
	Ranges  *Ranges         `json:"ranges"` // of a general program; nil if the extents are fixed
}

// RunInfo says how the library's context runs its program. That can change when a device refuses an rProgram.
type RunInfo struct {
	Device string `json:"device"`
	Mode   string `json:"mode"` // kinds of segments that run: "rprogram", "waves+parallel", …
	Reason string `json:"reason"`
	// Program is that of Ranges.Programs which runs, in a library whose dims have ranges.
	Program string `json:"program"`
}

// StatusError is a failure that the library reported.
type StatusError struct {
	Code int // of codegen/abi; -1 for errors of the child's program itself
	Text string
}

func (e *StatusError) Error() string {
	if e.Code < 0 {
		return e.Text
	}
	return fmt.Sprintf("%s: %s", abi.StatusText(e.Code), e.Text)
}

// Lib is an opened library. Its methods may be called from one goroutine at a time.
type Lib struct {
	Info
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    io.Reader
	stderr *tail
	under  string // Options.Under, as one text
	wait   sync.Once
	end    error
}

// Open starts the child, which loads the library and makes a context. Cancelling ctx ends the child.
func Open(ctx context.Context, lib string, opt Options) (*Lib, error) {
	exe, err := program(ctx, opt)
	if err != nil {
		return nil, err
	}
	lib, err = filepath.Abs(lib)
	if err != nil {
		return nil, err
	}
	if opt.Name == "" {
		opt.Name = strings.TrimSuffix(strings.TrimPrefix(filepath.Base(lib), "lib"), filepath.Ext(lib))
	}
	if len(opt.Under) > 0 {
		if _, err := exec.LookPath(opt.Under[0]); err != nil {
			return nil, &toolchain.Missing{Tool: opt.Under[0], Help: "the library's process was to run under it"}
		}
	}
	args := append(append([]string{}, opt.Under...), exe, lib, opt.Name)
	args = append(args, opt.arguments()...)
	l := &Lib{cmd: process.Command(ctx, args[0], args[1:]...), stderr: &tail{}, under: strings.Join(opt.Under, " ")}
	l.cmd.Env = append(os.Environ(), opt.Env...)
	l.cmd.Stderr = l.stderr
	if l.in, err = l.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if l.out, err = l.cmd.StdoutPipe(); err != nil {
		return nil, err
	}
	if err := process.Start(l.cmd); err != nil {
		return nil, err
	}
	greeting, err := l.reply()
	if err == nil {
		err = json.Unmarshal(greeting, &l.Info)
	}
	if err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

func (o *Options) arguments() []string {
	args := []string{fmt.Sprintf("mode=%d", o.Mode)}
	if o.Weights != "" {
		args = append(args, "weights="+o.Weights)
	}
	if o.OnDevice {
		args = append(args, "on_device=1")
	}
	for _, a := range []struct {
		key   string
		value uint64
	}{
		{"device", uint64(o.Device)}, {"seed", o.Seed}, {"max_blocks", uint64(o.MaxBlocks)},
		{"watchdog_ns", o.WatchdogNS}, {"delays", o.Delays},
	} {
		if a.value != 0 {
			args = append(args, fmt.Sprintf("%s=%d", a.key, a.value))
		}
	}
	return args
}

// Run carries out one inference. It takes the bytes of every input, in order, and returns those of every output. Where the
// run has found extents, Outputs has them then, and the bytes that such an output does not need follow its elements.
func (l *Lib) Run(inputs [][]byte) ([][]byte, error) {
	data, err := l.request(1, 0, 0, inputs)
	if err != nil {
		return nil, err
	}
	if data, err = l.readDims(data); err != nil {
		return nil, err
	}
	out := make([][]byte, len(l.Outputs))
	for i, t := range l.Outputs {
		if len(data) < t.Bytes {
			return nil, errors.New("BUG: the runner sent too little")
		}
		out[i], data = data[:t.Bytes:t.Bytes], data[t.Bytes:]
	}
	return out, nil
}

// Bench carries out warmUp inferences and then as many as runs says, and returns the times of the latter in
// milliseconds. With OnDevice device events take the times; without it the host's clock does, and transfers count.
func (l *Lib) Bench(inputs [][]byte, warmUp, runs int) ([]float64, error) {
	return l.times(2, uint32(warmUp), uint32(runs), inputs)
}

// Time carries out one inference and returns the milliseconds, by the host's clock, until its outputs exist. With
// OnDevice transfers do not count. The first inference of a child is a cold one.
func (l *Lib) Time(inputs [][]byte) (float64, error) {
	ms, err := l.times(5, 0, 0, inputs)
	if err != nil {
		return 0, err
	}
	return ms[0], nil
}

// repeatFor is how long the child repeats an inference before it reports how far it is.
const repeatFor = 300 * time.Millisecond

// Repeat carries out n inferences with the same inputs and returns how many of the results differed from the first in
// any bit. The child compares them. progress, unless it is nil, is told now and then how many are done.
func (l *Lib) Repeat(inputs [][]byte, n int, progress func(done, n int)) (int, error) {
	different, part := 0, 1
	for done := 0; done < n; {
		part = min(part, n-done)
		start := time.Now()
		data, err := l.request(3, uint32(part), uint32(min(done, 1)), inputs)
		if err != nil {
			return different, err
		}
		different += int(binary.LittleEndian.Uint32(data))
		done += part
		if progress != nil {
			progress(done, n)
		}
		if time.Since(start) < repeatFor {
			part *= 2
		}
	}
	return different, nil
}

// Trace carries out warmUp inferences and one more, and returns what the last one recorded, in the form of NAME_trace.
// The library must be built with RT_TRACE.
func (l *Lib) Trace(inputs [][]byte, warmUp int) ([]byte, error) {
	return l.request(4, uint32(warmUp), 0, inputs)
}

// Switch goes on with another variant of the library, whose functions have the given prefix, in the same process. If it
// fails the library goes on as before.
func (l *Lib) Switch(name string) error {
	head := binary.LittleEndian.AppendUint32(nil, 7)
	head = binary.LittleEndian.AppendUint32(head, uint32(len(name)))
	greeting, err := l.call([][]byte{binary.LittleEndian.AppendUint32(head, 0), []byte(name)})
	if err != nil {
		return err
	}
	var info Info
	if err := json.Unmarshal(greeting, &info); err != nil {
		return err
	}
	l.Info = info
	return nil
}

func (l *Lib) request(kind, a, b uint32, inputs [][]byte) ([]byte, error) {
	if len(inputs) != len(l.Inputs) {
		return nil, fmt.Errorf("the model has %d inputs, got %d", len(l.Inputs), len(inputs))
	}
	head := binary.LittleEndian.AppendUint32(nil, kind)
	head = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(head, a), b)
	parts := [][]byte{head}
	for i, t := range l.Inputs {
		if len(inputs[i]) != t.Bytes {
			return nil, fmt.Errorf("input %s has %d bytes, want %d", t.Name, len(inputs[i]), t.Bytes)
		}
		parts = append(parts, inputs[i])
	}
	data, err := l.call(parts)
	if err != nil {
		return nil, err
	}
	return data, l.refresh()
}

// refresh asks the child how the context runs now.
func (l *Lib) refresh() error {
	head := binary.LittleEndian.AppendUint32(nil, 6)
	info, err := l.call([][]byte{append(head, make([]byte, 8)...)})
	if err != nil {
		return err
	}
	return json.Unmarshal(info, &l.Launch)
}

func (l *Lib) call(parts [][]byte) ([]byte, error) {
	for _, p := range parts {
		if _, err := l.in.Write(p); err != nil {
			return nil, l.crash()
		}
	}
	return l.reply()
}

func (l *Lib) reply() ([]byte, error) {
	var head [12]byte
	if _, err := io.ReadFull(l.out, head[:]); err != nil {
		return nil, l.crash()
	}
	status := int32(binary.LittleEndian.Uint32(head[:]))
	var data bytes.Buffer
	n := binary.LittleEndian.Uint64(head[4:])
	if _, err := io.CopyN(&data, l.out, int64(n)); err != nil {
		return nil, l.crash()
	}
	if status != 0 {
		return nil, &StatusError{int(status), data.String()}
	}
	return data.Bytes(), nil
}

// crash waits for a child that has closed its output, and returns how it ended.
func (l *Lib) crash() error {
	l.finish()
	return newCrash(l.cmd.ProcessState, l.stderr.String(), l.under)
}

func (l *Lib) finish() error {
	l.wait.Do(func() {
		l.in.Close()
		l.end = process.Wait(l.cmd)
	})
	return l.end
}

// Close ends the child. If it ends badly, as it does after a sanitizer has found something, the error is a *Crash.
func (l *Lib) Close() error {
	if _, err := l.in.Write(make([]byte, 12)); err != nil {
		return l.crash()
	}
	if err := l.finish(); err != nil {
		return newCrash(l.cmd.ProcessState, l.stderr.String(), l.under)
	}
	return nil
}

// Stderr is the end of what the child has printed to standard error so far.
func (l *Lib) Stderr() string { return l.stderr.String() }

// tail is a writer that keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	data []byte
}

const tailBytes = 64 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.data = append(t.data, p...)
	if over := len(t.data) - tailBytes; over > 0 {
		t.data = append(t.data[:0], t.data[over:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.data)
}

// program returns the path of the child's program, which is compiled once for each compiler and set of flags.
func program(ctx context.Context, opt Options) (string, error) {
	cxx, err := toolchain.FindCxx(opt.Cxx)
	if err != nil {
		return "", err
	}
	return cachedProgram(ctx, cxx, opt.Flags)
}
