package dump

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/rammerc/rammerc/internal/limits"
)

// Read returns the content of a file of a dump. Where the file only says that nothing has changed, that is the content
// of the file which it names; file says which one it was. Files that no dump has written are read as they are.
func Read(path string) (text []byte, file string, err error) {
	if text, err = limits.Read(path, limits.LargeText); err != nil {
		return nil, path, err
	}
	rest, same := bytes.CutPrefix(text, []byte(unchanged))
	if !same {
		return text, path, nil
	}
	name := strings.TrimSuffix(string(rest), "\n")
	if !numbered.MatchString(name) {
		return nil, path, fmt.Errorf("it stands for %q, which is no file of a dump", name)
	}
	file = filepath.Join(filepath.Dir(path), name)
	if text, err = limits.Read(file, limits.LargeText); err == nil && bytes.HasPrefix(text, []byte(unchanged)) {
		err = fmt.Errorf("it stands for %s, which stands for another file itself", name)
	}
	return text, file, err
}

// Constant returns the elements that the text in file leaves out and has the hash of.
func Constant(file, hash string) ([]byte, error) {
	path, err := constantFile(filepath.Dir(file), hash)
	if err != nil {
		return nil, err
	}
	data, err := limits.Read(path, limits.Memory())
	if os.IsNotExist(err) {
		return nil, fmt.Errorf("there is no file %s beside the text", filepath.Join(constants, filepath.Base(path)))
	}
	return data, err
}

func constantFile(dir, hash string) (string, error) {
	m := hashed.FindStringSubmatch(hash)
	if m == nil {
		return "", fmt.Errorf("%q is no hash of elements", hash)
	}
	return filepath.Join(dir, constants, m[1]+".bin"), nil
}
