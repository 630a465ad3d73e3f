// Command conformance runs ONNX's backend tests on a machine that has no Go: see package conformance.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strings"

	"github.com/rammerc/rammerc/internal/conformance"
	"github.com/rammerc/rammerc/precision"
)

func main() {
	ok, err := run()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

func run() (ok bool, err error) {
	tests := flag.String("tests", os.Getenv(conformance.TestsVariable), "folder of ONNX's backend tests")
	engine := flag.String("engine", "eval", "eval, emu or gpu")
	only := flag.String("only", "", "run only tests whose name matches this regular expression")
	jsonFile := flag.String("json", "", "write all results to this file")
	expected := flag.String("expected", "", "compare with this list of expected results")
	update := flag.Bool("update", false, "write the list of -expected instead")
	var opt conformance.Options
	flag.IntVar(&opt.Shards, "shards", 0, "number of programs to build; 0: by the engine")
	flag.IntVar(&opt.Jobs, "jobs", runtime.GOMAXPROCS(0), "compilers to run at once")
	flag.StringVar(&opt.Keep, "keep", "", "keep sources and programs in this folder")
	flag.StringVar(&opt.Device, "device", "", "device to plan for; default: emu4 or h200")
	flag.StringVar(&opt.Plan, "plan", "", "kind of plan: auto, rprogram, waves, base")
	flag.Func("precision", "precision of compiled programs: "+strings.Join(precision.Names(), ", "),
		func(s string) error {
			if p, ok := precision.Parse(s); ok {
				opt.Precision = p
				return nil
			}
			return fmt.Errorf("there is no precision %q", s)
		})
	flag.StringVar(&opt.Optimize, "O", "", "optimisation flag of the compiler; default: -O1 for the emulator, -O3 for nvcc")
	flag.Parse()
	filter, err := regexp.Compile(*only)
	if err != nil {
		return false, err
	}
	cases, err := conformance.Discover(*tests, filter)
	if err != nil {
		return false, err
	}
	opt.Progress = func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
	results, err := conformance.Run(context.Background(), *engine, cases, opt)
	if err != nil {
		return false, err
	}
	if *jsonFile != "" {
		if err := writeJSON(*jsonFile, results); err != nil {
			return false, err
		}
	}
	ok = conformance.Counts(results)[conformance.Fail] == 0
	if *expected != "" && *update {
		if err := os.WriteFile(*expected, conformance.FormatExpected(results), 0o644); err != nil {
			return false, err
		}
	} else if *expected != "" {
		changes, err := conformance.CompareExpected(*expected, results)
		if err != nil {
			return false, err
		}
		for _, c := range changes {
			fmt.Println("CHANGED", c)
		}
		ok = ok && len(changes) == 0
	}
	fmt.Print(conformance.Summary(*engine, results))
	return ok, nil
}

func writeJSON(name string, results []conformance.Result) error {
	data, err := json.MarshalIndent(results, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(name, append(data, '\n'), 0o644)
}
