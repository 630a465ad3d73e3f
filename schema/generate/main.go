// Command generate writes package schema and the C++ headers of the same content from the description in
// schema/describe. It is what `go generate ./schema` runs.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/rammerc/rammerc/schema/describe"
)

func main() {
	// go generate runs commands in the folder of the file that names them.
	if err := write(".."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// files makes the generated files, by their paths in the repository.
func files() (map[string][]byte, error) {
	if err := describe.Check(); err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	for _, g := range describe.Groups() {
		source, err := g.Go()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", g.Name, err)
		}
		out["schema/"+g.Name+".go"], out[g.Header] = source, g.CXX()
	}
	return out, nil
}

func write(root string) error {
	all, err := files()
	if err != nil {
		return err
	}
	for name, data := range all {
		if err := os.WriteFile(filepath.Join(root, filepath.FromSlash(name)), data, 0o666); err != nil {
			return err
		}
	}
	return nil
}
