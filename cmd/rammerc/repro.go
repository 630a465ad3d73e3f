package main

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rammerc/rammerc/internal/driver"
)

// command is the command line with all flags in force, those of the configuration file too, for the script with which a
// dump repeats it. Words that name files which the command reads say so; what the command writes goes into a folder of
// the script.
func command(cmd *cobra.Command, args []string) []driver.Word {
	words := []driver.Word{{Text: cmd.Name()}}
	for _, a := range args {
		words = append(words, driver.Word{File: a})
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Changed || unconfigurable[f.Name] || unrepeated[f.Name] {
			return
		}
		values := []string{f.Value.String()}
		if s, ok := f.Value.(pflag.SliceValue); ok {
			values = s.GetSlice()
		}
		for _, v := range values {
			words = append(words, word(f.Name, v))
		}
	})
	return words
}

// unrepeated are flags that a script leaves to whoever runs it.
var unrepeated = map[string]bool{"dump": true, "quiet": true, "json": true, "run-under": true}

// word is a flag with a value.
func word(flag, value string) driver.Word {
	before := "--" + flag + "="
	if writing[flag] {
		return driver.Word{Text: before + filepath.Join("again", filepath.Base(value))}
	}
	read := reading[flag]
	if read == nil {
		return driver.Word{Text: before + value}
	}
	name, file, after := read(value)
	if _, err := os.Stat(file); err != nil { // a name, or a file that is not there, which the command says
		return driver.Word{Text: before + value}
	}
	return driver.Word{Text: before + name, File: file, After: after}
}

// reading are the flags whose values name files or folders to read. They say where in a value the file is.
var reading = map[string]func(value string) (before, file, after string){
	"model": wholeFile, "device": wholeFile, "plan": wholeFile, "data": wholeFile, "kernels": wholeFile,
	"input": namedFile, "expect": namedFile, "calibrate": namedFile,
	"bind": func(value string) (before, file, after string) {
		if at := strings.Index(value, "=@"); at >= 0 {
			return value[:at+2], value[at+2:], ""
		}
		return value, "", ""
	},
}

func wholeFile(value string) (before, file, after string) { return "", value, "" }

// namedFile takes NAME=FILE, NAME=FILE.npz:MEMBER or FILE.
func namedFile(value string) (before, file, after string) {
	at := strings.LastIndex(value, "=") + 1
	before, file = value[:at], value[at:]
	if at := strings.LastIndex(file, ".npz:"); at >= 0 {
		at += len(".npz")
		file, after = file[:at], file[at:]
	}
	return before, file, after
}
