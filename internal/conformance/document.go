package conformance

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// Document is the text of docs/CONFORMANCE.md, made of the results of the evaluator and of compiled programs.
func Document(evaluated, compiled []Result) []byte {
	var b bytes.Buffer
	b.WriteString(documentHead)
	e, c := Counts(evaluated), Counts(compiled)
	b.WriteString("| engine | tests | passed | failed | skipped |\n| --- | ---: | ---: | ---: | ---: |\n")
	fmt.Fprintf(&b, "| evaluator | %d | %d | %d | %d |\n", len(evaluated), e[Pass], e[Fail], e[Skip])
	fmt.Fprintf(&b, "| compiled program | %d | %d | %d | %d |\n", len(compiled), c[Pass], c[Fail], c[Skip])
	b.WriteString(boundText(compiled))
	b.WriteString("\n## Skipped, and why\n\n| reason | evaluator | compiled program |\n| --- | ---: | ---: |\n")
	for _, row := range reasonRows(evaluated, compiled) {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", row.reason, count(row.evaluated), count(row.compiled))
	}
	b.WriteString("\n## The skipped tests\n")
	for _, row := range reasonRows(evaluated, compiled) {
		fmt.Fprintf(&b, "\n**%s**", row.reason)
		both := slices.Equal(row.evaluated, row.compiled)
		if !both && len(row.evaluated) > 0 {
			fmt.Fprintf(&b, "\n\nEvaluator: %s\n", testList(row.evaluated))
		}
		if len(row.compiled) > 0 {
			side := "Compiled program: "
			if both {
				side = ""
			}
			fmt.Fprintf(&b, "\n\n%s%s\n", side, testList(row.compiled))
		}
	}
	return b.Bytes()
}

const documentHead = `# Conformance

Generated from internal/conformance/testdata by ` + "`go test ./internal/conformance -update`" + `; do not edit.

The ONNX project publishes a test for nearly everything its operators can do: a model, inputs and the
outputs that its reference implementation gives. These are the results with the tests of ONNX 1.22. The
evaluator runs the imported graph. The compiled program went through every stage of the compiler, with
verifiers between them, and runs on the emulator; a GPU has to give the same list.

Float outputs may be off by 1e-3 of each element's value, as ONNX's own runner allows, or by 2e-6; float16 by
2e-3 and bfloat16 by 1.6e-2. Everything else must be equal. Of models that draw random numbers only types and
shapes count. Every compiled program runs twice, and the second run counts.

The same tests run in every precision. Their results may be off by more: by bounds that follow from the unit roundoff
of the precision, from the lengths of products and from the largest elements of operands, and from nothing that comes
out (internal/conformance/bounds.go has the formulas). Tests whose programs are those of the default precision are not
run again. A normal test run takes a share of them, drawn from a seed; make conformance takes all.

    RAMMER_ONNX_TESTS=FOLDER go test ./internal/conformance
    go run ./internal/conformance/cmd/conformance -tests FOLDER -engine eval|emu|gpu

The command is one static binary: with the tests' folder it can be carried to a machine that has a GPU and
nvcc but no Go. -expected internal/conformance/testdata/expected_emu.txt names what changed there; -plan
rprogram, waves or base makes programs of another kind.

`

// boundText says which inputs the compiler had to know.
func boundText(compiled []Result) string {
	passed := 0
	for _, r := range compiled {
		if r.Status == Pass && len(r.Bound) > 0 {
			passed++
		}
	}
	return fmt.Sprintf("\nExtents of a compiled program are known, or have a bound that follows from the model. Inputs that say axes, shapes,\n"+
		"scales and the like are read in the run, which fails if they contradict a declared shape. In %d of the tests that it\n"+
		"passes, such inputs were fixed to their values at compile time: how many tensors a sequence of the results has, or\n"+
		"which shape each of them has, follows from them, and a library has one output for each tensor.\n", passed)
}

func count(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprint(len(names))
}

// testList joins the names of tests, without the prefix that all have.
func testList(names []string) string {
	short := make([]string, len(names))
	for i, n := range names {
		short[i] = "`" + strings.TrimPrefix(n, "test_") + "`"
	}
	return strings.Join(short, ", ")
}

type reasonRow struct {
	reason              string
	evaluated, compiled []string
}

// reasonRows makes one row for each reason of either engine, the most frequent one first.
func reasonRows(evaluated, compiled []Result) []reasonRow {
	var rows []reasonRow
	for _, g := range byReason(append(slices.Clone(evaluated), compiled...)) {
		row := reasonRow{reason: g.reason}
		for _, r := range evaluated {
			if r.Status == Skip && r.Reason == g.reason {
				row.evaluated = append(row.evaluated, r.Name)
			}
		}
		for _, r := range compiled {
			if r.Status == Skip && r.Reason == g.reason {
				row.compiled = append(row.compiled, r.Name)
			}
		}
		rows = append(rows, row)
	}
	return rows
}
