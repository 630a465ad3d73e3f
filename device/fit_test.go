package device

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// The built-in H200 says what was measured, and plans are made with the product.
func TestFit(t *testing.T) {
	s, err := Find("h200")
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Fitted) == 0 || s.Cost != s.Fitted.Planned(s.Measured) || s.Cost == s.Measured {
		t.Errorf("costs %+v of %+v by %v", s.Cost, s.Measured, s.Fitted)
	}
	var all Cost
	for _, f := range costFields {
		*f.at(&all) = 1
	}
	v := reflect.ValueOf(all)
	for i := range v.NumField() {
		if f := v.Type().Field(i); f.Type.Kind() == reflect.Float64 && v.Field(i).Float() != 1 {
			t.Errorf("no fit can be given for %s", f.Tag.Get("yaml"))
		}
	}
	if got := (Fit{"hop_ns": 0.5, "step_ns": 1.0 / 3}).Planned(Cost{Hop: 829, Step: 1, Node: 7}); got != (Cost{Hop: 415,
		Step: 0.333, Node: 7}) {
		t.Errorf("got %+v", got)
	}
	data, err := deviceFiles.ReadFile("devices/emu4.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for fit, want := range map[string]string{
		"hopp_ns: 1": "fit.hopp_ns: there is no such cost", "hop_ns: 0": "fit.hop_ns is 0, want a positive number",
		"hop_ns: .inf": "fit.hop_ns is +Inf", "hop_ns: much": "cannot unmarshal",
	} {
		_, err := Parse("d.yaml", []byte(fmt.Sprintf("fit: {%s}\n%s", fit, data)))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "d.yaml:1") {
			t.Errorf("%s: %v", fit, err)
		}
	}
}

// Rates of tensor cores are optional, and checked where they are.
func TestTensorRates(t *testing.T) {
	data, err := deviceFiles.ReadFile("devices/emu4.yaml")
	if err != nil {
		t.Fatal(err)
	}
	data = regexp.MustCompile(`(?m)^tensor_flops_per_ns:.*\n`).ReplaceAll(data, nil)
	for rates, want := range map[string]string{
		"float16: 8": "", "int5: 1": "tensor_flops_per_ns.int5: there is no such operand",
		"tf32: 0":    "tensor_flops_per_ns.tf32 is 0, want a positive number",
		"int8: .inf": "tensor_flops_per_ns.int8 is +Inf",
	} {
		s, err := Parse("d.yaml", []byte(fmt.Sprintf("tensor_flops_per_ns: {%s}\n%s", rates, data)))
		switch {
		case want == "" && (err != nil || s.Tensor["float16"] != 8):
			t.Errorf("%s: %+v, %v", rates, s, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "d.yaml:1")):
			t.Errorf("%s: %v", rates, err)
		}
	}
}

// An rKernel without a factor of its own counts with the median of the others; without any the factor is 1.
func TestSlowerInPrograms(t *testing.T) {
	s := &Spec{}
	if f := s.SlowerInPrograms("gemm"); f != 1 {
		t.Errorf("without factors it is %v", f)
	}
	s.Slower = map[string]float64{"a": 1.1, "b": 3, "c": 1.5}
	if f := s.SlowerInPrograms("b"); f != 3 {
		t.Errorf("the factor of b is %v", f)
	}
	if f := s.SlowerInPrograms("gemm"); f != 1.5 {
		t.Errorf("the median is %v", f)
	}
}

// What is chosen by one set of factors is predicted with another, if the device has one.
func TestMeasuredInPrograms(t *testing.T) {
	s := &Spec{Slower: map[string]float64{"a": 2}}
	if f := s.MeasuredInPrograms("a"); f != 2 {
		t.Errorf("without factors for programs it is %v", f)
	}
	s.Programs.Measured = map[string]float64{"a": 0.9, "b": 0.5, "c": 0.7}
	if a, x := s.MeasuredInPrograms("a"), s.MeasuredInPrograms("x"); a != 0.9 || x != 0.7 {
		t.Errorf("%v, and %v for an rKernel without a factor", a, x)
	}
}
