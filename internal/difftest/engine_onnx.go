package difftest

import (
	"bufio"
	_ "embed"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/onnx"
)

// runImport writes the case as an ONNX model, imports it, and evaluates the imported graph.
func runImport(c *Case) Result {
	data, err := Export(c.Graph)
	if err != nil {
		return Result{Skip: err.Error()}
	}
	m, err := onnx.Parse("case.onnx", data, "", onnx.Options{})
	if err != nil {
		return Result{Err: err}
	}
	if err := ir.Verify(m.Graph); err != nil {
		return Result{Err: err}
	}
	return c.result(m.Graph)
}

//go:embed serve_models.py
var runtimeScript string

// findPython returns the path of a Python interpreter that has onnxruntime, or the reason why there is none.
func findPython() (path, reason string) {
	path = os.Getenv("RAMMER_PYTHON")
	if path == "" {
		path = "python3"
	}
	if out, err := exec.Command(path, "-c", "import numpy, onnx, onnxruntime").CombinedOutput(); err != nil {
		return "", fmt.Sprintf("no onnxruntime in %s (%v %s); RAMMER_PYTHON names another Python", path, err,
			lastLine(out))
	}
	return path, ""
}

func lastLine(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[len(lines)-1]
}

// runtimeServer is a Python process that runs models with onnxruntime (serve_models.py).
type runtimeServer struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startRuntime(python string) (*runtimeServer, error) {
	s := &runtimeServer{cmd: exec.Command(python, "-c", runtimeScript)}
	var err error
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s.out = bufio.NewReader(out)
	return s, s.cmd.Start()
}

func (s *runtimeServer) stop() {
	_ = s.in.Close()
	_ = s.cmd.Wait()
}

// runtimeTensor describes a tensor in requests and answers. It is sent as JSON, before the bytes of the elements.
type runtimeTensor struct {
	Name  string  `json:"name"`
	DType int64   `json:"dtype"`
	Dims  []int64 `json:"dims"`
}

type runtimeHeader struct {
	Tensors []runtimeTensor `json:"tensors"`
	Error   string          `json:"error,omitempty"`
}

func (s *runtimeServer) send(data []byte) error {
	if err := binary.Write(s.in, binary.LittleEndian, uint32(len(data))); err != nil {
		return err
	}
	_, err := s.in.Write(data)
	return err
}

func (s *runtimeServer) receive() ([]byte, error) {
	var n uint32
	if err := binary.Read(s.out, binary.LittleEndian, &n); err != nil {
		return nil, err
	}
	data := make([]byte, n)
	_, err := io.ReadFull(s.out, data)
	return data, err
}

// run runs a model. reason is what onnxruntime itself has to complain about; err is a failure of the process.
func (s *runtimeServer) run(model []byte, inputs map[string]*ir.Tensor, order []*ir.Value) (out map[string]*ir.Tensor,
	reason string, err error) {
	var head runtimeHeader
	parts := [][]byte{model, nil}
	for _, v := range order {
		t := inputs[v.Name]
		head.Tensors = append(head.Tensors, runtimeTensor{v.Name, t.DType.ONNX(), t.Dims})
		parts = append(parts, t.LittleEndian())
	}
	if parts[1], err = json.Marshal(head); err != nil {
		return nil, "", err
	}
	for _, p := range parts {
		if err := s.send(p); err != nil {
			return nil, "", err
		}
	}
	text, err := s.receive()
	if err != nil {
		return nil, "", err
	}
	head = runtimeHeader{}
	if err := json.Unmarshal(text, &head); err != nil || head.Error != "" {
		return nil, head.Error, err
	}
	out = map[string]*ir.Tensor{}
	for _, h := range head.Tensors {
		data, err := s.receive()
		if err != nil {
			return nil, "", err
		}
		d, _ := ir.DTypeOfONNX(h.DType)
		if out[h.Name], err = ir.TensorFromBytes(d, h.Dims, data); err != nil {
			return nil, "", err
		}
	}
	return out, "", nil
}

// runtimeLimit is how long a small graph may take.
const runtimeLimit = 10 * time.Second

// runRuntime runs the cases with onnxruntime.
func runRuntime(cases []*Case) []Result {
	res := make([]Result, len(cases))
	python, reason := findPython()
	if reason != "" {
		for i := range res {
			res[i].Skip = reason
		}
		return res
	}
	var s *runtimeServer
	for i, c := range cases {
		if res[i].Skip = foreign(c); res[i].Skip != "" {
			continue
		}
		if s == nil {
			var err error
			if s, err = startRuntime(python); err != nil {
				res[i].Err = err
				continue
			}
		}
		late := time.AfterFunc(runtimeLimit, func() { _ = s.cmd.Process.Kill() })
		res[i] = guarded(c, func(c *Case) Result { return runtimeResult(s, c) })
		if hung := !late.Stop(); hung || errors.Is(res[i].Err, io.ErrUnexpectedEOF) || errors.Is(res[i].Err, io.EOF) {
			s.stop()
			s = nil
			res[i] = Result{Skip: map[bool]string{true: "onnxruntime hangs", false: "onnxruntime crashes"}[hung]}
		}
	}
	if s != nil {
		s.stop()
	}
	return res
}

// runtimeResult runs a case with onnxruntime. Nodes whose operators it does not implement are replaced by inputs.
func runtimeResult(s *runtimeServer, c *Case) Result {
	c = c.Without(func(n *ir.Node) bool { return n.Domain != "" || disputed(n) })
	for range 12 {
		if c == nil {
			return Result{Skip: "onnxruntime computes no part of it"}
		}
		data, err := Export(c.Graph)
		if err != nil {
			return Result{Skip: err.Error()}
		}
		out, reason, err := s.run(data, c.Inputs, c.Graph.Inputs)
		if err != nil {
			return Result{Err: err}
		}
		if reason == "" {
			return judgePart(c, out)
		}
		names := namedNode.FindStringSubmatch(reason)
		if names == nil || c.WithoutNamed(names[1]) == nil {
			return Result{Skip: "onnxruntime: " + firstWords(reason)}
		}
		c = c.WithoutNamed(names[1])
	}
	return Result{Skip: "onnxruntime lacks too many operators"}
}

// namedNode finds the name of a node in an error message of onnxruntime.
var namedNode = regexp.MustCompile(`(?:node with name '|Name:'|Node:|in node \(|Node \(|In Node, \(")(n\d+)\b`)

// judgePart is the result of a case of which an engine ran a part only. It compares the outputs of that part.
func judgePart(c *Case, out map[string]*ir.Tensor) Result {
	v := Judge(c, Result{Outputs: out})
	if v.Failure != nil {
		return Result{Err: fmt.Errorf("%w\n%s", v.Failure, c.Graph)}
	}
	return Result{Skip: v.Skip}
}

// firstWords cuts a message to its beginning, so that messages that differ in details count as one reason.
func firstWords(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	s = anyNode.ReplaceAllString(s, "NODE")
	if len(s) > 160 {
		s = s[:160] + "…"
	}
	return s
}

var anyNode = regexp.MustCompile(`\bn\d+\b`)
