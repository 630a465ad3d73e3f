package tune

import (
	"encoding/json"
	"path/filepath"

	"github.com/rammerc/rammerc/profiler/db"
)

// Log is the file of all trials, for all programs on all machines, lines of JSON as in package db.
type Log struct {
	path string
	key  Key
}

// Key says of which program and where trials are.
type Key struct {
	db.Machine
	Program string `json:"program"` // hash of the keys of all candidates, the precision and the device description
}

// version is that of the lines.
const version = 1

type line struct {
	V     int    `json:"v"`
	Model string `json:"model"` // for readers of the file
	Key
	Trial
}

// FileName is the name of the log beside the database.
const FileName = "tuned.jsonl"

// Beside is the log of a program in the folder of a database.
func Beside(base *db.DB, key Key) *Log {
	return &Log{filepath.Join(filepath.Dir(base.Path()), FileName), key}
}

// Trials reads those of the log's program, in the order in which they were made.
func (l *Log) Trials() ([]Trial, error) {
	var out []Trial
	_, err := db.ReadLines(l.path, func(text []byte) bool {
		var x line
		if json.Unmarshal(text, &x) != nil || x.V == 0 {
			return false
		}
		if x.V == version && x.Key == l.key {
			out = append(out, x.Trial)
		}
		return true
	})
	return out, err
}

// Append adds trials. When it returns they are on the disk.
func (l *Log) Append(model string, trials []Trial) error {
	var text []byte
	for _, t := range trials {
		data, err := json.Marshal(line{version, model, l.key, t})
		if err != nil {
			return err
		}
		text = append(append(text, data...), '\n')
	}
	if len(text) == 0 {
		return nil
	}
	return db.AppendLines(l.path, text)
}

// ID is the hash of all of the key.
func (k Key) ID() string { return db.Key{Machine: k.Machine, Source: k.Program}.ID() }
