package conformance

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sort"

	"google.golang.org/protobuf/proto"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/onnx"
	"github.com/rammerc/rammerc/ir/onnx/onnxpb"
)

// test is a case that has been read from its files.
type test struct {
	Case
	data   []byte // bytes of the model
	traits traits
	sets   []string // the folders of its data sets

	inputs, outputs []port // that have values in a data set

	// What load tells the importer of a model with sequences; dims is nil for others.
	dims   map[string]int64
	shapes map[string][]int64
	fixed  map[string]*ir.Tensor
}

func read(c Case) (*test, error) {
	t := &test{Case: c}
	var err error
	if t.data, err = os.ReadFile(filepath.Join(c.Dir, "model.onnx")); err != nil {
		return nil, err
	}
	pb := &onnxpb.ModelProto{}
	if err := (proto.UnmarshalOptions{AllowPartial: true}).Unmarshal(t.data, pb); err != nil {
		return nil, err
	}
	t.traits = scan(pb)
	if t.sets, err = filepath.Glob(filepath.Join(c.Dir, "test_data_set_*")); err != nil || len(t.sets) == 0 {
		return nil, fmt.Errorf("no data sets: %v", err)
	}
	sort.Strings(t.sets)
	t.fixed = map[string]*ir.Tensor{}
	t.inputs, t.outputs = portsOf(withoutInitializers(pb.GetGraph())), portsOf(pb.GetGraph().GetOutput())
	if t.traits.lists {
		err = t.specialise(t.sets[0])
	}
	return t, err
}

// withoutInitializers are the inputs of a graph that have no initializer.
func withoutInitializers(g *onnxpb.GraphProto) []*onnxpb.ValueInfoProto {
	return slices.DeleteFunc(slices.Clone(g.GetInput()), func(v *onnxpb.ValueInfoProto) bool {
		return slices.ContainsFunc(g.GetInitializer(), func(w *onnxpb.TensorProto) bool { return w.GetName() == v.GetName() })
	})
}

// The stages that can refuse an operator, in the words of a skip's reason.
const (
	importing = "unsupported operator"
	compiling = "no compiled form"
)

// refused is the result of a model that a stage refuses: a skip, if one of the diagnostics says that the model needs
// what rammerc does not support, otherwise a failure.
func (t *test) refused(stage string, err error) Result {
	items := diag.All(err)
	if len(items) == 0 {
		return failed(t.Case, err)
	}
	if t.traits.outside != "" {
		return Result{Name: t.Name, Status: Skip, Reason: t.traits.outside}
	}
	for _, d := range items {
		reason := skipReasons[d.ID]
		if d.Severity != diag.Error || reason == "" {
			continue
		}
		if d.ID == "unsupported-op" {
			reason = stage + ": " + operator(stage, d)
		}
		return Result{Name: t.Name, Status: Skip, Reason: reason, Detail: d.Error()}
	}
	return failed(t.Case, err)
}

// operator names the operator that a diagnostic is about. For the compiler the name includes the element type, because
// an operator may be compiled for some types only.
func operator(stage string, d *diag.Diagnostic) string {
	op := d.Op
	if d.Domain != "" {
		op = d.Domain + "." + op
	}
	if stage == compiling && d.DType != "" {
		op += " of " + d.DType
	}
	return op
}

// skipReasons are the diagnostics that say that a valid model needs what rammerc does not support.
var skipReasons = map[string]string{
	"unsupported-op":       importing,
	"unsupported-dtype":    "element type of an operator",
	"unsupported-opset":    "operator set",
	"data-dependent-shape": "data-dependent shape",
	"dynamic-axis":         "data-dependent shape",
	"dynamic-structure":    "data-dependent shape",
	"not-constant":         "input that is not constant",
	"training-mode":        "training",
}

// dataSet is the inputs and outputs of one run, by name.
type dataSet struct {
	in, want map[string]*ir.Tensor
	strings  *ir.Strings
}

// readSet reads a data set for the graph of m, whose inputs and outputs are as the model declares them.
func (t *test) readSet(dir string, m *onnx.Model) (*dataSet, error) {
	in, err := readTensors(dir, "input", t.inputs)
	if err != nil {
		return nil, err
	}
	for name := range t.fixed {
		delete(in, name)
	}
	want, err := readTensors(dir, "output", t.outputs)
	known := ir.NewStrings(m.Strings)
	for _, set := range []map[string]*ir.Tensor{in, want} {
		for _, name := range slices.Sorted(maps.Keys(set)) {
			if t := set[name]; t.DType == ir.String {
				set[name] = known.Tensor(ir.Slice[string](t), t.Dims...)
			}
		}
	}
	return &dataSet{in, want, known}, err
}

