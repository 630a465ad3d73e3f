package golden

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"os/exec"
	"strings"
)

// server is a running program that holds the candidates of a test. It reads requests from its standard input and
// answers each on its standard output:
//
//	request: number of the candidate (4 bytes), rTask or -1 for all (4 bytes), size of the memory (8 bytes), memory
//	answer:  1 or, when the launch failed, 0 (1 byte), the memory afterwards
//
// Integers are little-endian. What it says on standard error explains a launch that failed.
type server struct {
	cmd  *exec.Cmd
	in   *bufio.Writer // buffers what goes to pipe
	pipe io.Closer
	out  *bufio.Reader
	err  strings.Builder
}

// start runs the program that build made.
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
	s.in, s.out, s.pipe = bufio.NewWriter(in), bufio.NewReader(out), in
	return s, s.cmd.Start()
}

// run carries out an rTask of candidate id, or all rTasks if task is -1, and returns what they make of mem.
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

// died is the error of a request that got no whole answer. It waits for the program to learn how it ended.
func (s *server) died(err error) error {
	_ = s.pipe.Close()
	wait := s.cmd.Wait()
	return fmt.Errorf("the program died: %w, %v; %s", err, wait, s.err.String())
}

// stop ends the program, which does so when its standard input ends.
func (s *server) stop() {
	_ = s.pipe.Close()
	_ = s.cmd.Wait()
}
