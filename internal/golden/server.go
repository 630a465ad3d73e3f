package golden

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// server is a running program that holds the candidates of a test. Both have a file in memory, in which rTasks run. The
// program reads requests from its standard input and answers each on its standard output:
//
//	request: number of the candidate (4 bytes), rTask or -1 for all (4 bytes), size of the memory (8 bytes)
//	answer:  1 or, when the launch failed, 0 (1 byte)
//
// Integers are little-endian. What it says on standard error explains a launch that failed.
type server struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    io.Reader
	err    strings.Builder
	file   *os.File
	memory []byte // of the file, as long as the largest request so far asked for
}

// start runs the program that build made.
func start(program string) (*server, error) {
	s := &server{cmd: exec.Command(program, program+".memory")}
	var err error
	if s.file, err = os.Create(program + ".memory"); err != nil {
		return nil, err
	}
	s.cmd.Stderr = &s.err
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if s.out, err = s.cmd.StdoutPipe(); err != nil {
		return nil, err
	}
	return s, s.cmd.Start()
}

// grow makes the file in memory as long as size, if it is shorter.
func (s *server) grow(size int) (err error) {
	if size <= len(s.memory) {
		return nil
	}
	if err := s.file.Truncate(int64(size)); err != nil {
		return err
	}
	if s.memory != nil {
		if err := syscall.Munmap(s.memory); err != nil {
			return err
		}
	}
	s.memory, err = syscall.Mmap(int(s.file.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	return err
}

// run carries out an rTask of candidate id, or all rTasks if task is -1, and returns what they make of mem.
func (s *server) run(id, task int, mem []byte) ([]byte, error) {
	if err := s.grow(len(mem)); err != nil {
		return nil, err
	}
	copy(s.memory, mem)
	head := binary.LittleEndian.AppendUint32(nil, uint32(id))
	head = binary.LittleEndian.AppendUint32(head, uint32(task))
	head = binary.LittleEndian.AppendUint64(head, uint64(len(mem)))
	if _, err := s.in.Write(head); err != nil {
		return nil, s.died(err)
	}
	var ok [1]byte
	if _, err := io.ReadFull(s.out, ok[:]); err != nil {
		return nil, s.died(err)
	}
	if ok[0] == 0 {
		return nil, fmt.Errorf("the launch failed: %s", s.err.String())
	}
	return bytes.Clone(s.memory[:len(mem)]), nil
}

// died is the error of a request that got no whole answer. It waits for the program to learn how it ended.
func (s *server) died(err error) error {
	_ = s.in.Close()
	wait := s.cmd.Wait()
	return fmt.Errorf("the program died: %w, %v; %s", err, wait, s.err.String())
}

// stop ends the program, which does so when its standard input ends.
func (s *server) stop() {
	_ = s.in.Close()
	_ = s.cmd.Wait()
	if s.memory != nil {
		_ = syscall.Munmap(s.memory)
	}
	_ = s.file.Close()
}
