package main

import (
	"strconv"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/rammerc/rammerc/internal/npy"
)

func writeNPY(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: npy FILE VALUE…")
	}
	var data []int64
	for _, a := range args[1:] {
		n, err := strconv.ParseInt(a, 10, 64)
		ts.Check(err)
		data = append(data, n)
	}
	ts.Check(npy.WriteFile(ts.MkAbs(args[0]), &npy.Array{DType: "int64", Shape: []int64{int64(len(data))}, Data: data}))
}
