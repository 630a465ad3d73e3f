package hostile

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/rammerc/rammerc/ir/onnx/onnxpb"
)

// mutatedModels are models of which one or two fields have another value.
func mutatedModels(s *Sources) []Case {
	var out []Case
	for _, name := range slices.Sorted(maps.Keys(s.Models)) {
		for i := range 40 {
			var m onnxpb.ModelProto
			if err := proto.Unmarshal(s.Models[name], &m); err != nil {
				panic("BUG: " + err.Error())
			}
			r := draws(uint64(i))
			for range 1 + i%2 {
				mutate(r, m.ProtoReflect())
			}
			data, err := proto.MarshalOptions{Deterministic: true, AllowPartial: true}.Marshal(&m)
			if err != nil {
				panic("BUG: " + err.Error())
			}
			command := [][]string{{"check", "m.onnx", "--target", "emu"}, {"run", "m.onnx", "-q", "--engine", "eval",
				"--random", "1"}}[i%2]
			out = append(out, Case{"mutated models", numbered(name, i), []File{{Name: "m.onnx", Data: data}}, command})
		}
	}
	return out
}

// mutate changes one field somewhere in m.
func mutate(r *rand.Rand, m protoreflect.Message) {
	for {
		var fields []protoreflect.FieldDescriptor
		m.Range(func(f protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
			fields = append(fields, f)
			return true
		})
		if len(fields) == 0 {
			return
		}
		slices.SortFunc(fields, func(a, b protoreflect.FieldDescriptor) int { return int(a.Number()) - int(b.Number()) })
		f := fields[r.IntN(len(fields))]
		switch {
		case f.IsList():
			list := m.Mutable(f).List()
			i := r.IntN(list.Len())
			if f.Kind() == protoreflect.MessageKind {
				if r.IntN(8) == 0 { // leave the end out
					list.Truncate(i)
					return
				}
				m = list.Get(i).Message()
				continue
			}
			list.Set(i, other(r, f, list.Get(i)))
		case f.Kind() == protoreflect.MessageKind:
			m = m.Mutable(f).Message()
			continue
		case r.IntN(6) == 0:
			m.Clear(f)
		default:
			m.Set(f, other(r, f, m.Get(f)))
		}
		return
	}
}

// other is another value of a scalar field.
func other(r *rand.Rand, f protoreflect.FieldDescriptor, old protoreflect.Value) protoreflect.Value {
	numbers := []int64{0, -1, 1, 2, 3, 7, 16, 255, 1 << 16, math.MaxInt32, math.MinInt32, 1 << 40, math.MaxInt64, math.MinInt64}
	number := numbers[r.IntN(len(numbers))]
	words := []string{"", "Relu", "MatMul", "Loop", "If", "Concat", "Gather", "Cast", "LSTM", "ai.onnx.ml", "\x00", "../x"}
	switch f.Kind() {
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(number)
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(int32(number))
	case protoreflect.Uint64Kind:
		return protoreflect.ValueOfUint64(uint64(number))
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(protoreflect.EnumNumber(number & 0xff))
	case protoreflect.FloatKind:
		return protoreflect.ValueOfFloat32([]float32{0, -1, 1e30, float32(math.NaN()), float32(math.Inf(1))}[r.IntN(5)])
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64([]float64{0, -1, 1e300, math.NaN(), math.Inf(-1)}[r.IntN(5)])
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(words[r.IntN(len(words))])
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes(damaged(append(old.Bytes(), 0), 4, r.Uint64())[r.IntN(4)])
	}
	return old
}

// damagedModels are files that are no whole model any more.
func damagedModels(s *Sources) []Case {
	var out []Case
	for k, name := range slices.Sorted(maps.Keys(s.Models)) {
		for i, data := range damaged(s.Models[name], 40, uint64(k)) {
			out = append(out, Case{"damaged models", numbered(name, i), []File{{Name: "m.onnx", Data: data}},
				[]string{"check", "m.onnx", "--target", "emu"}})
		}
	}
	for i := range 40 {
		r := draws(uint64(i))
		noise := make([]byte, r.IntN(4096))
		for j := range noise {
			noise[j] = byte(r.Uint32())
		}
		out = append(out, Case{"damaged models", numbered("noise", i), []File{{Name: "m.onnx", Data: noise}},
			[]string{"inspect", "m.onnx"}})
	}
	return out
}
