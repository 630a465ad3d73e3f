package precision

import (
	"testing"

	"github.com/rammerc/rammerc/ir"
)

func TestNames(t *testing.T) {
	for _, name := range Names() {
		if p, ok := Parse(name); !ok || p.String() != name {
			t.Errorf("%s is read as %v, %t", name, p, ok)
		}
	}
	if _, ok := Parse("fp31"); ok {
		t.Error("fp31 is a precision")
	}
	var unset Precision
	if Names()[0] != unset.String() {
		t.Errorf("the default is called %s, the first name is %s", unset, Names()[0])
	}
}

// TestStorage: values keep float32 unless the precision is one of 16 bits, and one product is enough for these.
func TestStorage(t *testing.T) {
	want := map[Precision]ir.DType{FP16: ir.Float16, BF16: ir.BFloat16}
	for _, name := range Names() {
		p, _ := Parse(name)
		if p.Storage() != want[p] {
			t.Errorf("%s stores %v", p, p.Storage())
		}
		if p.Storage() != ir.Invalid && p.Products() != 1 {
			t.Errorf("%s makes %d products of float32", p, p.Products())
		}
	}
}