// readTensors reads KIND_0.pb, KIND_1.pb and so on, which belong to ports in their order.
func readTensors(dir, kind string, ports []port) (map[string]*ir.Tensor, error) {
	out := map[string]*ir.Tensor{}
	for i, p := range ports {
		found, err := p.given(filepath.Join(dir, fmt.Sprintf("%s_%d.pb", kind, i)))
		if err != nil {
			return nil, err
		}
		maps.Copy(out, found)
	}
	return out, nil
}

func names(values []*ir.Value) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = v.Name
	}
	return out
}

// traits is what can be seen of a model without importing it.
type traits struct {
	outside string // something it uses that rammerc does not support on purpose; "" for nothing
	lists   bool   // it has sequences or optional values
	random  bool   // it draws random numbers, so the values of outputs cannot be compared
}

// leftOut are the element types that rammerc does not support on purpose, by their number in ONNX.
var leftOut = map[int32]string{
	8: "strings", 14: "complex numbers", 15: "complex numbers",
}

// randomOps are the operators that draw random numbers.
var randomOps = []string{
	"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike",
}

// typeAttrs are the attributes that name an element type.
var typeAttrs = []string{"to", "dtype", "output_dtype", "output_datatype", "precision", "stash_type",
	"softmax_precision"}

// scanner collects the traits of a model.
type scanner struct {
	found  map[string]bool
	random bool
}

func scan(m *onnxpb.ModelProto) traits {
	s := &scanner{found: map[string]bool{}}
	s.graph(m.GetGraph())
	for _, f := range m.GetFunctions() {
		s.nodes(f.GetNode())
	}
	t := traits{random: s.random, lists: s.found["sequences"] || s.found["optionals"]}
	for _, what := range []string{"training", "optionals", "sequences", "maps", "strings", "complex numbers"} {
		if s.found[what] {
			t.outside = what
			break
		}
	}
	return t
}

func (s *scanner) graph(g *onnxpb.GraphProto) {
	for _, list := range [][]*onnxpb.ValueInfoProto{g.GetInput(), g.GetOutput(), g.GetValueInfo()} {
		for _, v := range list {
			s.typ(v.GetType())
		}
	}
	for _, t := range g.GetInitializer() {
		s.dtype(t.GetDataType())
	}
	s.nodes(g.GetNode())
}

func (s *scanner) typ(t *onnxpb.TypeProto) {
	switch {
	case t.GetTensorType() != nil:
		s.dtype(t.GetTensorType().GetElemType())
	case t.GetSequenceType() != nil:
		s.found["sequences"] = true
		s.typ(t.GetSequenceType().GetElemType())
	case t.GetOptionalType() != nil:
		s.found["optionals"] = true
		s.typ(t.GetOptionalType().GetElemType())
	case t.GetMapType() != nil:
		s.found["maps"] = true
	}
}

func (s *scanner) dtype(n int32) {
	if what := leftOut[n]; what != "" {
		s.found[what] = true
	}
}

func (s *scanner) nodes(list []*onnxpb.NodeProto) {
	for _, n := range list {
		if n.GetDomain() == "ai.onnx.preview.training" || n.GetDomain() == "ai.onnx.training" {
			s.found["training"] = true
		}
		if what := leftOutOps[n.GetOpType()]; what != "" {
			s.found[what] = true
		}
		s.random = s.random || slices.Contains(randomOps, n.GetOpType())
		for _, a := range n.GetAttribute() {
			if slices.Contains(typeAttrs, a.GetName()) && a.GetType() == onnxpb.AttributeProto_INT {
				s.dtype(int32(a.GetI()))
			}
			if a.GetT() != nil {
				s.dtype(a.GetT().GetDataType())
			}
			if a.GetG() != nil {
				s.graph(a.GetG())
			}
			s.training(n, a)
		}
	}
}

// leftOutOps are operators on types that rammerc does not support on purpose. They are known by name, because a test
// may leave out the inputs that would tell.
var leftOutOps = map[string]string{
	"ConcatFromSequence": "sequences", "SequenceAt": "sequences", "SequenceConstruct": "sequences",
	"SequenceEmpty": "sequences", "SequenceErase": "sequences", "SequenceInsert": "sequences",
	"SequenceLength": "sequences", "SequenceMap": "sequences", "SplitToSequence": "sequences",
	"Optional": "optionals", "OptionalGetElement": "optionals", "OptionalHasElement": "optionals",
}

// training finds BatchNormalization in training mode, which is an attribute. The training mode of Dropout is an input,
// which the importer looks at.
func (s *scanner) training(n *onnxpb.NodeProto, a *onnxpb.AttributeProto) {
	if n.GetOpType() == "BatchNormalization" && a.GetName() == "training_mode" && a.GetI() != 0 {
		s.found["training"] = true
	}
}
