package vdevice

import (
	"fmt"
	"strings"
)

// TextForm names the text form of plans, as `rammerc schema` lists it.
var TextForm = fmt.Sprintf("rammerc/rprog/v%d", textVersion)

// LineForm is a kind of line of the text form: a regular expression for the line without its comment, and what it says.
type LineForm struct{ Pattern, Doc string }

// The parts of lines.
const (
	formName  = `"([^"\\]|\\.)*"`
	formSteps = `( [0-9]+:[0-9]+)+`
	formMeets = `( [0-9]+)+`
)

// LineForms lists the kinds of lines that the text form has.
func LineForms() []LineForm {
	var carries []string
	for c := Plain; c <= TaggedAndPlain; c++ {
		carries = append(carries, c.String())
	}
	list := []LineForm{
		{fmt.Sprintf("rprogram %d", textVersion), "the version of the form; the first line"},
		{"graph N ops # buffers #", "the rOperator graph that the plan is of"},
		{"device N", "the device that it is for"},
		{"arena #", "the bytes of the arena"},
		{"buffer # at # N", "a buffer, and its offset in the arena"},
		{"words #", "how many tagged words there are"},
		{"tagged # at # N", "a buffer, and the first of its tagged words"},
		{"segment (" + strings.Join(segmentKinds[:], "|") + ") veus # waves #( serial)?( counters #)?( cluster #)?",
			"a part of the program, to which the lines behind it belong"},
		{"op # pick # rtasks # N N N", "an rOperator, its candidate, how many rTasks it has, its name, kind and rKernel"},
		{"carry # (" + strings.Join(carries, "|") + ")", "a buffer, and how its data travel"},
		{"slot # buffer # from # to # at # gate #", "words of a vEU's shared memory for elements of a tagged buffer"},
		{"alone( #)+", "launches whose blocks are alone on a multiprocessor"},
		{"node # stream #( after( #)+)?", "a launch of a parallel graph, and those of other streams that it comes after"},
		{"veu #", "the steps behind this line are this vEU's"},
	}
	for i := range list {
		p := strings.ReplaceAll(list[i].Pattern, "#", "[0-9]+")
		list[i].Pattern = "^" + strings.ReplaceAll(p, "N", formName) + "$"
	}
	return append(list, LineForm{"^" + stepForm() + "$", "a step: its rTask, its wave, its edges and its mode"})
}

// stepForm is the line of a step, with the words of each kind of edge and of each mode.
func stepForm() string {
	var b strings.Builder
	b.WriteString(`[0-9]+\.[0-9]+ wave [0-9]+`)
	for k := range edgeRows {
		r := &edgeRows[k]
		ends, number := formSteps, ""
		if r.meets {
			ends, number = formMeets, " [0-9]+"
		}
		if r.in != "" {
			fmt.Fprintf(&b, "( %s%s)?", r.in, ends)
		}
		if r.out != "" {
			fmt.Fprintf(&b, "( %s%s)*", r.out, number)
		}
	}
	var modes []string
	for m := range modeRows {
		modes = append(modes, modeRows[m].name)
	}
	fmt.Fprintf(&b, "( (%s)( joined)?)?", strings.Join(modes, "|"))
	return b.String()
}
