// Package commands is what each command of rammerc but compile does, from its options to a result that can be printed
// or encoded; compile is package driver's. A command takes a driver.Job, which shows its progress. Its result has a
// schema field for JSON and a Text method for people.
//
// Commands that run something (run, verify, bench, profile) work on a subject: a model, which is compiled on the way
// unless the engine is the evaluator, or a library directory.
package commands

//go:generate go test -run ^TestGeneratedOps$ -update .
