package runner

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Ranges is what the library of a general program says of its dims. Inputs and Outputs of Info have the largest
// extents, until SetDims sets others.
type Ranges struct {
	Symbols []Symbol `json:"symbols"`
	Found   []Symbol `json:"found"` // extents that a run finds
	Inputs  []Dims   `json:"inputs"`
	Outputs []Dims   `json:"outputs"`
	// Programs are the extents that the library's special programs take, the smallest first, and those of the general one.
	Programs []string `json:"programs"`
	States   []State  `json:"states"` // that the library keeps
	// Generate says how a library searches of which one run produces a whole answer; nil for others.
	Generate *Generation `json:"generate"`
}

// Generation is how a library produces answers.
type Generation struct {
	Search string      `json:"search"`
	Ends   []int64     `json:"end_tokens"` // that end an answer
	Tokens int64       `json:"max_tokens"` // of prompt and answer
	Caches [][2]string `json:"caches"`     // of the decoder: inputs and the outputs that are longer
}

// Beams is how many answers the search keeps, of which it gives the best; 0 for a greedy search.
func (g *Generation) Beams() int64 { return Beams(g.Search) }

// Beams is the number of a search that is called beam=N, from 1 on; 0 for other texts.
func Beams(search string) int64 {
	text, ok := strings.CutPrefix(search, "beam=")
	if n, err := strconv.ParseInt(text, 10, 32); ok && err == nil && n > 0 && text == strconv.FormatInt(n, 10) {
		return n
	}
	return 0
}

// State is an input of the model that is an output of the run before.
type State struct {
	Input, Output string
	Dims          []string // of the input, as in Dims
	Grows         string   // the symbol of the dim that grows, "" if none does
	Next          string   // what it is behind a run: a sum of symbols
	Room          int64    // what it can become
}

// Symbol is the name of a dim with the extents that it may have.
type Symbol struct {
	Name   string  `json:"name"`
	Min    int64   `json:"min"`
	Max    int64   `json:"max"`
	Values []int64 `json:"values"` // the only ones allowed, if there are any
	State  bool    `json:"state"`  // it is how far a state of the library has grown, and no dim of an input
	// Parts are the symbols of the sum that Name spells, such as past+seq; nil where the extent is its own.
	Parts []*Symbol `json:"-"`
}

// Dims are the dims of a tensor: numbers, symbols, or sums and products of these, such as past+seq and batch·seq.
type Dims struct {
	Name string   `json:"name"`
	Dims []string `json:"dims"`
}

// ResetStates empties the states that the library keeps.
func (l *Lib) ResetStates() error {
	head := binary.LittleEndian.AppendUint32(nil, 11)
	_, err := l.call([][]byte{append(head, make([]byte, 8)...)})
	return err
}

// SeekStates sets how far the states of the library have grown.
func (l *Lib) SeekStates(length int64) error {
	head := append(binary.LittleEndian.AppendUint32(nil, 12), make([]byte, 8)...)
	_, err := l.call([][]byte{binary.LittleEndian.AppendUint64(head, uint64(length))})
	return err
}

// SetDims sets the extents of the inferences that follow, those of each input, and with them Inputs and Outputs. The
// library must be that of a general program.
func (l *Lib) SetDims(dims [][]int64) error {
	data := append(binary.LittleEndian.AppendUint32(nil, 8), make([]byte, 8)...)
	for i, t := range l.Inputs {
		if len(dims[i]) != len(t.Dims) {
			return fmt.Errorf("input %s has %d dims, got %d", t.Name, len(t.Dims), len(dims[i]))
		}
		for _, n := range dims[i] {
			data = binary.LittleEndian.AppendUint64(data, uint64(n))
		}
	}
	reply, err := l.call([][]byte{data})
	if err != nil {
		return err
	}
	l.Inputs, l.Outputs = nil, nil
	if err := json.Unmarshal(reply, &l.Info); err != nil {
		return err
	}
	return l.refresh()
}

// readDims takes the extents of outputs from what a run of a general program has returned, and returns the rest.
func (l *Lib) readDims(data []byte) ([]byte, error) {
	if l.Ranges == nil {
		return data, nil
	}
	for i := range l.Outputs {
		t := &l.Outputs[i]
		if len(data) < 8*len(t.Dims) {
			return nil, errors.New("BUG: the runner sent too little")
		}
		t.Dims = slices.Clone(t.Dims)
		for d := range t.Dims {
			t.Dims[d], data = int64(binary.LittleEndian.Uint64(data)), data[8:]
		}
	}
	return data, nil
}
