package rkernels

import "testing"

func TestManifestsLoad(t *testing.T) {
	all, err := Load(Files)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range all {
		if k.Type == "" || k.Family == "" || k.Doc == "" || len(k.Serves) == 0 {
			t.Errorf("%s: type, family, doc and serves must be given", k.Name)
		}
		for _, p := range k.Params {
			if p.Doc == "" || p.Kind != ParamInt && p.Kind != ParamType && p.Kind != ParamFunctor {
				t.Errorf("%s.%s: kind %q, doc %q", k.Name, p.Name, p.Kind, p.Doc)
			}
		}
	}
}
