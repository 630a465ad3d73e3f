package runner

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/rammerc/rammerc/codegen/abi"
	"github.com/rammerc/rammerc/internal/outdir"
	"github.com/rammerc/rammerc/internal/toolchain"
)

// runnerSource and what follows are the child's program and what it includes beside model.h.
//
//go:embed child/runner.cc
var runnerSource string

//go:embed child/driver.h
var driverSource string

//go:embed child/contexts.h
var contextsSource string

//go:embed child/library.h
var librarySource string

var building sync.Mutex

// cachedProgram compiles the child's program into the user's cache folder, unless it is there already.
func cachedProgram(ctx context.Context, cxx *toolchain.Cxx, flags []string) (string, error) {
	building.Lock()
	defer building.Unlock()
	version, err := cxx.Version(ctx)
	if err != nil {
		return "", err
	}
	header := abi.Header("model") + abi.GeneralHeader("model") + abi.StatesHeader("model")
	key := sha256.Sum256([]byte(strings.Join(append([]string{cxx.Path, version, header, runnerSource, driverSource, contextsSource, librarySource},
		flags...),
		"\x00")))
	dir, err := cacheDir()
	if err != nil {
		return "", err
	}
	// What a killed process has left while another one built the program would stay: nobody builds it again.
	outdir.Process.Sweep(dir)
	exe := filepath.Join(dir, fmt.Sprintf("runner-%x", key[:12]))
	if _, err := os.Stat(exe); err == nil {
		return exe, nil
	}
	tmp, remove, err := outdir.Process.Make(dir, "rammerc-runner-")
	if err != nil {
		return "", err
	}
	defer remove()
	for name, text := range map[string]string{"model.h": header, "driver.h": driverSource, "contexts.h": contextsSource,
		"library.h": librarySource, "runner.cc": runnerSource} {
		if err := os.WriteFile(filepath.Join(tmp, name), []byte(text), 0o666); err != nil {
			return "", err
		}
	}
	if _, err := cxx.BuildProgram(ctx, tmp, "runner", []string{"runner.cc"}, flags...); err != nil {
		return "", err
	}
	// Another process may have compiled it meanwhile. Then its file, which is the same, is replaced.
	return exe, os.Rename(filepath.Join(tmp, "runner"), exe)
}

// cacheDir is the folder for compiled programs: in the user's cache folder, or in the temporary folder if there is
// none.
func cacheDir() (string, error) {
	base, err := os.UserCacheDir()
	if err == nil {
		dir := filepath.Join(base, "rammerc")
		if err := os.MkdirAll(dir, 0o700); err == nil {
			return dir, nil
		}
	}
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("rammerc-%d", os.Getuid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	return dir, ownDir(dir)
}

// ownDir returns an error if others may write into dir, because they could have put a program of theirs there.
func ownDir(dir string) error {
	st, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !st.IsDir() || st.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%s is open to other users; remove it", dir)
	}
	return nil
}
