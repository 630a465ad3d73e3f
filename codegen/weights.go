package codegen

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/rammerc/rammerc/codegen/abi"
)

// writeWeights streams the weights file: one constant at a time is in memory. It returns the hash.
func (l *layout) writeWeights(w io.Writer) (uint64, error) {
	le := binary.LittleEndian
	header := make([]byte, 0, abi.HeaderBytes)
	header = append(header, abi.WeightsMagic...)
	header = le.AppendUint32(header, abi.WeightsVersion)
	header = le.AppendUint32(header, abi.HeaderBytes)
	header = le.AppendUint64(header, uint64(l.weightBytes))
	header = le.AppendUint64(header, uint64(l.tableBytes))
	header = append(header, make([]byte, abi.HeaderBytes-len(header))...)
	if _, err := w.Write(header); err != nil {
		return 0, err
	}
	hash := abi.NewHash()
	out := bufio.NewWriterSize(io.MultiWriter(w, hash), 1<<20)
	if err := l.writePayload(out); err != nil {
		return 0, err
	}
	if err := out.Flush(); err != nil {
		return 0, err
	}
	_, err := w.Write(le.AppendUint64(nil, hash.Sum64()))
	return hash.Sum64(), err
}

func (l *layout) writePayload(w io.Writer) error {
	zeros := make([]byte, abi.ConstantAlign)
	for _, b := range l.consts {
		data := b.Data()
		if int64(len(data)) != b.Bytes() {
			panic(fmt.Sprintf("BUG: constant %s has %d bytes, want %d", b.Name, len(data), b.Bytes()))
		}
		if _, err := w.Write(data); err != nil {
			return err
		}
		pad := alignUp(b.Bytes(), abi.ConstantAlign) - b.Bytes()
		if _, err := w.Write(zeros[:pad]); err != nil {
			return err
		}
	}
	for _, s := range l.segments {
		if _, err := w.Write(s.data); err != nil {
			return err
		}
	}
	for _, p := range l.parts {
		for _, s := range p.segments {
			if _, err := w.Write(s.data); err != nil {
				return err
			}
		}
	}
	return nil
}
