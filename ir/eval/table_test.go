package eval

import (
	"testing"

	"github.com/rammerc/rammerc/ir"
)

// TestTable checks that every operator of the table has an evaluator, and every evaluator a row in the table.
func TestTable(t *testing.T) {
	for i := range ir.Ops {
		op := &ir.Ops[i]
		if !Supports(op.Domain, op.Name) {
			t.Errorf("operator %s.%s has no evaluator", op.Domain, op.Name)
		}
	}
	for key := range evaluators {
		if ir.LookupOp(key.domain, key.op) == nil {
			t.Errorf("evaluator %s.%s belongs to no operator", key.domain, key.op)
		}
	}
}
