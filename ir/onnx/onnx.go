// Package onnx reads ONNX models into ir graphs.
//
// The graph that Load returns has the semantics of ir.ReferenceOpset, whatever opset the model was written in: nodes of
// other opsets are rewritten (rewrite.go lists the rules). Model-local functions are inlined, Constant nodes and
// initializers become constants, and operators without effect in inference, such as Dropout, become Identity.
//
// An import goes through these steps:
//
//	decode      bytes → protobuf messages (onnx.go, guard.go)
//	inputs      declared types, with Options applied (inputs.go, bind.go)
//	nodes       in topological order: names are resolved, functions inlined, older forms rewritten (scope.go, node.go,
//	            function.go, rewrite*.go)
//	finish      types are inferred for the whole graph and compared with the declared ones (finish.go)
//
// A model is untrusted input. Everything wrong with it is reported at once, as a *diag.List with the place of each
// problem. Reading never panics, never allocates more memory than the size of the file justifies, and never follows
// external data out of the model's folder.
package onnx

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/limits"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/onnx/onnxpb"
)

// Options say how to specialise a model while it is read.
type Options struct {
	// Shapes overrides the declared shape of inputs by name; an extent of -1 keeps the declared one.
	Shapes map[string][]int64
	// Dims binds symbolic dims of the inputs by name.
	Dims map[string]int64
	// Bind makes inputs constants, by name. Elements of type int64 and float64 are converted to the input's element
	// type, if it can hold them; a single number gets the input's rank.
	Bind map[string]*ir.Tensor
	// ChannelBlock is how many channels the blocks have in which ONNX Runtime stored a model's images and weights for a
	// CPU, 8 or 16; 0 is as the weights say.
	ChannelBlock int64
	// Kernels has, for operators of the user's ("domain.name"), the rKernels that carry them out. Where the model has a
	// function for one, it is not inlined then.
	Kernels map[string]Kernel
	// RequireStatic makes every symbolic dim of an input that is left unbound an error.
	RequireStatic bool
	// Partial makes the import return, along with an error, the model as far as it could be read. Its graph lacks the
	// nodes that were refused, and its values may lack types.
	Partial bool
}

// Model is an imported model.
type Model struct {
	Graph *ir.Graph

	IRVersion       int64
	Opsets          map[string]int64 // domain → version; "" is ai.onnx
	Producer        string
	ProducerVersion string
	Domain          string
	Version         int64
	Doc             string
	Metadata        map[string]string
	Functions       []Function // model-local functions, in file order
	Dims            []string   // symbolic dims of the inputs as declared, sorted; what Options.Dims may bind

	// Strings are those that the model knows. In the graph a string is its number in this list, and any other number is
	// a string that the model does not know. Texts names the inputs and outputs that hold such numbers.
	Strings []string
	Texts   []string

	Warnings []*diag.Diagnostic
}

// Function describes a model-local function; its calls are inlined in Model.Graph.
type Function struct {
	Domain, Name, Overload string
	Calls                  int // how often its body was inlined
}

const (
	// maxFile is the largest size of a protobuf message, in bytes, that protobuf allows.
	maxFile = 1<<31 - 1
	// maxNesting bounds the nesting of protobuf messages. A subgraph is three levels deeper than its node's graph.
	maxNesting = 300
)

// Load reads the model at path. Its external data is read from the folder of path. The error is a *diag.List.
func Load(path string, opts Options) (*Model, error) {
	data, err := readModel(path)
	if err != nil {
		return nil, failure(path, "cannot-read", err.Error(), "")
	}
	return Parse(path, data, filepath.Dir(path), opts)
}

// Parse imports the model in data; name names it in messages, and dir is the folder of its external
// data ("" when there is none). The error is a *diag.List.
func Parse(name string, data []byte, dir string, opts Options) (*Model, error) {
	if int64(len(data)) > maxFile {
		return nil, failure(name, "bad-file", "not an ONNX model: a protobuf message has at most 2 GiB",
			"store the weights as external data")
	}
	pb, err := decode(name, data)
	if err != nil {
		return nil, err
	}
	im := newImporter(name, pb, dir, int64(len(data)), opts)
	defer im.ext.close()
	return im.run()
}

// readModel reads a file of at most maxFile bytes. It allocates what the file's size says, and so refuses pipes and
// devices, whose size says nothing.
func readModel(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, bareError(err)
	}
	if info.IsDir() {
		return nil, errors.New("is a folder, wanted an ONNX file")
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("is not a regular file")
	}
	if err := limits.CheckMemory("the file", info.Size()); err != nil && info.Size() <= maxFile {
		return nil, err
	}
	if info.Size() > maxFile {
		return nil, fmt.Errorf("has %d bytes, more than the 2 GiB of a protobuf message", info.Size())
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, bareError(err)
	}
	defer f.Close()
	data := make([]byte, info.Size())
	n, err := io.ReadFull(f, data)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return nil, bareError(err)
	}
	return data[:n], nil
}

// bareError takes the path out of an error of package os, because the diagnostic names the file already.
func bareError(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

func failure(file, id, message, help string) error {
	return &diag.List{Items: []*diag.Diagnostic{{ID: id, File: file, Message: message, Help: help}}}
}

// decode parses the protobuf message. Data that is none is examined further, so that the message can say what it is
// instead (sniff) or where it is damaged.
func decode(name string, data []byte) (*onnxpb.ModelProto, error) {
	if !plausible(data) {
		return nil, failure(name, "bad-file", "not an ONNX model: it consists of too many empty parts", "")
	}
	pb := &onnxpb.ModelProto{}
	err := proto.UnmarshalOptions{RecursionLimit: maxNesting, AllowPartial: true}.Unmarshal(data, pb)
	if err == nil && pb.Graph != nil {
		return pb, nil
	}
	what, help := sniff(data)
	switch {
	case what != "":
	case err != nil:
		what, help = explainDamage(data), "export or download the file again"
	default:
		what = "the protobuf message has no graph"
		help = "a TensorFlow graph or a tensor has to be converted to an ONNX model first"
	}
	return nil, failure(name, "bad-file", "not an ONNX model: "+what, help)
}

// explainDamage says where data stops being a protobuf message.
func explainDamage(data []byte) string {
	rest := data
	for len(rest) > 0 {
		at := len(data) - len(rest)
		num, typ, n := protowire.ConsumeTag(rest)
		if n < 0 {
			return fmt.Sprintf("no protobuf field begins at offset %d", at)
		}
		m := protowire.ConsumeFieldValue(num, typ, rest[n:])
		if m >= 0 {
			rest = rest[n+m:]
			continue
		}
		if typ == protowire.BytesType {
			if want, k := protowire.ConsumeVarint(rest[n:]); k > 0 && want > uint64(len(rest)-n-k) {
				return fmt.Sprintf("truncated or damaged: field %d at offset %d wants %d bytes, the file has %d left",
					num, at, want, len(rest)-n-k)
			}
		}
		return fmt.Sprintf("truncated or damaged: field %d at offset %d cannot be read", num, at)
	}
	return fmt.Sprintf("its messages are damaged or nested more than %d deep", maxNesting)
}
