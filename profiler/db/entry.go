// Package db keeps what was measured of rTasks: a file of JSON lines, one for each measurement. A line's key is content:
// what was compiled, with which arguments, by which compiler, for which GPU with which driver. A measurement is used
// where its whole key is that of the question, and nowhere else; therefore nothing has to be invalidated.
//
//	Open ─▶ Find(Key) ─▶ an Entry, or none
//	Append(Entry…)      adds lines, which are on the disk when it returns
package db

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
)

// Version is that of the lines. Lines of other versions are kept, but not used.
const Version = 1

// Machine is where and with what rTasks were measured. Two measurements are comparable if their machines are equal.
type Machine struct {
	GPU    string `json:"gpu"`    // product, "NVIDIA H200"
	Clocks string `json:"clocks"` // the most that its clocks reach, in MHz: multiprocessors and memory, "1980/3201"
	Driver string `json:"driver"` // "580.159.04"
	NVCC   string `json:"nvcc"`   // release, "13.0"
	// RunTime is the hash of the sources that surround an rTask while it is measured.
	RunTime string `json:"run_time"`
}

// Key says what was measured.
type Key struct {
	Machine
	Source string `json:"source"` // hash of the instance's sources, template arguments and functors
	Args   string `json:"args"`   // hash of its arguments, with the places of their buffers, and the number of rTasks
}

// ID is the hash of all of the key, in hexadecimal digits.
func (k Key) ID() string {
	return Hash(fmt.Sprintf("%q", []string{k.GPU, k.Clocks, k.Driver, k.NVCC, k.RunTime, k.Source, k.Args}))
}

// Hash is how keys identify a text: the first 16 digits of its SHA-256 in hexadecimal.
func Hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return fmt.Sprintf("%x", sum[:8])
}

// Times are what one rTask takes, in nanoseconds by the clock of its multiprocessor. A wave is as many of the
// candidate's rTasks as the device has vEUs, one on each; a vEU that computes several, one after another, counts with
// their mean.
type Times struct {
	Alone float64 `json:"alone,omitempty"` // a single rTask on the device, repeated
	Wave  float64 `json:"wave,omitempty"`  // a wave, repeated
	// Cold is a wave whose code is in no instruction cache, as in a program that runs other code before; operands and
	// constants are in L2. DRAM is the same with constants in DRAM. Of candidates that are far from the best of their
	// rOperator Cold alone is measured.
	Cold float64 `json:"cold"`
	DRAM float64 `json:"dram,omitempty"`
	// A wave on half of the vEUs, while the other half moves memory, or computes.
	BesideMemory     float64 `json:"beside_memory,omitempty"`
	BesideArithmetic float64 `json:"beside_arithmetic,omitempty"`
}

// Work is what an rTask has to do, as its candidate states it: operations, bytes, and the bytes of all constants.
type Work struct {
	Flops     float64 `json:"flops,omitempty"`
	Tensor    float64 `json:"tensor,omitempty"`
	Const     float64 `json:"const,omitempty"`
	Read      float64 `json:"read,omitempty"`
	Write     float64 `json:"write,omitempty"`
	Shared    float64 `json:"shared,omitempty"`
	Constants float64 `json:"constants,omitempty"`
	Streamed  bool    `json:"streamed,omitempty"` // the constants come through the ring
}

// Code is what the compiler made of the instance.
type Code struct {
	Registers int   `json:"registers"` // of a thread
	Spills    int   `json:"spills"`    // bytes that a thread stores for lack of registers
	Shared    int   `json:"shared"`    // bytes of a block
	Bytes     int64 `json:"bytes"`     // of machine code
}

// Entry is a line of the database.
type Entry struct {
	V int `json:"v"`
	Key
	// What a reader of the file wants to know beside the key.
	Kernel   string `json:"rkernel"`
	Instance string `json:"instance"` // name and parameters
	// Arithmetic is what it multiplies on tensor cores, "scalar" if it does not use them.
	Arithmetic string `json:"arithmetic,omitempty"`

	Op       string  `json:"op"`    // what the rOperator computes
	Model    string  `json:"model"` // where it was met first
	Tasks    int     `json:"rtasks"`
	Threads  int     `json:"threads"`
	Modelled float64 `json:"modelled_ns,omitempty"` // what the cost model said then
	Work     Work    `json:"work"`                  // what the cost model is fitted with

	Times   Times   `json:"ns"`
	Code    Code    `json:"code"`
	Repeats int     `json:"repeats,omitempty"`
	Spread  float64 `json:"spread,omitempty"` // of the repeats of a wave: half the distance of their quartiles over the median
	MHz     float64 `json:"mhz,omitempty"`    // of the multiprocessors during the measurement
	// Problem says why the candidate must not be used: it hangs, faults, computes something wrong or does not build.
	Problem string `json:"problem,omitempty"`
}

func (e *Entry) line() ([]byte, error) {
	e.V = Version
	data, err := json.Marshal(e)
	return append(data, '\n'), err
}
