// Package dump writes what stages of the compiler leave behind into one directory, numbered in the
// order it came: 007_graphopt_fold-constants.rir, 031_schedule_wavefront.rprog. Where a stage changed
// nothing the file says so instead of repeating what was there.
package dump

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Dir is a dump directory. A nil *Dir takes everything and writes nothing, so that callers need not ask
// whether a dump is wanted.
type Dir struct {
	path  string
	next  int
	last  map[string]previous // per extension
	index []string
}

// previous is the last content written with some extension.
type previous struct {
	file    string
	content []byte
}

// indexName lists the files of a dump; by it a later dump knows which files it may remove.
const (
	indexName   = "index.txt"
	indexHeader = "rammerc dump 1"
)

var numbered = regexp.MustCompile(`^[0-9]{3,}_[A-Za-z0-9._-]+$`)

// Create makes the directory, if need be, and removes the numbered files of an earlier dump in it.
// Other files stay.
func Create(path string) (*Dir, error) {
	if err := os.MkdirAll(path, 0o777); err != nil {
		return nil, err
	}
	d := &Dir{path: path, last: map[string]previous{}}
	if err := d.removeEarlier(); err != nil {
		return nil, err
	}
	return d, d.writeIndex()
}

func (d *Dir) removeEarlier() error {
	data, err := os.ReadFile(filepath.Join(d.path, indexName))
	if err != nil || !bytes.HasPrefix(data, []byte(indexHeader+"\n")) {
		return nil // no dump of ours
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
	return nil
}

// Write adds the file NNN_stage_name.ext; name may be empty. content is called only if there is a dump.
// When it equals the last content with the same ext, the file says "(unchanged)" and since when.
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
		data = []byte("(unchanged) since " + p.file + "\n")
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

// Path is the directory, "" for a nil Dir.
func (d *Dir) Path() string {
	if d == nil {
		return ""
	}
	return d.path
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
