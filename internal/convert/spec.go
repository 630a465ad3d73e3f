package convert

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/limits"
	"github.com/rammerc/rammerc/rkernels"
)

// Spec says of a kernel what its source does not say: with which template arguments it is compiled, how it is launched,
// and what its arguments are.
type Spec struct {
	Kernel   string   `yaml:"kernel"`             // the name of the __global__ function
	Name     string   `yaml:"name,omitempty"`     // of the rKernel; that of the function, if there is none
	Doc      string   `yaml:"doc,omitempty"`      // for the manifest
	Template []string `yaml:"template,omitempty"` // template arguments, as C++
	// Blank lists macros without a meaning for the device, such as attributes, which the parser cannot place.
	Blank []string `yaml:"blank,omitempty"`
	// Defines are macros that a compiler's command line would define, "NAME=VALUE".
	Defines []string `yaml:"defines,omitempty"`
	// SharedBytes has the sizes of variables in shared memory whose size the source does not tell by itself.
	SharedBytes map[string]int64 `yaml:"shared_bytes,omitempty"`
	// Registers is how many registers a thread takes, about; for the choice of plans. 0 stands for 64.
	Registers int `yaml:"registers,omitempty"`

	rkernels.Custom `yaml:",inline"`
}

// maxSpec is how many bytes a specification may have.
const maxSpec = 1 << 20

// ReadSpec reads a specification and checks what can be checked without the source.
func ReadSpec(path string) (*Spec, error) {
	data, err := limits.Read(path, maxSpec)
	if err != nil {
		return nil, unreadable(path, err)
	}
	s := &Spec{}
	decoder := yaml.NewDecoder(strings.NewReader(string(data)))
	decoder.KnownFields(true)
	if err := decoder.Decode(s); err != nil && !errors.Is(err, io.EOF) {
		return nil, &diag.Diagnostic{ID: "bad-kernel-spec", File: path, Message: err.Error()}
	}
	if s.Name == "" {
		s.Name = s.Kernel
	}
	var l diag.List
	fault := func(format string, args ...any) {
		l.Add(&diag.Diagnostic{ID: "bad-kernel-spec", File: path, Message: fmt.Sprintf(format, args...)})
	}
	if s.Kernel == "" {
		fault("kernel: is missing: the name of the __global__ function")
	}
	if !identifier(s.Name) {
		fault("name: %q is no name for a C++ class", s.Name)
	}
	for _, problem := range s.Custom.Check() {
		fault("%s", problem)
	}
	return s, l.Err()
}

// identifier reports whether s is a name in C++.
func identifier(s string) bool {
	for i, c := range s {
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}
