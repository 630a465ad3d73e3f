package conformance

import (
	"bufio"
	_ "embed"
	"encoding/binary"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

//go:embed program/serve.cc
var serveText string

// patience is how long one model may run before its program is ended.
const patience = 90 * time.Second

// server is the running program of a shard. It is started with the first request, and again after a failure.
type server struct {
	dir string
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
	err strings.Builder
}

func (s *server) start() error {
	s.err.Reset()
	s.cmd = exec.Command(filepath.Join(s.dir, program), s.dir)
	s.cmd.Stderr = &s.err
	var err error
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	s.out = bufio.NewReader(out)
	return s.cmd.Start()
}

func (s *server) stop() {
	if s.cmd == nil {
		return
	}
	_ = s.in.Close()
	_ = s.cmd.Wait()
	s.cmd = nil
}

// request runs model i. in is the bytes of its inputs, one after the other; the result is those of its outputs.
func (s *server) request(i int, in []byte) ([]byte, error) {
	if s.cmd == nil {
		if err := s.start(); err != nil {
			return nil, err
		}
	}
	watch := time.AfterFunc(patience, func() { _ = s.cmd.Process.Kill() })
	ok, data, err := s.exchange(i, in)
	inTime := watch.Stop()
	switch {
	case err != nil:
		s.cmd.Process.Kill()
		_ = s.in.Close()
		ended := s.cmd.Wait()
		s.cmd = nil
		if !inTime {
			return nil, fmt.Errorf("not done after %v", patience)
		}
		return nil, fmt.Errorf("the program died: %v, %v; %s", err, ended, strings.TrimSpace(s.err.String()))
	case !ok:
		s.stop() // what a failed launch leaves in memory must not reach the next model
		return nil, fmt.Errorf("run: %s", data)
	}
	return data, nil
}

func (s *server) exchange(i int, in []byte) (ok bool, data []byte, err error) {
	head := binary.LittleEndian.AppendUint64(nil, uint64(i))
	if _, err := s.in.Write(append(head, in...)); err != nil {
		return false, nil, err
	}
	var reply struct{ Status, Bytes uint64 }
	if err := binary.Read(s.out, binary.LittleEndian, &reply); err != nil {
		return false, nil, err
	}
	data = make([]byte, reply.Bytes)
	_, err = io.ReadFull(s.out, data)
	return reply.Status == 0, data, err
}
