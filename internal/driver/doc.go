// Package driver is the compiler's pipeline, from a model to a library directory. Only this package and the commands
// above it see every stage.
//
//	Compile ── Plan ──── import ─▶ optimise ─▶ lower ─▶ schedule ─▶ verify ─▶ try, where plans can be timed
//	        └─ Write ─── emit ─▶ build ─▶ compare with the evaluator, where --verify asks ─▶ move the files over
//
// Errors are of four kinds, one for each exit status but 0 (ExitCode): diagnostics (package diag) for what the user
// gave, *CheckError, *toolchain.Missing, and everything else, *InternalError above all: a stage's panic, with the
// stage's name.
package driver
