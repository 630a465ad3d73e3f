// Package abi is what emitted libraries and those who call them agree on: the C interface, the names
// in it and the layout of the weights file. The C++ side of the same facts is codegen/rt/host/model.h and
// weights.h; a test of codegen compares the two.
package abi

import (
	_ "embed"
	"strings"
)

// Status codes of the C interface.
const (
	OK              = 0
	BadArgument     = 1
	WeightsMissing  = 2
	WeightsMismatch = 3
	DeviceUnfit     = 4
	OutOfMemory     = 5
	RunFailed       = 6
	NotResident     = 7
	Internal        = 8
	Stuck           = 9
	DeviceLost      = 10
	NoDevice        = 11
)

var statusNames = [...]string{
	"ok", "bad argument", "weights file missing", "weights file does not match", "device unfit",
	"out of memory", "run failed", "rProgram not resident", "internal error",
	"stuck", "device lost", "no device",
}

// StatusText describes a status code.
func StatusText(code int) string {
	if code >= 0 && code < len(statusNames) {
		return statusNames[code]
	}
	return "unknown status"
}

// Layout of the weights file, little-endian: a header of HeaderBytes, the constants, the program
// tables, and a trailer of 8 bytes with the Hash of constants and tables.
const (
	WeightsMagic   = "RMRWGHT1"
	WeightsVersion = 1
	HeaderBytes    = 256
	ConstantAlign  = 256
)

// Sizes of the program tables' entries.
const (
	StepBytes = 64
	WaitBytes = 8
	MoveBytes = 32
)

// CounterWait, in a wait's first word, says that the rest is the line of a counter.
const CounterWait = 1 << 31

// StreamUnit is the unit of places and lengths of streamed weight blocks in the tables, in bytes.
const StreamUnit = 16

// Address spaces of an rt::Ref: its top 8 bits.
const (
	ArenaSpace     = 0
	WeightsSpace   = 1
	FirstPortSpace = 2
	MaxSpaces      = 256
)

// MaxArgsBytes is the most that the Args of an rKernel take.
const MaxArgsBytes = 1024

//go:embed header.h.in
var headerTemplate string

// Header is the part of the C header that is the same for all libraries, for the given prefix.
func Header(name string) string {
	return strings.NewReplacer("@NAME@", name, "@GUARD@", strings.ToUpper(name)+"_H").Replace(headerTemplate)
}

// Identifier turns text into a C identifier: other characters become _, a leading digit gets one in
// front, and words that C++ or Go reserve get one behind.
func Identifier(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9' && b.Len() > 0, r == '_' && b.Len() > 0:
			b.WriteRune(r)
		case r >= '0' && r <= '9':
			b.WriteString("m_")
			b.WriteRune(r)
		case b.Len() > 0:
			b.WriteByte('_')
		}
	}
	s := b.String()
	if s == "" {
		return "model"
	}
	if reserved[s] {
		return s + "_"
	}
	return s
}

var reserved = wordSet(`
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t
class compl concept const consteval constexpr constinit const_cast continue co_await co_return co_yield
decltype default delete do double dynamic_cast else enum explicit export extern false float for friend
goto if inline int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private
protected public register reinterpret_cast requires return short signed sizeof static static_assert
static_cast struct switch template this thread_local throw true try typedef typeid typename union
unsigned using virtual void volatile wchar_t while xor xor_eq main std rt rk
chan defer fallthrough func go import interface map package range select type var
False None True as assert async await def del elif except finally from global in is lambda nonlocal
pass raise with yield`)

func wordSet(text string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(text) {
		set[w] = true
	}
	return set
}
