package codegen

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/rammerc/rammerc/codegen/abi"
	"github.com/rammerc/rammerc/schema"
)

// writeWeights writes the weights file, with one constant at a time in memory, and returns its hash.
func (l *layout) writeWeights(w io.Writer) (uint64, error) {
	header := schema.WeightsHeader{
		Magic: [8]byte([]byte(schema.WeightsMagic)), Version: schema.WeightsVersion,
		HeaderBytes:  schema.WeightsHeaderBytes,
		WeightsBytes: uint64(l.weightBytes), TablesBytes: uint64(l.fileTables()),
	}
	if _, err := w.Write(header.Append(nil)); err != nil {
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
	_, err := w.Write(binary.LittleEndian.AppendUint64(nil, hash.Sum64()))
	return hash.Sum64(), err
}

func (l *layout) writePayload(w io.Writer) error {
	zeros := make([]byte, schema.ConstantAlign)
	for _, b := range l.consts {
		data := b.Data()
		if int64(len(data)) != b.Bytes() {
			panic(fmt.Sprintf("BUG: constant %s has %d bytes, want %d", b.Name, len(data), b.Bytes()))
		}
		if _, err := w.Write(data); err != nil {
			return err
		}
		pad := alignUp(b.Bytes(), schema.ConstantAlign) - b.Bytes()
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
	for _, p := range l.specials {
		if _, err := w.Write(p.packed); err != nil {
			return err
		}
	}
	return nil
}
