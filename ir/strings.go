package ir

// Strings numbers strings: in graphs a string is its number in such a list.
type Strings struct {
	list    []string
	numbers map[string]int64
}

// NewStrings is a list that begins with the given strings.
func NewStrings(list []string) *Strings {
	s := &Strings{numbers: map[string]int64{}}
	for _, text := range list {
		s.Number(text)
	}
	return s
}

// Number is the number of a string, which is added to the list if it is not there.
func (s *Strings) Number(text string) int64 {
	n, ok := s.numbers[text]
	if !ok {
		n = int64(len(s.list))
		s.list, s.numbers[text] = append(s.list, text), n
	}
	return n
}

// Tensor is the numbers of strings, as a tensor of the given dims.
func (s *Strings) Tensor(texts []string, dims ...int64) *Tensor {
	t := NewTensor(Int64, dims...)
	for i, text := range texts {
		Slice[int64](t)[i] = s.Number(text)
	}
	return t
}

// Text is the string of a number; ok is false if there is none.
func (s *Strings) Text(n int64) (text string, ok bool) {
	if n < 0 || n >= int64(len(s.list)) {
		return "", false
	}
	return s.list[n], true
}

// List has all strings in the order of their numbers. It must not be written to.
func (s *Strings) List() []string { return s.list }
