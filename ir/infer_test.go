package ir

import (
	"fmt"
	"strings"
	"testing"
)

// inferCases has one node in each line: the operator, its inputs (a type; a type with elements for a constant; or _ for
// an absent one), its attributes, an arrow, and the expected outputs. An output is a type, followed by = and its known
// elements if there are any. Instead of outputs there may be an error: !, its ID, and a part of its message.
const inferCases = `
Relu float32[batch,3] -> float32[batch,3]
Relu bool[2] -> !bad-type float32
Gelu float32[2] {approximate="cubic"} -> !bad-attribute "cubic"
Relu float32[2] {alpha=1.0} -> !bad-attribute no attribute
IsNaN float16[2,s] -> bool[2,s]
Add float32[2,1,s] float32[3,1] -> float32[2,3,s]
Add float32[a] float32[b] -> float32[broadcast(a,b)]
Add float32[a] float32[7] -> float32[7]
Add float32[2] float32[3] -> !bad-shape broadcast
Add float32[2] int64[2] -> !bad-type float32
Add float32[2] -> !missing-input needs this one
Add float32[2] float32[2] float32[2] -> !bad-arity only 2
Add float32[0,3] float32[1,1] -> float32[0,3]
Mod float32[2] float32[2] -> !bad-attribute fmod
Mod int64[3]{-7,7,6} int64[]{4} -> int64[3]=[1,3,2]
Mod int64[3]{-7,7,6} int64[]{4} {fmod=1} -> int64[3]=[-3,3,2]
Div int64[3]{-7,7,6} int64[3]{2,-2,0} -> int64[3]=[-3,-3,unk__0]
Mul int32[2]{65536,3} int32[2]{65536,3} -> int32[2]=[unk__0,9]
Equal int64[2]{3,4} int64[2]{3,5} -> bool[2]=[1,0]
Less float32[2] float32[1] -> bool[2]
BitShift uint8[2] uint8[2] -> !bad-attribute direction
Max float32[2,1] float32[3] float32[] -> float32[2,3]
Pow float32[2] int64[2] -> float32[2]
PRelu float32[2,3] float32[3] -> float32[2,3]
PRelu float32[3] float32[2,3] -> !bad-shape broadcast
Where bool[2,1] float32[3] float32[] -> float32[2,3]
Where bool[2]{true,false} int64[2]{1,2} int64[]{9} -> int64[2]=[1,9]
Clip float32[5] _ float32[] -> float32[5]
Clip float32[5] float32[5] -> !bad-shape scalar
Cast float32[s] {to=7} -> int64[s]
Cast float32[s] {to=8} -> !bad-attribute not supported
Cast float32[s] -> !bad-attribute absent
CastLike float32[s] float16[] -> float16[s]

MatMul float32[b,1,2,3] float32[5,3,4] -> float32[b,5,2,4]
MatMul float32[3] float32[3,4] -> float32[4]
MatMul float32[2,3] float32[3] -> float32[2]
MatMul float32[3] float32[3] -> float32[]
MatMul float32[2,3] float32[4,5] -> !bad-shape rows
MatMul float32[] float32[3] -> !bad-rank at least 1
Gemm float32[3,b] float32[4,3] float32[4] {transA=1,transB=1} -> float32[b,4]
Gemm float32[2,3] float32[3,4] float32[5] -> !bad-shape broadcast
Gemm float32[2,3] float32[4,4] -> !bad-shape 3 columns
Gemm float32[2,3,1] float32[3,4] -> !bad-rank wanted 2
Einsum float32[b,2,3] float32[b,3,4] {equation="bij, bjk -> bik"} -> float32[b,2,4]
Einsum float32[5,2,3] {equation="...ij->...ji"} -> float32[5,3,2]
Einsum float32[3,3] {equation="ii"} -> float32[]
Einsum float32[7,2] float32[7,3] {equation="ba,bC"} -> float32[3,2]
Einsum float32[2,3] {equation="ij->ik"} -> !bad-attribute no input
Einsum float32[2,3] float32[4,5] {equation="ij,jk"} -> !bad-shape label
rammer.Attention float32[2,4,5,8] float32[2,1,7,8] float32[2,4,7,6] float32[5,7] -> float32[2,4,5,6]
rammer.Attention float32[5,8] float32[7,8] float32[6,6] -> !bad-shape 6 rows
rammer.Attention float32[5,8] float32[7,8] float32[7,6] float32[7,5] -> !bad-shape broadcast

Conv float32[b,3,8,9] float32[4,3,3,3] float32[4] {pads=[1,1,1,1],strides=[2,2]} -> float32[b,4,4,5]
Conv float32[1,4,10] float32[6,2,3] {group=2,dilations=[2]} -> float32[1,6,6]
Conv float32[1,1,h,7] float32[1,1,3,3] {auto_pad="SAME_UPPER",strides=[2,2]} -> float32[1,1,(h+1)/(2),4]
Conv float32[1,1,h,7] float32[1,1,3,3] {auto_pad="VALID",strides=[2,2]} -> float32[1,1,(h-3)/(2)+1,3]
Conv float32[1,3,8,8] float32[4,2,3,3] -> !bad-shape input channels
Conv float32[1,3,8,8] float32[4,3,3,3] {kernel_shape=[3,5]} -> !bad-attribute kernel
Conv float32[1,3,8,8] float32[4,3,3,3] {strides=[0,1]} -> !bad-attribute outside 1
Conv float32[1,3,8,8] float32[4,3,3,3] {pads=[1,1]} -> !bad-attribute wanted 4
Conv float32[1,3,2,8] float32[4,3,3,3] -> !bad-shape smaller than the window
Conv float32[1,3,8,8] float32[4,3,3,3] {auto_pad="SAME"} -> !bad-attribute "SAME"
Conv float32[3,8] float32[4,3] -> !bad-rank at least 3
Conv float32[1,4,8] float32[3,2,3] {group=2} -> !bad-attribute groups
Conv float32[1,4,8] float32[4,4,3] float32[3] -> !bad-shape wanted [4]
ConvTranspose float32[1,4,5] float32[4,3,3] {strides=[2],group=2} -> float32[1,6,11]
ConvTranspose float32[1,4,5] float32[4,3,3] {strides=[2],pads=[1,1],output_padding=[1]} -> float32[1,3,10]
ConvTranspose float32[1,4,s] float32[4,3,3] {strides=[2],auto_pad="SAME_LOWER"} -> float32[1,3,2*s]
ConvTranspose float32[1,4,5] float32[4,3,3] {strides=[2],output_shape=[12]} -> float32[1,3,12]
ConvTranspose float32[1,3,5] float32[4,3,3] -> !bad-shape input channels
MaxPool float32[1,2,32,32] {kernel_shape=[5,5],strides=[3,3],dilations=[2,1]} -> float32[1,2,8,10] int64[1,2,8,10]
MaxPool float32[1,1,4] {kernel_shape=[3],strides=[2],ceil_mode=1} -> float32[1,1,2]
MaxPool float32[1,1,2] {kernel_shape=[1],strides=[2],ceil_mode=1} -> float32[1,1,1]
MaxPool float32[1,1,4] -> !bad-attribute kernel_shape
AveragePool float32[1,2,7] {kernel_shape=[2],auto_pad="SAME_LOWER",strides=[2]} -> float32[1,2,4]
GlobalAveragePool float32[b,c,7,s] -> float32[b,c,1,1]
BatchNormalization float32[b,3,s] float32[3] float32[3] float32[3] float32[3] -> float32[b,3,s]
BatchNormalization float32[b,3,s] float32[3] float32[4] float32[3] float32[3] -> !bad-shape wanted [3]
LayerNormalization float32[b,3,4] float32[3,4] {axis=1} -> float32[b,3,4] float32[b,1,1] float32[b,1,1]
LayerNormalization float32[b,3,4] float32[3] -> !bad-shape broadcast
LayerNormalization float32[b,3,4] float32[4] {axis=3} -> !bad-attribute outside rank 3
InstanceNormalization float32[1,3,8] float32[3] float32[3] -> float32[1,3,8]
LRN float32[1,3,8,8] {size=0} -> !bad-attribute size
Softmax float32[b,5] {axis=-3} -> !bad-attribute outside rank 2
LogSoftmax float32[b,5] -> float32[b,5]

ReduceSum float32[b,3,4] int64[1]{-1} -> float32[b,3,1]
ReduceMean float32[b,3,4] int64[2]{0,2} {keepdims=0} -> float32[3]
ReduceMax float32[b,3] -> float32[1,1]
ReduceMin float32[b,3] {noop_with_empty_axes=1} -> float32[b,3]
ReduceL2 float32[b,3] int64[1] {keepdims=0} -> float32[unk__1]
ReduceProd int64[3]{2,3,4} {keepdims=0} -> int64[]=[24]
ReduceSum float32[b,3] int64[2]{1,-1} -> !bad-shape twice
ReduceSum float32[b,3] int64[1]{2} -> !bad-shape outside
ArgMax float32[b,3] {axis=1,keepdims=0} -> int64[b]
ArgMin float32[b,3] {axis=2} -> !bad-attribute outside

Concat float32[a,2] float32[b,2] float32[3,2] {axis=0} -> float32[a+b+3,2]
Concat float32[2,3] float32[2,4] {axis=0} -> !bad-shape extent of axis 1
Concat float32[2,3] float32[2] {axis=0} -> !bad-rank wanted 2
Concat int64[1]{3} int64[1] {axis=0} -> int64[2]=[3,unk__0]
Split float32[7,2] {num_outputs=3} -> float32[3,2] float32[3,2] float32[1,2]
Split float32[4*s,2] -> float32[2*s,2] float32[2*s,2]
Split int64[3]{5,6,7} int64[2]{1,2} -> int64[1]=[5] int64[2]=[6,7]
Split float32[7] int64[1]{6} -> !bad-shape add up to 6
Split float32[7] {num_outputs=2} -> !bad-attribute 1 outputs
Slice float32[10,s] int64[1]{2} int64[1]{-1} -> float32[7,s]
Slice float32[10,s] int64[1]{1} int64[1]{9223372036854775807} int64[1]{1} -> float32[10,s-1]
Slice float32[10,s] int64[1]{0} int64[1]{512} int64[1]{-1} -> float32[10,min(512,s)]
Slice float32[10] int64[1]{-1} int64[1]{-9223372036854775808} int64[1]{0} int64[1]{-3} -> float32[4]
Slice float32[s] int64[1]{-1} int64[1]{-9223372036854775808} int64[1]{0} int64[1]{-1} -> float32[s]
Slice float32[10] int64[1]{5} int64[1]{2} -> float32[0]
Slice float32[10] int64[1] int64[1]{2} -> float32[unk__1]
Slice int64[4]{1,2,3,4} int64[1]{3} int64[1]{-10} int64[1]{0} int64[1]{-2} -> int64[2]=[4,2]
Slice int64[3,2]{1,2,3,4,5,6} int64[1]{-1} int64[1]{-10} int64[1]{0} int64[1]{-1} -> int64[3,2]=[5,6,3,4,1,2]
Slice int64[3,2]{1,2,3,4,5,6} int64[2]{1,1} int64[2]{9,9} int64[2]{0,-1} -> int64[2,1]=[4,6]
Slice int64[3,2]{1,2,3,4,5,6} int64[1]{5} int64[1]{9} int64[1]{0} -> int64[0,2]=[]
Slice int64[0,2] int64[1]{5} int64[1]{-9} int64[1]{0} int64[1]{-1} -> int64[0,2]=[]
Slice float32[10] int64[1]{5} int64[1]{2} int64[1]{0} int64[1]{0} -> !bad-shape step is 0
Slice float32[10] int64[1]{5} int64[2]{2,3} -> !bad-shape values for 2 axes
Slice float32[10] int64[1]{5} int64[1]{2} int64[1]{1} -> !bad-shape outside
Reshape float32[b,3,4] int64[2]{0,-1} -> float32[b,12]
Reshape float32[b,s,12] int64[4]{0,0,4,3} -> float32[b,s,4,3]
Reshape float32[b,s,12] int64[3]{-1,4,3} -> float32[b*s,4,3]
Reshape float32[b,s] int64[1]{-1} -> float32[b*s]
Reshape float32[0,3] int64[2]{3,0} {allowzero=1} -> float32[3,0]
Reshape float32[2,3] int64[2]{-1,-1} -> !bad-shape more than one
Reshape float32[2,3] int64[1]{5} -> !bad-shape has 6 elements
Reshape float32[2,3] int64[2]{4,-1} -> !bad-shape does not divide
Reshape float32[2,3] int64[2]{-2,3} -> !bad-shape -2
Reshape float32[2,3] int64[3] -> float32[unk__3,unk__4,unk__5]
Reshape float32[2,3] float32[2] -> !bad-type int64
Flatten float32[b,3,4] -> float32[b,12]
Flatten float32[b,3,4] {axis=-1} -> float32[3*b,4]
Flatten float32[b,3,4] {axis=4} -> !bad-attribute outside
Squeeze float32[1,b,1] int64[1]{-1} -> float32[1,b]
Squeeze float32[1,2,1] -> float32[2]
Squeeze float32[1,b] -> float32?
Squeeze float32[1,2,1] int64[1]{1} -> !bad-shape wanted 1
Unsqueeze float32[b,2] int64[2]{0,-1} -> float32[1,b,2,1]
Unsqueeze float32[b,2] int64[2]{0,0} -> !bad-shape twice
Transpose float32[a,b,3] -> float32[3,b,a]
Transpose float32[a,b,3] {perm=[1,2,0]} -> float32[b,3,a]
Transpose int64[2,3]{1,2,3,4,5,6} -> int64[3,2]=[1,4,2,5,3,6]
Transpose int64[1,2,2]{1,2,3,4} {perm=[2,0,1]} -> int64[2,1,2]=[1,3,2,4]
Transpose float32[a,b,3] {perm=[1,1,0]} -> !bad-attribute permutation
Expand float32[3,1] int64[3]{2,1,6} -> float32[2,3,6]
Expand int64[1]{7} int64[1]{2} -> int64[2]=[7,7]
Expand float32[3] int64[1]{2} -> !bad-shape broadcast
Identity int64[1]{7} -> int64[1]=[7]
Dropout float32[b] -> float32[b] bool[b]
Shape float32[b,3,s] -> int64[3]=[b,3,s]
Shape float32[b,3,s] {start=-2,end=10} -> int64[2]=[3,s]
Shape float32? -> int64?
Size float32[b,3,4] -> int64[]=[12*b]
Constant {value=int64[2]{1,2}} -> int64[2]=[1,2]
Constant {value_floats=[0.5]} -> float32[1]
Constant {value_int=3} -> int64[]=[3]
Constant -> !bad-attribute 0 attributes
ConstantOfShape int64[2]{2,3} -> float32[2,3]
ConstantOfShape int64[1]{2} {value=int64[1]{5}} -> int64[2]=[5,5]
ConstantOfShape int64[1]{4611686018427387904} -> !bad-shape too large
ConstantOfShape int64[3]{1048576,1048576,1048576} -> !bad-shape too many elements
ConstantOfShape int64[1]{-1} -> !bad-shape negative
Range int64[]{1} int64[]{8} int64[]{3} -> int64[3]=[1,4,7]
Range int64[]{1} int64[]{8} int64[]{-3} -> int64[0]=[]
Range float32[]{0} float32[]{1} float32[]{0.25} -> float32[4]
Range int64[] int64[] int64[] -> int64[unk__0]
Range int64[]{1} int64[]{8} int64[]{0} -> !bad-shape step is 0

Gather float32[5,b] int64[2,s] -> float32[2,s,b]
Gather float32[5,b] int64[] {axis=1} -> float32[5]
Gather int64[3]{5,6,7} int64[2]{-1,0} -> int64[2]=[7,5]
Gather float32[5] int64[1]{5} -> !bad-shape index 5
GatherElements float32[3,3] int64[2,3] -> float32[2,3]
GatherElements float32[3,3] int64[2,4] -> !bad-shape axis 1
GatherElements float32[3,3] int64[2] -> !bad-rank wanted 2
GatherND float32[2,b,4] int64[7,2] -> float32[7,4]
GatherND float32[2,3,4] int64[2,1] {batch_dims=1} -> float32[2,4]
GatherND float32[2,3] int64[7,3] -> !bad-shape tuples
ScatterElements float32[3,3] int64[2,3] float32[2,3] {reduction="add"} -> float32[3,3]
ScatterElements float32[3,3] int64[2,3] float32[2,2] -> !bad-shape wanted [2,3]
ScatterND float32[8,b] int64[4,1] float32[4,b] -> float32[8,b]
ScatterND float32[8,5] int64[4,1] float32[4,6] -> !bad-shape wanted [4,5]
Pad float32[b,3] int64[4]{0,1,2,-1} -> float32[b+2,3]
Pad float32[b,3] int64[2]{1,1} _ int64[1]{-1} {mode="reflect"} -> float32[b,5]
Pad float32[b,3] int64[3]{0,1,2} -> !bad-shape two for each
Pad float32[2,3] int64[4]{0,-2,0,-2} -> !bad-shape negative
Pad float32[0] int64[2]{1,0} {mode="edge"} -> !bad-shape no elements to repeat
Tile float32[b,3] int64[2]{2,3} -> float32[2*b,9]
Tile float32[b,3] int64[1]{2} -> !bad-shape rank 2
Resize float32[1,3,h,w] _ float32[4]{1,1,2,0.5} -> float32[1,3,2*h,(w)/(2)]
Resize float32[1,3,7,7] _ float32[4]{1,1,1.5,0.6} -> float32[1,3,10,4]
Resize float32[1,3,7,9] _ _ int64[2]{14,14} {axes=[2,3]} -> float32[1,3,14,14]
Resize float32[1,3,7,9] _ _ int64[2]{14,14} {axes=[2,3],keep_aspect_ratio_policy="not_larger"} -> float32[1,3,11,14]
Resize float32[1,3,7,7] -> !missing-input scales or sizes
Resize float32[1,3,7,7] _ float32[4]{1,1,0,2} -> !bad-shape scale
DepthToSpace float32[b,8,2,w] {blocksize=2} -> float32[b,2,4,2*w]
DepthToSpace float32[b,6,2,w] {blocksize=2} -> !bad-shape divide
SpaceToDepth float32[b,2,4,6] {blocksize=2} -> float32[b,8,2,3]
SpaceToDepth float32[b,2,4,5] {blocksize=2} -> !bad-shape divide
CumSum float32[b,2] int64[]{2} -> !bad-shape outside
Trilu float32[b,2,2] -> float32[b,2,2]
Trilu float32[2] -> !bad-rank at least 2
OneHot int64[b] int64[]{10} float32[2] -> float32[b,10]
OneHot int64[b] float32[]{10} float32[2] {axis=0} -> float32[10,b]
OneHot int64[b] int64[] float32[3] -> !bad-shape wanted [2]
TopK float32[b,9] int64[1]{3} -> float32[b,3] int64[b,3]
TopK float32[b,2] int64[1]{3} -> !bad-shape K is 3

LSTM float32[s,b,4] float32[1,20,4] float32[1,20,5] float32[1,40] -> float32[s,1,b,5] float32[1,b,5] float32[1,b,5]
LSTM float32[s,b,4] float32[2,20,4] float32[2,20,5] _ _ _ _ float32[2,15] {direction="bidirectional"} -> float32[s,2,b,5] float32[2,b,5]
LSTM float32[s,b,4] float32[1,20,4] float32[1,20,5] {direction="bidirectional"} -> !bad-shape wanted [2,20,4]
LSTM float32[s,b,4] float32[1,20,4] float32[1,20,5] {hidden_size=6} -> !bad-attribute hidden_size
GRU float32[b,s,4] float32[1,15,4] float32[1,15,5] {layout=1} -> float32[b,s,1,5] float32[b,1,5]
GRU float32[b,s,4] float32[1,20,4] float32[1,15,5] -> !bad-shape wanted [1,15,4]
RNN float32[s,b,4] float32[1,5,4] float32[1,5,5] {activations=["Cubic"]} -> !bad-attribute "Cubic"
RNN float32[s,b,4] float32[1,5,4] float32[1,5,5] {activations=["Relu"]} -> float32[s,1,b,5]
rammer.LSTMCell float32[b,4] float32[b,5] float32[b,5] float32[20,4] float32[20,5] float32[40] float32[15] int32[b] -> float32[b,5] float32[b,5] float32[b,5]
rammer.GRUCell float32[b,4] float32[b,5] float32[15,4] float32[15,5] -> float32[b,5] float32[b,5]
rammer.RNNCell float32[b,4] float32[b,5] float32[5,4] float32[5,6] -> !bad-shape wanted [5,5]
rammer.LSTMCell float32[b,20] float32[b,5] float32[b,5] _ float32[20,5] float32[40] -> float32[b,5] float32[b,5] float32[b,5]
rammer.GRUCell float32[b,12] float32[b,5] _ float32[15,5] -> !bad-shape wanted [b,15]

rammer.View float32[2,3] {shape=[3,2],strides=[1,3]} -> float32[3,2]
rammer.View float32[2,3] {offset=5,shape=[6],strides=[-1]} -> float32[6]
rammer.View float32[2,3] {shape=[0,9],strides=[100,100]} -> float32[0,9]
rammer.View float32[2,3] {offset=1,shape=[6],strides=[1]} -> !bad-attribute addresses 1 to 6
rammer.View float32[2,3] {shape=[2],strides=[-1]} -> !bad-attribute addresses -1 to 0
rammer.View float32[2,3] {shape=[2],strides=ints[]} -> !bad-attribute 0 strides
rammer.View float32[2,3] {shape=[3,3],strides=[9223372036854775807,9223372036854775807]} -> !bad-attribute addresses
NoSuch float32[2] -> !unsupported-op not supported
`

