// Package driver is the compiler's pipeline: what each command does, from flags to a result that can be
// printed or encoded. It is the only package that sees every stage.
//
// Compile is the main job: import, optimise, lower, schedule, verify, emit, build. Run and Verify carry
// a model out on an engine: the evaluator, or a built library in a child process. Each result has a
// schema field for JSON and a Text method for people.
//
// Errors are of four kinds, one for each exit status but 0 (ExitCode): diagnostics (package diag) for
// what the user gave, *CheckError, *toolchain.Missing, and everything else, *InternalError above all:
// a stage's panic, with the stage's name.
package driver

//go:generate go test -run ^TestGeneratedOps$ -update .
