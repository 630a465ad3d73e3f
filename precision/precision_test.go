package precision

import "testing"

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