func TestInferNodes(t *testing.T) {
	for _, line := range strings.Split(strings.TrimSpace(inferCases), "\n") {
		if line == "" {
			continue
		}
		arrow := strings.LastIndex(line, " -> ") // an equation may hold another one
		if arrow < 0 {
			t.Fatalf("no arrow: %s", line)
		}
		left, want := line[:arrow], line[arrow+4:]
		n, text := nodeCase(left, strings.Count(want, " ")+1)
		if strings.HasPrefix(want, "!") {
			n, text = nodeCase(left, 1)
		}
		g, err := ParseText("case", []byte(text), ParseOptions{})
		if err != nil {
			t.Fatalf("%s\n%s\n%v", line, text, err)
		}
		if got := outcome(g, n); !matches(got, want) {
			t.Errorf("%s\n got %s", line, got)
		}
	}
}

// matches compares an outcome with the wanted one. Of an error only the ID and a part of the message are compared.
func matches(got, want string) bool {
	if !strings.HasPrefix(want, "!") {
		return got == want
	}
	id, part, _ := strings.Cut(want, " ")
	return strings.HasPrefix(got, id+" ") && strings.Contains(got, part)
}

// nodeCase turns the left side of a case into the text of a graph of one node.
func nodeCase(left string, outputs int) (values int, text string) {
	left, attrs, hasAttrs := strings.Cut(left, " {")
	fields := strings.Fields(left)
	var inputs, consts, uses, results []string
	for i, f := range fields[1:] {
		name := fmt.Sprintf("%%x%d", i)
		dtype, elems, isConst := strings.Cut(f, "{")
		switch {
		case f == "_":
			name = "_"
		case isConst:
			consts = append(consts, fmt.Sprintf("%s = const %s {%s", name, dtype, elems))
		default:
			inputs = append(inputs, name+": "+f)
		}
		uses = append(uses, name)
	}
	for i := range outputs {
		results = append(results, fmt.Sprintf("%%y%d: float32?", i))
	}
	if hasAttrs {
		attrs = " {" + attrs
	}
	return outputs, fmt.Sprintf("graph \"g\" (%s) {\n%s\n%s = %s(%s)%s name \"n\"\nreturn %%y0\n}",
		strings.Join(inputs, ", "), strings.Join(consts, "\n"), strings.Join(results, ", "), fields[0],
		strings.Join(uses, ", "), attrs)
}

// outcome infers g and describes the outputs of its last node, or the error.
func outcome(g *Graph, outputs int) string {
	if list := InferShapes(g); len(list.Items) > 0 {
		d := list.Items[0]
		return fmt.Sprintf("!%s %s", d.ID, d.Error())
	}
	parts := make([]string, outputs)
	for i, v := range g.Nodes[len(g.Nodes)-1].Outputs {
		parts[i] = typeText(v.DType, v.Shape)
		if v.Elems != nil {
			parts[i] += "=" + Shape(v.Elems).String()
		}
	}
	return strings.Join(parts, " ")
}
