package main

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/rammerc/rammerc/schema"
)

// TestGeneratedSchema compares the committed files, of both languages, with what the description says.
func TestGeneratedSchema(t *testing.T) {
	all, err := files()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range all {
		got, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(name)))
		if err != nil {
			t.Error(err)
		} else if !bytes.Equal(got, want) {
			t.Errorf("%s is not what the description says: run go generate ./schema", name)
		}
	}
}

// Rows are encoded member by member in the order of the C++ struct, without gaps: as encoding/binary does it.
func TestRowsAreEncodedInOrder(t *testing.T) {
	for _, row := range []interface{ Append([]byte) []byte }{
		&schema.Step{}, &schema.Wait{}, &schema.Jump{}, &schema.Move{}, &schema.StepRange{}, &schema.WeightsHeader{},
	} {
		v := reflect.ValueOf(row).Elem()
		var want []byte
		for i := range v.NumField() {
			f := v.Field(i)
			switch f.Kind() {
			case reflect.Bool: // C++ has a uint8_t
				f.SetBool(true)
				want = append(want, 1)
				continue
			case reflect.Uint8:
				f.SetUint(uint64(i + 1))
			case reflect.Array:
				f.Index(0).SetUint(uint64(i + 1))
			default:
				f.SetUint(uint64(i+1) * 0x0101)
			}
			var err error
			if want, err = binary.Append(want, binary.LittleEndian, f.Interface()); err != nil {
				t.Fatal(err)
			}
		}
		got := v.Interface().(interface{ Append([]byte) []byte }).Append([]byte{9})
		if !bytes.Equal(got[1:], want) || got[0] != 9 {
			t.Errorf("%s is encoded as\n%x, want\n%x", v.Type(), got[1:], want)
		}
	}
}

// Rows that C++ writes are read at the places where encoding/binary would put them.
func TestRowsAreDecodedInOrder(t *testing.T) {
	data := make([]byte, 256)
	for i := range data {
		data[i] = byte(i + 1)
	}
	check := func(got, want any) {
		if _, err := binary.Decode(data, binary.LittleEndian, want); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, reflect.ValueOf(want).Elem().Interface()) {
			t.Errorf("read %+v, want %+v", got, want)
		}
	}
	check(schema.DecodeTraceHeader(data), &schema.TraceHeader{})
	check(schema.DecodeTraceStep(data), &schema.TraceStep{})
	check(schema.DecodeTraceLaunch(data), &schema.TraceLaunch{})
	check(schema.DecodeTraceChunk(data), &schema.TraceChunk{})
}
