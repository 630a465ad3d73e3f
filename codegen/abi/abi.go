// Package abi is what emitted libraries and those who call them agree on: the C interface, the names in it, and the
// hash of the weights file. The numbers of the interface are package schema's.
package abi

import (
	_ "embed"
	"strings"

	"github.com/rammerc/rammerc/schema"
)

// Version is that of the C interface, which packages of CMake and pkg-config have: the first number changes when a program
// has to be changed to be compiled with another library, the second when functions or statuses are added.
const Version = "1.0"

var statusNames = [...]string{
	schema.StatusOk: "ok", schema.StatusBadArgument: "bad argument",
	schema.StatusWeightsMissing:  "weights file missing",
	schema.StatusWeightsMismatch: "weights file does not match", schema.StatusDeviceUnfit: "device unfit",
	schema.StatusOutOfMemory: "out of memory", schema.StatusRunFailed: "run failed",
	schema.StatusNotResident: "rProgram not resident", schema.StatusInternal: "internal error",
	schema.StatusStuck: "stuck", schema.StatusDeviceLost: "device lost", schema.StatusNoDevice: "no device",
}

// StatusText describes a status code.
func StatusText(code int) string {
	if code >= 0 && code < len(statusNames) {
		return statusNames[code]
	}
	return "unknown status"
}

//go:embed header.h.in
var headerTemplate string

// Header is the part of the C header that is the same for all libraries, for the given prefix.
func Header(name string) string {
	return strings.NewReplacer("@NAME@", name, "@GUARD@", strings.ToUpper(name)+"_H").Replace(headerTemplate)
}

//go:embed general.h.in
var generalTemplate string

// GeneralHeader is what stands behind Header for libraries of general programs, whose inputs have dims with ranges.
func GeneralHeader(name string) string { return strings.ReplaceAll(generalTemplate, "@NAME@", name) }

//go:embed states.h.in
var statesTemplate string

// StatesHeader is what stands behind GeneralHeader for libraries that keep states.
func StatesHeader(name string) string { return strings.ReplaceAll(statesTemplate, "@NAME@", name) }

//go:embed generate.h.in
var generateTemplate string

// GenerateHeader is what stands behind GeneralHeader for libraries of which one run produces whole answers.
func GenerateHeader(name string) string { return strings.ReplaceAll(generateTemplate, "@NAME@", name) }

// Identifier turns text into an identifier of C, C++, Go and Python: runs of other characters than ASCII letters and
// digits become one _, none is at the ends, and what begins with a digit or is a word that one of these languages
// reserves, or the name of a header, module or package that users of the library need, gets m_ in front. What ends like
// a file that the go command leaves out, as x_windows does, gets _m behind. C++ reserves names with two underscores in a
// row, so there are none.
func Identifier(text string) string {
	var b strings.Builder
	gap := false
	for _, r := range text {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			if gap && b.Len() > 0 {
				b.WriteByte('_')
			}
			b.WriteRune(r)
			gap = false
		} else {
			gap = true
		}
	}
	s := b.String()
	if s == "" {
		return "model"
	}
	if s[0] >= '0' && s[0] <= '9' || taken(s) {
		s = "m_" + s
	}
	if endsForGo(s) {
		s += "_m"
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
