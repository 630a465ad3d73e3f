// Package dump writes what the compiler's stages make into one directory and reads it back.
//
//	000_import_model.rir                      files are numbered in the order in which they were made
//	007_graphopt_fold-constants.rir
//	008_graphopt_fuse.rir                     "(unchanged) since 007_…" where a stage changed nothing
//	031_schedule_wavefront.rprog
//	constants/3f2a….bin                       elements that the .rir files leave out, each once, named by their hash
//	index.txt                                 the names of all numbered files
package dump

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/rammerc/rammerc/internal/limits"
)

// Dir is a dump directory. The methods of a nil *Dir do nothing, so that callers need not ask whether a dump is wanted.
type Dir struct {
	path  string
	next  int                 // number of the next file
	last  map[string]previous // per extension
	index []string
}

// previous is the last content written with some extension.
type previous struct {
	file    string
	content []byte
}

const (
	// indexName is the file that lists the files of a dump. A later dump removes those files and no others.
	indexName   = "index.txt"
	indexHeader = "rammerc dump 1"
	// unchanged is how a file begins that stands for an earlier one with the same content.
	unchanged = "(unchanged) since "
	// constants is the folder for elements that texts leave out.
	constants = "constants"
)

var (
	numbered = regexp.MustCompile(`^[0-9]{3,}_[A-Za-z0-9._-]+$`)
	hashed   = regexp.MustCompile(`^sha256:([0-9a-f]{8,64})$`)
)

// Create makes the directory, if need be, and removes the files of an earlier dump in it. Other files stay. Where there
// was no dump, it is an error if the list, or something of the names that the caller is going to write, is there.
func Create(path string, names ...string) (*Dir, error) {
	if err := os.MkdirAll(path, 0o777); err != nil {
		return nil, err
	}
	for _, name := range append(names, indexName) {
		if _, err := os.Lstat(filepath.Join(path, name)); err == nil && indexOf(path) == nil {
			return nil, fmt.Errorf("%s is there, and of no dump", name)
		}
	}
	d := &Dir{path: path, last: map[string]previous{}}
	if err := d.removeEarlier(); err != nil {
		return nil, err
	}
	return d, d.writeIndex()
}

// indexOf reads the list of a dump's files; it is nil where there is no dump.
func indexOf(path string) []byte {
	data, err := limits.Read(filepath.Join(path, indexName), limits.SmallText)
	if err != nil || !bytes.HasPrefix(data, []byte(indexHeader+"\n")) {
		return nil
	}
	return data
}

func (d *Dir) removeEarlier() error {
	data := indexOf(d.path)
	if data == nil {
		return nil
	}
	lines := bufio.NewScanner(bytes.NewReader(data))
	for lines.Scan() {
		name, _, _ := strings.Cut(lines.Text(), " ")
		if !numbered.MatchString(name) {
			continue
		}
		if err := os.Remove(filepath.Join(d.path, name)); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	return d.removeConstants()
}

func (d *Dir) removeConstants() error {
	for _, f := range limits.Matching(filepath.Join(d.path, constants), "*.bin") {
		if !hashed.MatchString("sha256:" + strings.TrimSuffix(filepath.Base(f), ".bin")) {
			continue
		}
		if err := os.Remove(f); err != nil {
			return err
		}
	}
	os.Remove(filepath.Join(d.path, constants)) // stays if it holds files of others
	return nil
}

// Write adds the file NNN_stage_name.ext; name may be empty. content is called only if there is a dump. When it equals
// the last content with the same ext, the file only names the one that has it.
func (d *Dir) Write(stage, name, ext string, content func() ([]byte, error)) error {
	if d == nil {
		return nil
	}
	data, err := content()
	if err != nil {
		return err
	}
	file := fmt.Sprintf("%03d_%s", d.next, clean(stage))
	if name != "" {
		file += "_" + clean(name)
	}
	file += "." + clean(ext)
	d.next++
	entry := file
	if p, ok := d.last[ext]; ok && bytes.Equal(p.content, data) {
		data = []byte(unchanged + p.file + "\n")
		entry += " (unchanged)"
	} else {
		d.last[ext] = previous{file, data}
	}
	if err := os.WriteFile(filepath.Join(d.path, file), data, 0o666); err != nil {
		return err
	}
	d.index = append(d.index, entry)
	return d.writeIndex()
}

// WriteNamed writes a file without a number, such as repro.sh; it is executable when it starts with #!.
func (d *Dir) WriteNamed(name string, data []byte) error {
	if d == nil {
		return nil
	}
	mode := os.FileMode(0o666)
	if bytes.HasPrefix(data, []byte("#!")) {
		mode = 0o777
	}
	return os.WriteFile(filepath.Join(d.path, clean(name)), data, mode)
}

// Constant keeps the elements of a constant under their hash, which texts have in their place. Equal elements are
// written once.
func (d *Dir) Constant(hash string, elements func() []byte) error {
	if d == nil {
		return nil
	}
	file, err := constantFile(d.path, hash)
	if err != nil {
		return err
	}
	if _, err := os.Stat(file); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		return err
	}
	return os.WriteFile(file, elements(), 0o666)
}

func (d *Dir) writeIndex() error {
	text := strings.Join(append([]string{indexHeader}, d.index...), "\n") + "\n"
	return os.WriteFile(filepath.Join(d.path, indexName), []byte(text), 0o666)
}

// clean keeps file names inside the directory, whatever a model calls its nodes.
func clean(s string) string {
	s = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-' {
			return r
		}
		return '-'
	}, s)
	s = strings.TrimLeft(s, ".")
	if len(s) > 100 {
		s = s[:100]
	}
	if s == "" {
		return "-"
	}
	return s
}
