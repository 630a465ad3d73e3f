package vdevice

// StepEncoder takes what the program tables say of one step's edges. Package codegen implements it; the kinds of edges
// call it from their method encode.
//
// An rProgram has a step array in global memory: a line for each vEU, with its flag, and behind them a line for each
// meeting point of every kind, by kind and number.
type StepEncoder interface {
	// AwaitFlag adds an entry to the step's waits: the flag of at's vEU must say that the step at at is complete.
	AwaitFlag(at At)
	// AwaitSum adds an entry to the step's waits: the line of the edge's meeting point must have got an addition from
	// every step that announces itself there.
	AwaitSum(e Edge)
	// Line is the line of the edge's meeting point in the step array.
	Line(e Edge) uint32
	// Set gives a field of the step's entry a value. The fields are those of the executor's Step.
	Set(field string, value uint32)
}
