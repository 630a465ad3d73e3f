// Package limits bounds what a file or a model can make the process do. Files of users are read by its functions, which
// never wait for a pipe and never read more than is wanted; what allocates as much as an input says asks it how much
// memory there is.
package limits

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// The largest text files that are read, in bytes. Those that people write have a few lines. Texts that the compiler
// writes of whole models, such as plans, grow with the number of rTasks.
const (
	SmallText int64 = 1 << 20
	LargeText int64 = 1 << 28
)

// Open opens a regular file, or a link to one, and returns its size in bytes. Pipes, devices, sockets and folders are
// refused, without waiting for whoever is at their other end.
func Open(path string) (*os.File, int64, error) {
	info, err := os.Stat(path) // before it is opened, since opening a device may do something
	if err != nil {
		return nil, 0, err
	}
	if err := regular(info); err != nil {
		return nil, 0, err
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, err
	}
	if info, err = f.Stat(); err == nil {
		err = regular(info) // it may have been replaced meanwhile
	}
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}

func regular(info os.FileInfo) error {
	switch {
	case info.IsDir():
		return errors.New("is a folder, a file is wanted")
	case !info.Mode().IsRegular():
		return errors.New("is not a regular file")
	}
	return nil
}

// Read reads a regular file of at most limit bytes.
func Read(path string, limit int64) ([]byte, error) {
	f, size, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if size > limit {
		return nil, fmt.Errorf("has %d bytes, and at most %d are read", size, limit)
	}
	data := make([]byte, size)
	n, err := io.ReadFull(f, data)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		err = nil // it became shorter meanwhile
	}
	return data[:n], err
}

// Matching lists the paths in a folder whose last element matches a pattern of filepath.Match, in order. Unlike in
// filepath.Glob, the folder's own path may hold brackets and stars, which stand for themselves. A folder that cannot be
// read has none.
func Matching(dir, pattern string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		if ok, err := filepath.Match(pattern, e.Name()); err != nil {
			panic("BUG: " + err.Error())
		} else if ok {
			out = append(out, filepath.Join(dir, e.Name()))
		}
	}
	return out
}
