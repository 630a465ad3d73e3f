package eval

// evaluators is the table of operators: every row of ir.Ops has one, and the other way round.
var evaluators = map[opKey]opFunc{}
