package hostile

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"fmt"
	"io"
	"strings"
)

// reluModel takes x, float32[2,3].
func reluModel() File {
	return File{Name: "m.onnx", Data: newGraph().input("x", 2, 3).node("Relu", []string{"x"}, []string{"y"}).output("y").model()}
}

// npy is a .npy file with a header that says anything, and so many zeros behind it.
func npy(descr, order, shape string, zeros int) []byte {
	head := fmt.Sprintf("{'descr': '%s', 'fortran_order': %s, 'shape': %s, }", descr, order, shape)
	head += strings.Repeat(" ", (64-(10+len(head)+1)%64)%64) + "\n"
	out := append([]byte("\x93NUMPY\x01\x00"), byte(len(head)), byte(len(head)>>8))
	return append(append(out, head...), make([]byte, zeros)...)
}

// zeros is an endless supply of them.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// npz is an archive with one member, which begins with data and goes on with zeros up to size.
func npz(data []byte, size int64) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestSpeed) })
	w, err := z.Create("x.npy")
	if err == nil {
		_, err = w.Write(data)
	}
	if rest := size - int64(len(data)); err == nil && rest > 0 {
		_, err = io.CopyN(w, zeros{}, rest)
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return b.Bytes()
}

// tensorFiles are values of inputs.
func tensorFiles(*Sources) []Case {
	var out []Case
	add := func(name, file string, f File) {
		f.Name = file
		out = append(out,
			Case{"tensors", name + "/run", []File{reluModel(), f},
				[]string{"run", "m.onnx", "-q", "--engine", "eval", "--input", "x=" + file}},
			Case{"tensors", name + "/verify", []File{reluModel(), f},
				[]string{"verify", "m.onnx", "-q", "--engine", "eval", "--input", "x=" + file, "--expect", "y=" + file}})
	}
	good := npy("<f4", "False", "(2, 3)", 24)
	for _, size := range []int64{3 << 30, 1 << 40} {
		add(fmt.Sprint("sparse-", size), "x.npy", File{Data: good, Size: size})
		add(fmt.Sprint("sparse-npz-", size), "x.npz", File{Data: npz(good, 0), Size: size})
		add(fmt.Sprint("sparse-pb-", size), "x.pb", File{Size: size})
		elements := (size - int64(len(npy("<f4", "False", "(1099511627776, 1)", 0)))) / 4
		for _, order := range []string{"True", "False"} {
			claimed := npy("<f4", order, fmt.Sprintf("(%d, 1)", elements), 0)
			add(fmt.Sprint("claimed-", order, size), "x.npy", File{Data: claimed, Size: int64(len(claimed)) + 4*elements})
			samples := npy("<f4", order, fmt.Sprintf("(%d, 3)", elements/3), 0)
			add(fmt.Sprint("samples-", order, size), "x.npy", File{Data: samples, Size: int64(len(samples)) + elements/3*12})
		}
	}
	bomb := npy("<f4", "False", "(67108864, 1)", 0)
	add("bomb", "x.npz", File{Data: npz(bomb, int64(len(bomb))+1<<28)})
	rows := npy("<f4", "False", "(22369620, 3)", 0)
	add("bomb-of-samples", "x.npz", File{Data: npz(rows, int64(len(rows))+22369620*12)})
	for i, shape := range []string{"()", "(2,)", "(-1, 3)", "(2, 3, 4)", "(9223372036854775807, 2)", "(4294967296, 4294967296)",
		"(0, 9223372036854775807)", "(2 3)", "(" + strings.Repeat("1, ", 10000) + ")"} {
		add(numbered("shape", i), "x.npy", File{Data: npy("<f4", "False", shape, 24)})
	}
	for i, descr := range []string{"<f8", ">f4", "|O", "|V8", "<U4", "<f16", "", "<i4"} {
		add(numbered("type", i), "x.npy", File{Data: npy(descr, "False", "(2, 3)", 24)})
	}
	for i, data := range damaged(good, 40, 5) {
		add(numbered("damaged", i), "x.npy", File{Data: data})
	}
	for i, data := range damaged(npz(good, 0), 40, 6) {
		add(numbered("damaged-npz", i), "x.npz", File{Data: data})
	}
	return out
}
