package golden

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/rammerc/rammerc/codegen/backend"
	"github.com/rammerc/rammerc/codegen/rt"
	"github.com/rammerc/rammerc/rkernels"
)

// nvccVariable names nvcc: with it set, the tests run on this machine's GPU instead of the emulator.
const nvccVariable = "RAMMER_GOLDEN_NVCC"

// compiler finds a C++ compiler, "" when there is none.
func compiler() string {
	for _, name := range []string{os.Getenv("CXX"), "g++", "c++", "clang++"} {
		if path, err := exec.LookPath(name); name != "" && err == nil {
			return path
		}
	}
	return ""
}

// server is a running program of candidates.
type server struct {
	cmd *exec.Cmd
	in  *bufio.Writer
	out *bufio.Reader
	pip io.Closer
	err strings.Builder
}

// build compiles the source in dir.
func build(dir, name, text string) (program string, err error) {
	for sub, files := range map[string]fs.FS{"rt": rt.Files, "backend": backend.Files, "": rkernels.Files} {
		if err := os.CopyFS(filepath.Join(dir, "include", sub), files); err != nil && !os.IsExist(err) {
			return "", err
		}
	}
	src := filepath.Join(dir, name+".cc") // one source for either compiler
	if err := os.WriteFile(src, []byte(text), 0o644); err != nil {
		return "", err
	}
	program = filepath.Join(dir, name)
	cmd := exec.Command(compiler(), "-O1", "-pthread", "-fno-strict-aliasing")
	if nvcc := os.Getenv(nvccVariable); nvcc != "" {
		cmd = exec.Command(nvcc, "-arch=native", "-x", "cu")
	}
	cmd.Args = append(cmd.Args, "-std=c++20", "-w", "-I", filepath.Join(dir, "include"), src, "-o", program)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, firstLines(string(out), 60))
	}
	return program, nil
}

func firstLines(s string, n int) string {
	lines := strings.SplitAfterN(s, "\n", n+1)
	return strings.Join(lines[:min(n, len(lines))], "")
}

func start(program string) (*server, error) {
	s := &server{cmd: exec.Command(program)}
	s.cmd.Stderr = &s.err
	in, err := s.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s.in, s.out, s.pip = bufio.NewWriter(in), bufio.NewReader(out), in
	return s, s.cmd.Start()
}

// run carries out one rTask (-1: all) of candidate id on mem.
func (s *server) run(id, task int, mem []byte) ([]byte, error) {
	head := binary.LittleEndian.AppendUint32(nil, uint32(id))
	head = binary.LittleEndian.AppendUint32(head, uint32(task))
	head = binary.LittleEndian.AppendUint64(head, uint64(len(mem)))
	if _, err := s.in.Write(head); err != nil {
		return nil, s.died(err)
	}
	if _, err := s.in.Write(mem); err != nil {
		return nil, s.died(err)
	}
	if err := s.in.Flush(); err != nil {
		return nil, s.died(err)
	}
	ok, err := s.out.ReadByte()
	if err != nil {
		return nil, s.died(err)
	}
	res := make([]byte, len(mem))
	if _, err := io.ReadFull(s.out, res); err != nil {
		return nil, s.died(err)
	}
	if ok == 0 {
		return nil, fmt.Errorf("the launch failed: %s", s.err.String())
	}
	return res, nil
}

func (s *server) died(err error) error {
	_ = s.pip.Close()
	wait := s.cmd.Wait()
	return fmt.Errorf("the program died: %w, %v; %s", err, wait, s.err.String())
}

func (s *server) stop() {
	_ = s.pip.Close()
	_ = s.cmd.Wait()
}
