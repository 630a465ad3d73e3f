// Package hostile makes files that attack the compiler, for a test that runs every command on them: models that ask for
// gigabytes or for work without end, damaged and mutated files of each kind that commands read, headers that claim more
// than there is, and names that pretend to be something else. Nobody but tests imports it.
//
// The files are made by formulas and seeded draws, so each run has the same ones. What a run must do is the same for
// all: end within limits of time and memory, with the status 0 or 2, and, unless it is 0, with a message.
package hostile

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// Case is one run of a command.
type Case struct {
	Kind  string // row of the table of results
	Name  string // unique within the kind
	Files []File
	Args  []string // of rammerc; files are in the current folder
}

// File is a file that a case needs. It has Data in front, and zeros that take no place on the disk up to Size, if Size
// is larger.
type File struct {
	Name string
	Data []byte
	Size int64
}

// Write writes the files of a case into dir.
func (c *Case) Write(dir string) error {
	for _, f := range c.Files {
		path := filepath.Join(dir, f.Name)
		if err := os.WriteFile(path, f.Data, 0o666); err != nil {
			return err
		}
		if f.Size > int64(len(f.Data)) {
			if err := os.Truncate(path, f.Size); err != nil {
				return err
			}
		}
	}
	return nil
}

// Sources are files of the project from which damaged ones are made: models, and texts that the compiler wrote.
type Sources struct {
	Models map[string][]byte // by name, without .onnx
	Device []byte            // a device file
	Plan   []byte            // a plan in text form, .rprog, of the model PlanOf
	PlanOf string
}

// All makes all cases.
func All(s *Sources) []Case {
	var out []Case
	for _, make := range []func(*Sources) []Case{
		largeModels, endlessModels, wrongModels, mutatedModels, damagedModels, tensorFiles, deviceFiles, graphTexts, planTexts,
		configurations, flags, names, states, foundExtents, decidedBranches, answers, kernelSpecs,
	} {
		out = append(out, make(s)...)
	}
	return out
}

// draws is a source of random numbers that depends on nothing but a seed.
func draws(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 18)) }

// damaged makes n versions of data: cut off somewhere, with bytes changed, with a part left out or repeated.
func damaged(data []byte, n int, seed uint64) [][]byte {
	r := draws(seed)
	var out [][]byte
	for i := range n {
		x := append([]byte(nil), data...)
		at := r.IntN(len(x))
		switch i % 4 {
		case 0:
			x = x[:at]
		case 1:
			for range 1 + r.IntN(8) {
				x[r.IntN(len(x))] = byte(r.Uint32())
			}
		case 2:
			x = append(x[:at:at], x[min(len(x), at+1+r.IntN(64)):]...)
		case 3:
			end := min(len(x), at+1+r.IntN(256))
			x = append(x[:end:end], x[at:]...)
		}
		out = append(out, x)
	}
	return out
}

// numbered is a name for the ith of several cases.
func numbered(name string, i int) string { return fmt.Sprintf("%s-%d", name, i) }
