package commands

import (
	"github.com/rammerc/rammerc/internal/engine"
	"github.com/rammerc/rammerc/internal/runner"
)

// ranges is what a library says of its dims; nil if it has none with ranges, and of models.
func (s *subject) ranges() *runner.Ranges {
	if l, ok := s.engine.(*engine.Library); ok {
		return l.Ranges
	}
	return nil
}

// states are what a library keeps from run to run.
func (s *subject) states() []runner.State {
	if r := s.ranges(); r != nil {
		return r.States
	}
	return nil
}

// seek lets the states of a library that grow have grown as far as --dim says, or as far as they can and still leave room
// for a run. It returns how far that is, by symbols.
func (s *subject) seek() (map[string]int64, error) {
	at := map[string]int64{}
	if r := s.ranges(); r != nil {
		for _, x := range r.Symbols {
			if x.State {
				at[x.Name] = x.Max
			}
		}
	}
	for _, n := range at {
		return at, s.engine.(*engine.Library).SeekStates(n)
	}
	return at, nil
}
