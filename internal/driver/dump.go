package driver

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/dump"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/onnx"
)

// Word is a word of a command line that a dump repeats: text, and a file or folder that the dump carries along, whose
// name in the bundle stands between Text and After.
type Word struct {
	Text  string // "--input=x="
	File  string // "" if the word names none
	After string // ":member"
}

// bundleFolder holds, in a dump, copies of the files that the command has read. The script repeats the command there, out
// of reach of any rammerc.yaml.
const bundleFolder = "bundle"

// openDump opens the directory of --dump and makes a bundle there for a report of a bug: the files that the command was
// given, and a script that repeats it on them. Without --dump it returns nil, which writes nothing.
func openDump(job *Job, opt CompileOptions, target string) (*dump.Dir, error) {
	if opt.Dump == "" {
		return nil, nil
	}
	inBundle, err := filepath.Rel(filepath.Join(opt.Dump, bundleFolder), opt.Path)
	if filepath.Clean(opt.Dump) == filepath.Dir(filepath.Clean(opt.Path)) || err == nil && filepath.IsLocal(inBundle) {
		return nil, &diag.Diagnostic{ID: "bad-flag", File: opt.Dump,
			Message: "--dump replaces the files of this dump, and " + opt.Path + " is one of them", Help: "choose another directory"}
	}
	d, err := dump.Create(opt.Dump, bundleFolder, scriptName)
	if err == nil {
		err = writeBundle(d, opt, target)
	}
	if err != nil {
		return nil, &diag.Diagnostic{
			ID: "cannot-write", File: opt.Dump, Message: diag.Reason(err).Error(),
			Help: "choose another directory with --dump",
		}
	}
	job.dump = opt.Dump
	return d, nil
}

func writeBundle(d *dump.Dir, opt CompileOptions, target string) error {
	folder := filepath.Join(opt.Dump, bundleFolder)
	if err := os.RemoveAll(folder); err != nil { // of an earlier dump
		return err
	}
	words := []string{}
	for i, w := range opt.Command {
		text := w.Text
		if w.File != "" {
			place := fmt.Sprintf("%d", i)
			if err := carry(w.File, filepath.Join(folder, place)); err != nil {
				return err
			}
			text += place + "/" + filepath.Base(filepath.Clean(w.File)) + w.After
		}
		words = append(words, text)
	}
	if opt.Target == "" && len(words) > 0 { // what there is on the machine of the script's reader may be another GPU
		words = append(words, "--target="+target)
	}
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	return d.WriteNamed(scriptName, []byte(script(bundleFolder, words)))
}

// scriptName is the script that repeats a command.
const scriptName = "repro.sh"

// WriteGraph writes a graph in text form into a folder of its own, with the constants that the text leaves out.
func WriteGraph(dir, name string, g *ir.Graph) error {
	d, err := dump.Create(dir, scriptName)
	if err == nil {
		var text []byte
		if text, err = graphText(d, g)(); err == nil {
			err = d.WriteNamed(name, text)
		}
	}
	return cannotWrite(dir, err)
}

// WriteScript writes a script into dir that runs a command of rammerc there.
func WriteScript(dir string, words []Word) error {
	var texts []string
	for _, w := range words {
		texts = append(texts, w.Text)
	}
	return cannotWrite(dir, os.WriteFile(filepath.Join(dir, scriptName), []byte(script(".", texts)), 0o777))
}

func cannotWrite(dir string, err error) error {
	if err == nil {
		return nil
	}
	return &diag.Diagnostic{ID: "cannot-write", File: dir, Message: diag.Reason(err).Error()}
}

// carry copies a file or folder into to. With a model go its files of external data, and with a graph in text form the
// constants that it leaves out.
func carry(path, to string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.IsDir() {
		// Folders are those of test data: input_0.pb … in them, or in folders below.
		return os.CopyFS(filepath.Join(to, filepath.Base(filepath.Clean(path))), os.DirFS(path))
	}
	var beside []string
	switch filepath.Ext(path) {
	case ".onnx":
		beside, _ = onnx.DataFiles(path) // a model that cannot be read goes into the bundle all the same
	case ".rir", ".rprog":
		_, file, err := dump.Read(path)
		if err == nil && file != path {
			beside = append(beside, filepath.Base(file))
		}
		constants, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "constants", "*.bin"))
		for _, c := range constants {
			beside = append(beside, filepath.Join("constants", filepath.Base(c)))
		}
	}
	for _, name := range append(beside, filepath.Base(path)) {
		err := copyFile(filepath.Join(filepath.Dir(path), name), filepath.Join(to, name))
		if err != nil && !(os.IsNotExist(err) && slices.Contains(beside, name)) { // a missing one may be the bug
			return err
		}
	}
	return nil
}

// CopyKernels copies a folder of kernels, over files of the same names that an earlier copy left.
func CopyKernels(from, to string) error {
	return cannotWrite(to, fs.WalkDir(os.DirFS(from), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		return copyFile(filepath.Join(from, name), filepath.Join(to, name))
	}))
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
		return err
	}
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	if _, err = io.Copy(out, in); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}

// script is a shell script that runs a command of rammerc in a folder beside the script.
func script(folder string, words []string) string {
	var b strings.Builder
	v := Version()
	about := strings.TrimSpace(v.Version + " " + v.Commit)
	fmt.Fprintf(&b, "#!/bin/sh\n# Repeats a command of rammerc %s (%s/%s) with all flags that were in force, on copies of its\n"+
		"# files. RAMMERC names another binary; more flags may follow.\n", about, runtime.GOOS, runtime.GOARCH)
	for _, name := range []string{"NVCC", "CUDA_HOME", "CXX", "CXXFLAGS", "CUDA_VISIBLE_DEVICES"} {
		if value := os.Getenv(name); value != "" {
			fmt.Fprintf(&b, "# It was run with %s=%s\n", name, quoted(diag.Printable(value)))
		}
	}
	for _, name := range []string{"RAMMER_EMU_SEED", "RAMMER_EMU_MAX_BLOCKS"} {
		if value := os.Getenv(name); value != "" {
			fmt.Fprintf(&b, "export %s=%s\n", name, quoted(value))
		}
	}
	fmt.Fprintf(&b, "cd \"$(dirname \"$0\")/%s\" || exit\nexec \"${RAMMERC:-rammerc}\"", folder)
	for _, w := range words {
		b.WriteString(" " + quoted(w))
	}
	b.WriteString(" \"$@\"\n")
	return b.String()
}

// quoted is text as one word of a shell.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
