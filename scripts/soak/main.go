// Command soak compiles, runs and verifies models side by side, kills the processes at random, and checks after each
// that nothing half written lies about.
//
//	go run ./scripts/soak -rammerc PROGRAM -for 1h [-target sm_90] [-workers 2] [-seed 1] MODEL.onnx...
//
// What is killed is rammerc itself, with a signal that it can catch or with one that it cannot, or one of the processes
// that it has started: a compiler, or the one in which a library runs. Several workers share the libraries, so that
// compilations meet in one directory.
//
// The time is cut into rounds. At the end of a round all workers stop, every model is compiled and run once more, and
// then no working folder, no temporary file and no process may be left. The command fails at the first violation and
// keeps the folder in which it worked. It ends with the status 3 where the machine, which others may use at the same
// time, has no memory or device for what must succeed. Every 20 s, and at the end, it prints what has happened so far,
// as JSON.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// soak is one run of this command.
type soak struct {
	rammerc string
	target  string
	dir     string // all files lie below it
	mark    string // the value of markVariable in all processes that this run starts
	round   time.Duration
	models  []*model

	mu     sync.Mutex
	counts counts
}

// counts is what has happened so far.
type counts struct {
	Seconds  int            `json:"seconds"`
	Rounds   int            `json:"rounds"`
	Runs     map[string]int `json:"runs"`     // by command and what became of it
	Killed   map[string]int `json:"killed"`   // by who was killed, and by which signal
	Statuses map[string]int `json:"statuses"` // exit statuses of commands of which something was killed
	Missing  map[string]int `json:"missing"`  // what commands that nobody disturbed failed for, as the machine had none
	Checked  int            `json:"checked"`  // libraries and results that were checked
	Swept    int            `json:"swept"`    // folders and files of killed processes that later ones removed
}

// model is a model, and the library and results that all workers make of it.
type model struct {
	file    string
	name    string
	library string // a library directory
	results string // a folder with the results of runs

	mu        sync.Mutex
	compiling int // compilations that are going on
	compiled  int // compilations that have begun
}

// progressEvery is the time between two lines of progress.
const progressEvery = 20 * time.Second

func main() {
	s := &soak{counts: counts{Runs: map[string]int{}, Killed: map[string]int{}, Statuses: map[string]int{},
		Missing: map[string]int{}}}
	flag.StringVar(&s.rammerc, "rammerc", "rammerc", "the program to test")
	flag.StringVar(&s.target, "target", "emu", "what to compile for")
	flag.StringVar(&s.dir, "dir", "", "folder to work in (default: a new one, which is removed if all is well)")
	flag.DurationVar(&s.round, "round", time.Minute, "length of a round")
	length := flag.Duration("for", time.Minute, "how long to go on")
	workers := flag.Int("workers", 2, "commands that run at the same time")
	seed := flag.Uint64("seed", 1, "of the random decisions")
	flag.Parse()
	if err := s.prepare(flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(2)
	}
	err := s.run(*length, *workers, *seed)
	s.report()
	var starved *starvedError
	switch {
	case errors.As(err, &starved):
		fmt.Fprintf(os.Stderr, "soak: NOT JUDGED: %v\nsoak: all files are in %s\n", err, s.dir)
		os.Exit(3)
	case err != nil:
		fmt.Fprintf(os.Stderr, "soak: FAILED: %v\nsoak: all files are in %s\n", err, s.dir)
		os.Exit(1)
	}
	fmt.Println("soak: no file half written, no folder, file or process left")
	if flag.Lookup("dir").Value.String() == "" || strings.HasPrefix(filepath.Base(s.dir), ownFolder) {
		os.RemoveAll(s.dir)
	}
}

const ownFolder = "soak-"

// prepare makes the folders.
func (s *soak) prepare(files []string) error {
	if len(files) == 0 {
		return errors.New("name a model at least")
	}
	var err error
	if s.rammerc, err = filepath.Abs(s.rammerc); err != nil {
		return err
	}
	if s.dir == "" {
		if s.dir, err = os.MkdirTemp("", ownFolder); err != nil {
			return err
		}
	}
	if s.dir, err = filepath.Abs(s.dir); err != nil {
		return err
	}
	s.mark = s.dir
	for _, dir := range []string{s.temporary(), s.cache()} {
		if err := os.MkdirAll(dir, 0o777); err != nil {
			return err
		}
	}
	for _, file := range files {
		if file, err = filepath.Abs(file); err != nil {
			return err
		}
		name := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
		m := &model{file: file, name: name, library: filepath.Join(s.dir, "libraries", name),
			results: filepath.Join(s.dir, "results", name)}
		if err := os.MkdirAll(m.results, 0o777); err != nil {
			return err
		}
		s.models = append(s.models, m)
	}
	return nil
}

// temporary is the folder for temporary files of all processes.
func (s *soak) temporary() string { return filepath.Join(s.dir, "tmp") }

// cache is the user's cache folder, for all processes.
func (s *soak) cache() string { return filepath.Join(s.dir, "cache") }

// run works in rounds until the time is over, and returns the first violation.
func (s *soak) run(length time.Duration, workers int, seed uint64) error {
	start := time.Now()
	stop := make(chan bool)
	defer close(stop)
	go func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(progressEvery):
				s.setSeconds(start)
				s.report()
			}
		}
	}()
	for time.Since(start) < length {
		until := time.Now().Add(min(s.round, length-time.Since(start)))
		if err := s.work(workers, seed, until); err != nil {
			return err
		}
		if err := s.settle(); err != nil {
			return err
		}
		s.count(func(c *counts) { c.Rounds++ })
		seed++
	}
	s.setSeconds(start)
	return nil
}

// work lets the workers go on until the given time.
func (s *soak) work(workers int, seed uint64, until time.Time) error {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	var all sync.WaitGroup
	for i := range workers {
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		all.Go(func() {
			for time.Now().Before(until) && ctx.Err() == nil {
				if err := s.step(rng, i); err != nil {
					cancel(err)
				}
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

func (s *soak) count(change func(*counts)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.counts)
}

func (s *soak) setSeconds(start time.Time) {
	s.count(func(c *counts) { c.Seconds = int(time.Since(start).Seconds()) })
}

func (s *soak) report() {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, err := json.Marshal(s.counts)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	fmt.Println(string(text))
}
