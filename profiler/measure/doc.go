// Package measure times rTasks on the device at hand (Rammer §3.3, "compile-time profiling").
//
// The program is data: all candidates of a model that are to be measured are compiled once, together with a machine
// (machine/) that runs them by tables. Which rTask runs where, how many beside it, in what order and after what, is a
// command to the machine, so that thousands of measurements need no further compilation.
//
//	Plan      the distinct candidates of a graph that the database lacks, the most promising first
//	build     parts of the candidates, each a program; several compilers run at a time
//	measure   a child process for each part; a candidate that hangs or faults costs one line and a new process
//	judge     what the candidates of an rOperator computed is compared
//	append    the results go to the database (profiler/db) as they come
//
// Costs answers with what was measured, and with the model where nothing was.
package measure
