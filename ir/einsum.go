package ir

import (
	"fmt"
	"slices"
	"strings"
)

// Einsum is a parsed equation of the operator Einsum. The letters of the equation become labels, numbered from 0. Each
// axis that an ellipsis stands for has a label of its own. In operands of different ranks these axes are aligned at the
// last one, because they broadcast.
//
// For example "bij,bjk->bik" has Inputs {{0, 1, 2}, {0, 2, 3}}, Output {0, 1, 3} and Labels 4; label 2 is summed over.
type Einsum struct {
	Inputs [][]int // the label of each axis of each input; a repeated label takes a diagonal
	Output []int   // the label of each axis of the output, all different
	Labels int     // how many labels there are; those that Output lacks are summed over
}

// ParseEinsum parses an equation for inputs of the given ranks, e.g. "bij,bjk->bik" or "...ij->...ji". Without an arrow
// the output has the axes of the ellipsis and then the letters that occur once, in alphabetical order. The error says
// which operand does not fit.
func ParseEinsum(equation string, ranks []int) (*Einsum, error) {
	left, right, explicit := strings.Cut(strings.ReplaceAll(equation, " ", ""), "->")
	terms := strings.Split(left, ",")
	if len(terms) != len(ranks) {
		return nil, fmt.Errorf("the equation %q has %d operands for %d inputs", equation, len(terms), len(ranks))
	}
	p := &einsumParser{letters: map[byte]int{}, count: map[byte]int{}}
	parsed := make([]einsumTerm, len(terms))
	for i, term := range terms {
		t, err := parseEinsumTerm(term)
		if err != nil {
			return nil, fmt.Errorf("the equation %q: %w", equation, err)
		}
		if err := p.declare(t, ranks[i]); err != nil {
			return nil, fmt.Errorf("the equation %q: operand %d: %w", equation, i, err)
		}
		parsed[i] = t
	}
	eq := &Einsum{}
	for i, t := range parsed {
		eq.Inputs = append(eq.Inputs, p.labels(t, ranks[i]-len(t.before)-len(t.after)))
	}
	out := p.implicitOutput()
	if explicit {
		t, err := parseEinsumTerm(right)
		if err == nil {
			err = p.checkOutput(t)
		}
		if err != nil {
			return nil, fmt.Errorf("the equation %q: output: %w", equation, err)
		}
		out = t
	}
	hidden := 0
	if out.ellipsis {
		hidden = p.ellipsis
	}
	eq.Output = p.labels(out, hidden)
	eq.Labels = p.ellipsis + len(p.letters)
	return eq, nil
}

// einsumTerm is the subscript of one operand: letters, perhaps an ellipsis, letters.
type einsumTerm struct {
	before, after string
	ellipsis      bool
}

func parseEinsumTerm(text string) (einsumTerm, error) {
	before, after, ellipsis := strings.Cut(text, "...")
	for _, r := range before + after {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') {
			return einsumTerm{}, fmt.Errorf("%q is not a label", r)
		}
	}
	return einsumTerm{before, after, ellipsis}, nil
}

// einsumParser numbers labels: first those of the ellipsis, then letters in order of appearance.
type einsumParser struct {
	ellipsis int          // most axes that an ellipsis stands for
	letters  map[byte]int // number of each letter; its label is ellipsis + this number
	count    map[byte]int // occurrences of each letter
}

// declare numbers the letters of an operand and checks that they fit its rank.
func (p *einsumParser) declare(t einsumTerm, rank int) error {
	named := len(t.before) + len(t.after)
	if named > rank || !t.ellipsis && named != rank {
		return fmt.Errorf("%d labels for rank %d", named, rank)
	}
	if t.ellipsis {
		p.ellipsis = max(p.ellipsis, rank-named)
	}
	for _, letter := range []byte(t.before + t.after) {
		if _, ok := p.letters[letter]; !ok {
			p.letters[letter] = len(p.letters)
		}
		p.count[letter]++
	}
	return nil
}

// labels lists a term's labels; hidden is how many axes its ellipsis stands for.
func (p *einsumParser) labels(t einsumTerm, hidden int) []int {
	out := []int{}
	for _, letter := range []byte(t.before) {
		out = append(out, p.ellipsis+p.letters[letter])
	}
	if t.ellipsis {
		for i := range hidden {
			out = append(out, p.ellipsis-hidden+i)
		}
	}
	for _, letter := range []byte(t.after) {
		out = append(out, p.ellipsis+p.letters[letter])
	}
	return out
}

// implicitOutput is the output of an equation without an arrow.
func (p *einsumParser) implicitOutput() einsumTerm {
	once := []byte{}
	for letter, n := range p.count {
		if n == 1 {
			once = append(once, letter)
		}
	}
	slices.Sort(once)
	return einsumTerm{after: string(once), ellipsis: p.ellipsis > 0}
}

// checkOutput reports a letter of the output that no input has, or that occurs twice.
func (p *einsumParser) checkOutput(t einsumTerm) error {
	seen := map[byte]bool{}
	for _, letter := range []byte(t.before + t.after) {
		if p.count[letter] == 0 {
			return fmt.Errorf("no input has the label %c", letter)
		}
		if seen[letter] {
			return fmt.Errorf("label %c occurs twice", letter)
		}
		seen[letter] = true
	}
	return nil
}
