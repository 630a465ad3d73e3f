package commands

import (
	"github.com/rammerc/rammerc/internal/driver"
	"github.com/rammerc/rammerc/internal/engine"
	"github.com/rammerc/rammerc/internal/runner"
	"github.com/rammerc/rammerc/ir"
)

// ranges is what a library says of its dims; nil if it has none with ranges, and of models.
func (s *subject) ranges() *runner.Ranges {
	if l, ok := s.engine.(*engine.Library); ok {
		return l.Ranges
	}
	return nil
}

// generates reports whether one run of a library produces a whole answer.
func (s *subject) generates() bool {
	r := s.ranges()
	return r != nil && r.Generate != nil
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

// model is the subject of a model, which has no engine yet.
func (o *SubjectOptions) model(job *driver.Job) (*subject, error) {
	s := &subject{cleanup: func() {}}
	if o.Generate != "" {
		var err error
		if s.search, s.inputs, s.outputs, err = driver.Searching(job, o.CompileOptions); err == nil {
			s.model = s.search.Graph
		}
		return s, err
	}
	m, err := driver.LoadOpen(job, o.ModelOptions)
	if err != nil {
		return nil, err
	}
	s.inputs, s.outputs = o.Ports(m.Graph)
	s.model, s.strings = m.Graph, ir.NewStrings(m.Strings)
	engine.WithTexts(s.inputs, m.Texts, s.strings)
	engine.WithTexts(s.outputs, m.Texts, s.strings)
	return s, nil
}
