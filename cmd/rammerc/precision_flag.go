package main

import (
	"github.com/rammerc/rammerc/precision"
)

// ruleFlag is --precision-of: a list of rules, which keep the places where the configuration file has them.
type ruleFlag struct{ rules *[]precision.Rule }

// placedFlag is a flag that keeps where the configuration file sets it, so that later messages can name the place.
type placedFlag interface {
	SetAt(value, file string, line int) error
}

func (f ruleFlag) Type() string { return "PATTERN=PRECISION" }

func (f ruleFlag) String() string {
	if f.rules == nil || len(*f.rules) == 0 {
		return ""
	}
	return precision.Choice{Rules: *f.rules}.String()
}

func (f ruleFlag) Set(value string) error { return f.SetAt(value, "", 0) }

func (f ruleFlag) SetAt(value, file string, line int) error {
	r, err := precision.ParseRule(value)
	if err != nil {
		return err
	}
	r.File, r.Line = file, line
	*f.rules = append(*f.rules, r)
	return nil
}

// Append, Replace and GetSlice make the flag a list for --print-config.
func (f ruleFlag) Append(value string) error { return f.Set(value) }

func (f ruleFlag) Replace(values []string) error {
	*f.rules = nil
	for _, v := range values {
		if err := f.Set(v); err != nil {
			return err
		}
	}
	return nil
}

func (f ruleFlag) GetSlice() []string {
	out := []string{}
	for _, r := range *f.rules {
		out = append(out, r.String())
	}
	return out
}
