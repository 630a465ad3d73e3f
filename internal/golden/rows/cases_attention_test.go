package rows

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/internal/golden"
	"github.com/rammerc/rammerc/precision"
)

// attention is a case of rammer.Attention. in are the inputs, args those of the operator.
func attention(name, in, args, attrs string) golden.Case {
	return golden.Case{Name: name, In: in, Body: fmt.Sprintf("%%y = rammer.Attention(%s) {%s}", args, attrs), Out: "%y"}
}

// qkv are inputs q[b…,lq,d], k[b…,lk,d] and v[b…,lk,dv]. b ends with a comma, or is empty.
func qkv(b string, lq, lk, d, dv int) string {
	return fmt.Sprintf("%%q: float32[%s%d,%d], %%k: float32[%s%d,%d], %%v: float32[%s%d,%d]", b, lq, d, b, lk, d, b, lk,
		dv)
}

// inAllPrecisions are the cases on tensor cores with three products and with one, and in arithmetic of float32.
func inAllPrecisions(cases []golden.Case) []golden.Case {
	out := golden.WithPrecisions(cases)
	for _, c := range cases {
		c.Name += ", strict"
		c.Precision = precision.Strict
		out = append(out, c)
	}
	return out
}

// halvesWithConstantMask has a mask of 16 bits that is a constant; 0x3800 is 0.5, and 0xc000 is -2.
func halvesWithConstantMask() golden.Case {
	c := attention("halves, constant mask", "%q: float16[2,3,16], %k: float16[2,2,16], %v: float16[2,2,8]", "%q, %k, %v, %m",
		"scale = 0.25")
	c.Body = "%m = const float16[3,2] {0x3800, 0xc000, 0, 0x3800, 0xc000, 0}\n" + c.Body
	return c
}

// quantizedAttention has codes of 8 bits for results, in the epilogue.
func quantizedAttention(codes string, number int) golden.Case {
	body := "%a = rammer.Attention(%pq, %pk, %pv) {scale = 0.25}\n%c = const float32[] {40}\n%m = Mul(%a, %c)\n" +
		fmt.Sprintf("%%r = Round(%%m)\n%%z = Cast(%%r) {to = %d}", number)
	in := strings.NewReplacer("%q", "%pq", "%k", "%pk", "%v", "%pv").Replace(qkv("2,3,", 18, 40, 16, 16))
	return golden.Case{Name: "quantised to " + codes, In: qkv("2,3,", 18, 40, 16, 16), Out: "%y",
		Body: golden.Fused("Attention", in, body, "%z", "%q, %k, %v")}
}

func TestQuantizedAttention(t *testing.T) {
	golden.Check(t, []golden.Case{quantizedAttention("int8", 3), quantizedAttention("uint8", 2)})
}

func TestAttention(t *testing.T) {
	cases := []golden.Case{
		attention("halves", "%q: float16[2,9,16], %k: float16[2,11,16], %v: float16[2,11,8], %m: float16[9,11]",
			"%q, %k, %v, %m", "scale = 0.25"),
		attention("bfloat16", "%q: bfloat16[2,9,16], %k: bfloat16[2,11,16], %v: bfloat16[2,11,8]", "%q, %k, %v",
			"scale = 0.25"),
		attention("halves, whole loads", "%q: float16[2,40,64], %k: float16[2,170,64], %v: float16[2,170,64]",
			"%q, %k, %v", "scale = 0.125"),
		attention("one of each", qkv("", 1, 1, 1, 1), "%q, %k, %v", "scale = 0.25"),
		attention("one head", qkv("", 20, 70, 16, 16), "%q, %k, %v", "scale = 0.25"),
		attention("heads", qkv("2,3,", 33, 40, 32, 32), "%q, %k, %v", "scale = 0.25"),
		attention("odd sizes", qkv("2,", 9, 5, 7, 13), "%q, %k, %v", "scale = 0.5"),
		attention("primes", qkv("2,", 37, 131, 47, 61), "%q, %k, %v", "scale = -0.15"),
		attention("64", qkv("2,", 40, 70, 64, 64), "%q, %k, %v", "scale = 0.125"),
		attention("several stages", qkv("1,", 100, 300, 64, 64), "%q, %k, %v", "scale = 0.125"),
		attention("80", qkv("1,", 10, 35, 80, 80), "%q, %k, %v", "scale = 0.125"),
		attention("128", qkv("1,", 70, 100, 128, 128), "%q, %k, %v", "scale = 0.09"),
		attention("200", qkv("1,", 10, 35, 200, 136), "%q, %k, %v", "scale = 0.1"),
		attention("256", qkv("1,", 33, 70, 251, 256), "%q, %k, %v", "scale = 0.06"),
		attention("mask", qkv("2,3,", 18, 40, 16, 16)+", %m: float32[2,1,1,40]", "%q, %k, %v, %m", "scale = 0.25"),
		attention("mask of heads", qkv("2,3,", 18, 150, 16, 16)+", %m: float32[3,18,150]", "%q, %k, %v, %m",
			"scale = 0.25"),
		attention("shared keys", "%q: float32[2,4,6,16], %k: float32[2,1,9,16], %v: float32[2,1,9,16]", "%q, %k, %v",
			"scale = 0.25"),
		attention("shared keys, long", "%q: float32[2,4,40,16], %k: float32[2,1,39,16], %v: float32[2,1,39,16]",
			"%q, %k, %v", "scale = 0.25"),
		attention("shared keys, mask of heads", "%q: float32[2,5,7,16], %k: float32[2,1,9,16], %v: float32[2,1,9,16]"+
			", %m: float32[5,7,9]", "%q, %k, %v, %m", "scale = 0.25"),
		{Name: "transposed heads", In: "%p: float32[2,20,3,16], %r: float32[2,24,3,16], %s: float32[2,24,3,16]",
			Out: "%y",
			Body: "%q = Transpose(%p) {perm = [0, 2, 1, 3]}\n%k = Transpose(%r) {perm = [0, 2, 1, 3]}\n%v = Transpose(%s) {perm = [0, 2, 1, 3]}\n" +
				"%y = rammer.Attention(%q, %k, %v) {scale = 0.25}"},
		{Name: "joined heads", In: qkv("2,3,", 37, 70, 16, 16), Out: "%z", Body: "%y = rammer.Attention(%q, %k, %v) " +
			"{scale = 0.25}\n%t = Transpose(%y) {perm = [0, 2, 1, 3]}\n%z = Relu(%t)"},
		attention("keys of all batch entries", "%q: float32[4,3,7,16], %k: float32[9,16], %v: float32[9,16]", "%q, %k, %v",
			"scale = 0.25"),
		{Name: "joined groups", In: "%q: float32[2,2,3,20,16], %k: float32[2,2,1,9,16], %v: float32[2,2,1,9,16]", Out: "%z",
			Body: "%y = rammer.Attention(%q, %k, %v) {scale = 0.25}\n" +
				"%t = Transpose(%y) {perm = [0, 3, 1, 2, 4]}\n%z = Relu(%t)"},
		{Name: "epilogue", In: qkv("2,", 9, 12, 16, 16) + ", %r: float32[16]", Out: "%y", Body: golden.Fused("Attention",
			"%pq: float32[2,9,16], %pk: float32[2,12,16], %pv: float32[2,12,16], %pr: float32[16]",
			"%a = rammer.Attention(%pq, %pk, %pv) {scale = 0.25}\n%z = Add(%a, %pr)", "%z", "%q, %k, %v, %r")},
	}
	for _, nan := range []int{0, 1} {
		c := attention("masked rows", qkv("", 3, 40, 16, 16)+", %m: float32[3,40]", "%q, %k, %v, %m",
			fmt.Sprintf("scale = 0.25, nan_to_zero = %d", nan))
		mask := make([]float64, 120)
		for i := range mask {
			if i < 40 || i%3 == 0 {
				mask[i] = -math.Inf(1)
			}
		}
		c.Set = map[string][]float64{"m": mask}
		cases = append(cases, c)
	}
	lowest := attention("rows masked by the lowest float32", qkv("", 3, 40, 16, 16)+", %m: float32[3,40]", "%q, %k, %v, %m",
		"scale = 0.25")
	lowest.Set = map[string][]float64{"m": slices.Repeat([]float64{-3.4028234663852886e38}, 60)}
	golden.Check(t, inAllPrecisions(golden.WithLayouts(append(cases, lowest, halvesWithConstantMask()))))
}

// halfHeads are inputs q[b…,lq,d], k[b…,lk,d] and v[b…,lk,dv] of 16 bits.
func halfHeads(t, b string, lq, lk, d, dv int) string {
	return strings.ReplaceAll(qkv(b, lq, lk, d, dv), "float32", t)
}

// Queries that fill most of a warp group's 64 rows, so that warp groups multiply: with tiles of a head for each group,
// keys that several share, rows that several share, and keys that end within a stage.
func TestAttentionByWarpGroups(t *testing.T) {
	masked := attention("hidden keys and rows", halfHeads("float16", "2,3,", 40, 70, 32, 32)+", %m: float16[40,70]",
		"%q, %k, %v, %m", "scale = 0.2, nan_to_zero = 1")
	masked.Set = map[string][]float64{"m": slices.Repeat([]float64{-math.Inf(1)}, 90)}
	golden.Check(t, []golden.Case{
		attention("windows", halfHeads("float16", "3,4,", 49, 49, 32, 32), "%q, %k, %v", "scale = 0.2"),
		attention("windows of three heads", halfHeads("bfloat16", "3,3,", 49, 49, 32, 32), "%q, %k, %v",
			"scale = 0.2"),
		attention("windows with a bias", halfHeads("float16", "3,3,", 49, 49, 32, 32)+", %m: float16[3,49,49]",
			"%q, %k, %v, %m", "scale = 0.2"),
		attention("heads of 64", halfHeads("float16", "1,4,", 133, 133, 64, 64), "%q, %k, %v", "scale = 0.125"),
		attention("many stages", halfHeads("bfloat16", "1,2,", 130, 420, 64, 64), "%q, %k, %v", "scale = 0.125"),
		attention("a ragged tile", halfHeads("float16", "5,", 70, 65, 40, 56), "%q, %k, %v", "scale = 0.15"),
		attention("causal", halfHeads("float16", "1,2,", 200, 200, 64, 64), "%q, %k, %v",
			"scale = 0.125, before = -1000, behind = 0"),
		attention("causal with heads of 128", halfHeads("float16", "1,1,", 200, 200, 128, 128), "%q, %k, %v",
			"scale = 0.09, before = -1000, behind = 0"),
		attention("a window of keys", halfHeads("bfloat16", "2,", 150, 180, 128, 120), "%q, %k, %v",
			"scale = 0.09, before = -20, behind = 31"),
		attention("mask of 128", halfHeads("float16", "1,3,", 66, 130, 128, 128)+", %m: float16[66,130]",
			"%q, %k, %v, %m", "scale = 0.09"),
		attention("heads of 256", halfHeads("float16", "1,", 100, 75, 256, 248), "%q, %k, %v", "scale = 0.06"),
		attention("a mask for heads of 256", halfHeads("bfloat16", "2,", 128, 64, 256, 256)+", %m: bfloat16[2,1,64]",
			"%q, %k, %v, %m", "scale = 0.06"),
		attention("heads that share keys", "%q: float16[2,2,4,70,64], %k: float16[2,2,1,90,64], %v: float16[2,2,1,90,64]",
			"%q, %k, %v", "scale = 0.125"),
		attention("short heads that share keys",
			"%q: float16[2,2,4,20,64], %k: float16[2,2,1,90,64], %v: float16[2,2,1,90,64]", "%q, %k, %v",
			"scale = 0.125"),
		attention("parts of the keys", halfHeads("float16", "1,", 64, 1100, 64, 64), "%q, %k, %v", "scale = 0.125"),
		attention("large scores", halfHeads("float16", "1,2,", 40, 200, 32, 32), "%q, %k, %v", "scale = 20.0"),
		attention("a negative scale", halfHeads("float16", "1,2,", 40, 100, 32, 32), "%q, %k, %v", "scale = -0.2"),
		masked,
	})
}

// So few keys that the registers of a block hold them all, for some warps none: with masks that are constants and masks
// that are not, and with rows that see nothing.
func TestAttentionInRegisters(t *testing.T) {
	var mask []string
	for i := range 49 {
		mask = append(mask, []string{"0", "-1.5", "0.75"}[i%3])
	}
	constant := attention("constant mask", qkv("2,2,", 49, 49, 32, 32), "%q, %k, %v, %m", "scale = 0.2")
	constant.Body = "%m = const float32[49] {" + strings.Join(mask, ", ") + "}\n" + constant.Body
	hidden := attention("hidden keys and rows", qkv("2,1,", 20, 90, 64, 64)+", %m: float32[20,90]", "%q, %k, %v, %m",
		"scale = 0.125")
	hidden.Set = map[string][]float64{"m": slices.Repeat([]float64{-math.Inf(1)}, 200)}
	zero := hidden
	zero.Name = "hidden rows become zero"
	zero.Body = strings.Replace(zero.Body, "scale", "nan_to_zero = 1, scale", 1)
	cases := []golden.Case{
		constant, hidden, zero,
		attention("two tiles of rows", qkv("1,2,", 17, 197, 64, 64), "%q, %k, %v", "scale = 0.125"),
		attention("all keys of a block", qkv("1,", 16, 256, 64, 64), "%q, %k, %v", "scale = -0.2"),
		attention("heads that share keys", "%q: float32[2,4,10,32], %k: float32[2,1,40,32], %v: float32[2,1,40,32]",
			"%q, %k, %v", "scale = 0.2"),
		attention("a window of keys", qkv("2,", 40, 45, 32, 32), "%q, %k, %v", "scale = 0.2, before = -20, behind = 31"),
		{Name: "joined heads", In: qkv("2,3,", 37, 60, 32, 32), Out: "%z", Body: "%y = rammer.Attention(%q, %k, %v) " +
			"{scale = 0.2}\n%t = Transpose(%y) {perm = [0, 2, 1, 3]}\n%z = Relu(%t)"},
	}
	var all []golden.Case
	for _, c := range cases {
		all = append(all, c.Stored(precision.FP16))
		c.Name += ", tf32"
		c.Precision = precision.TF32
		all = append(all, c)
	}
	golden.Check(t, append(all, attention("bfloat16", halfHeads("bfloat16", "2,", 40, 100, 64, 64), "%q, %k, %v",
		"scale = 0.125")))
}

// Few queries and many keys: rTasks have parts of the keys, and another rOperator joins them.
func TestAttentionSplit(t *testing.T) {
	decoder := "%q: float32[1,2,4,1,32], %k: float32[1,2,1,1000,32], %v: float32[1,2,1,1000,32]"
	padded := attention("hidden parts", qkv("2,", 2, 1000, 32, 32)+", %m: float32[1000]", "%q, %k, %v, %m",
		"scale = 0.2")
	padded.Set = map[string][]float64{"m": append(slices.Repeat([]float64{0}, 150),
		slices.Repeat([]float64{-math.Inf(1)}, 850)...)}
	none := padded
	none.Name = "hidden rows"
	none.Set = map[string][]float64{"m": slices.Repeat([]float64{-math.Inf(1)}, 1000)}
	zero := none
	zero.Name = "hidden rows become zero"
	zero.Body = strings.Replace(zero.Body, "scale", "nan_to_zero = 1, scale", 1)
	golden.Check(t, inAllPrecisions([]golden.Case{
		attention("one query", qkv("2,", 1, 2048, 64, 64), "%q, %k, %v", "scale = 0.125"),
		attention("wide heads", qkv("1,", 3, 1025, 128, 120), "%q, %k, %v", "scale = 0.1"),
		attention("shared keys", decoder, "%q, %k, %v", "scale = 0.2"),
		{Name: "epilogue", In: decoder + ", %r: float32[32]", Out: "%y", Body: golden.Fused("Attention",
			"%pq: float32[1,2,4,1,32], %pk: float32[1,2,1,1000,32], %pv: float32[1,2,1,1000,32], %pr: float32[32]",
			"%a = rammer.Attention(%pq, %pk, %pv) {scale = 0.2}\n%z = Add(%a, %pr)", "%z", "%q, %k, %v, %r")},
		{Name: "joined groups", In: decoder, Out: "%z", Body: "%y = rammer.Attention(%q, %k, %v) {scale = 0.2}\n" +
			"%t = Transpose(%y) {perm = [0, 3, 1, 2, 4]}\n%z = Relu(%t)"},
		padded, none, zero,
		attention("ten queries", qkv("2,", 10, 1030, 64, 64), "%q, %k, %v", "scale = 0.125"),
	}))
}

// cachedAttention is attention of `queries` new tokens in groups of heads that share keys and values, beside a cache of
// so many. factors is how many rows of the factors of a rotary embedding there are, 0 without one.
func cachedAttention(d string, heads, group, past, queries, depth, factors int, attrs string) golden.Case {
	in := fmt.Sprintf("%%q: %[1]s[2,%[2]d,%[3]d,%[4]d], %%pk: %[1]s[2,%[5]d,%[6]d,%[4]d], %%k: %[1]s[2,%[5]d,%[3]d,%[4]d], "+
		"%%pv: %[1]s[2,%[5]d,%[6]d,%[4]d], %%v: %[1]s[2,%[5]d,%[3]d,%[4]d]", d, heads*group, queries, depth,
		heads, past)
	args := "%q, %pk, %k, %pv, %v"
	var body strings.Builder
	q, k := "%q_", "%k_"
	if factors > 0 {
		in += fmt.Sprintf(", %%c: %[1]s[%[2]d,%[3]d], %%s: %[1]s[%[2]d,%[3]d]", d, factors, depth)
		args += ", %c, %s"
		fmt.Fprintf(&body, "%%zero = const int64[1] {0}\n%%half = const int64[1] {%d}\n%%whole = const int64[1] {%d}\n"+
			"%%last = const int64[1] {-1}\n", depth/2, depth)
		for _, x := range []string{"q", "k"} {
			body.WriteString(strings.ReplaceAll("%Xlow = Slice(%X_, %zero, %half, %last)\n"+
				"%Xhigh = Slice(%X_, %half, %whole, %last)\n%Xneg = Neg(%Xhigh)\n"+
				"%Xturned = Concat(%Xneg, %Xlow) {axis = -1}\n%Xstraight = Mul(%X_, %c_)\n"+
				"%Xacross = Mul(%s_, %Xturned)\n%Xe = Add(%Xstraight, %Xacross)\n", "X", x))
		}
		q, k = "%qe", "%ke"
	}
	for _, x := range [][3]string{{"k", "%pk_", k}, {"v", "%pv_", "%v_"}} {
		fmt.Fprintf(&body, "%%%[1]sall = Concat(%[2]s, %[3]s) {axis = 2}\n", x[0], x[1], x[2])
	}
	if group > 1 {
		fmt.Fprintf(&body, "%%pair = const int64[1] {2}\n%%kwide = Unsqueeze(%%kall, %%pair)\n"+
			"%%vwide = Unsqueeze(%%vall, %%pair)\n%%shape = const int64[5] {2, %d, %d, %d, %d}\n%%qwide = Reshape(%s, %%shape)\n"+
			"%%z = rammer.Attention(%%qwide, %%kwide, %%vwide) {%s}", heads, group, queries, depth, q, attrs)
	} else {
		fmt.Fprintf(&body, "%%z = rammer.Attention(%s, %%kall, %%vall) {%s}", q, attrs)
	}
	var inner []string
	for _, x := range strings.Split(in, ", %") {
		name, typ, _ := strings.Cut(strings.TrimPrefix(x, "%"), ":")
		inner = append(inner, "%"+name+"_:"+typ)
	}
	return golden.Case{Name: fmt.Sprintf("%s, %d heads of %d in groups of %d, %d and %d keys, %d factors", d,
		heads*group, depth,
		group, past, queries, factors), In: in, Out: "%y",
		Body: golden.Fused("CachedAttention", strings.Join(inner, ", "), body.String(), "%z", args)}
}

// New keys and values lie apart from those before them, and are embedded with the queries.
func TestCachedAttention(t *testing.T) {
	golden.Check(t, []golden.Case{
		cachedAttention("float32", 2, 1, 30, 1, 32, 0, "scale = 0.2"),
		cachedAttention("float32", 2, 4, 75, 1, 64, 1, "scale = 0.125"),
		cachedAttention("float32", 1, 4, 1, 1, 32, 1, "scale = 0.2"),
		cachedAttention("float32", 2, 2, 37, 3, 32, 3, "scale = 0.2, behind = 37"),
		cachedAttention("float32", 1, 4, 1023, 1, 64, 1, "scale = 0.125"),
		cachedAttention("float16", 2, 4, 75, 2, 64, 2, "scale = 0.125"),
		cachedAttention("bfloat16", 1, 2, 300, 1, 128, 1, "scale = 0.1"),
	})
}

// Few queries: attention_few, with one to four rows in a tile, heads of all sizes, keys that do not fill the turns, and
// caches in another type than the queries.
func TestAttentionFew(t *testing.T) {
	cache := func(name, q, kv string, depth int) golden.Case {
		wide := func(n, d string) string {
			if d == "float32" {
				return fmt.Sprintf("%%%sr = Cast(%%p%s) {to = 16}\n%%%sw = Cast(%%%sr) {to = 1}\n", n, n, n, n)
			}
			return fmt.Sprintf("%%%sw = Cast(%%p%s) {to = 1}\n", n, n)
		}
		in := fmt.Sprintf("%%q: %s[1,2,4,1,%d], %%k: %s[1,2,1,75,%d], %%v: %s[1,2,1,75,%d]", q, depth, kv, depth,
			kv, depth)
		return golden.Case{Name: name, In: in, Out: "%y", Body: golden.Fused("Attention", strings.ReplaceAll(in, "%", "%p"),
			wide("q", q)+wide("k", kv)+wide("v", kv)+"%z = rammer.Attention(%qw, %kw, %vw) {scale = 0.2}", "%z",
			"%q, %k, %v")}
	}
	golden.Check(t, golden.WithLayouts([]golden.Case{
		attention("one key", qkv("", 1, 1, 4, 4), "%q, %k, %v", "scale = 0.25"),
		attention("two rows", qkv("3,", 2, 37, 32, 28), "%q, %k, %v", "scale = 0.25"),
		attention("three rows of 128", qkv("1,", 3, 70, 128, 128), "%q, %k, %v", "scale = 0.1"),
		attention("256", qkv("2,", 1, 41, 256, 252), "%q, %k, %v", "scale = 0.06"),
		attention("eight rows of 256", "%q: float32[1,8,1,256], %k: float32[1,1,35,256], %v: float32[1,1,35,256]",
			"%q, %k, %v",
			"scale = 0.06"),
		attention("twelve heads", "%q: float32[1,12,1,16], %k: float32[1,1,300,16], %v: float32[1,1,300,16], "+
			"%m: float32[12,1,300]", "%q, %k, %v, %m", "scale = 0.2"),
		attention("halves", "%q: float16[2,1,64], %k: float16[2,170,64], %v: float16[2,170,64]", "%q, %k, %v",
			"scale = 0.125"),
		attention("halves of 256", "%q: bfloat16[2,5,256], %k: bfloat16[2,50,256], %v: bfloat16[2,50,256]",
			"%q, %k, %v",
			"scale = 0.06"),
		cache("wide cache", "bfloat16", "float32", 64),
		cache("narrow cache", "float32", "bfloat16", 128),
		attention("odd sizes", qkv("2,", 3, 35, 7, 13), "%q, %k, %v", "scale = 0.5"),
	}))
}

// One token whose heads share many keys: tensor cores multiply, and attention_few does not.
func TestAttentionOfSharedKeys(t *testing.T) {
	golden.Check(t, []golden.Case{
		attention("four heads", "%q: float16[2,2,4,1,64], %k: float16[2,2,1,150,64], %v: float16[2,2,1,150,64]",
			"%q, %k, %v", "scale = 0.125"),
		attention("two tokens", "%q: bfloat16[3,1,2,2,32], %k: bfloat16[3,1,1,131,32], %v: bfloat16[3,1,1,131,32]",
			"%q, %k, %v", "scale = 0.2, before = -1000, behind = 129"),
	})
}

// Queries that attend to a band of keys: rTasks leave out keys that none of their queries attends to.
func TestAttentionBands(t *testing.T) {
	var cases []golden.Case
	for _, c := range []struct {
		name           string
		lq, lk         int
		before, behind int
	}{
		{"causal", 70, 70, -1000, 0}, {"causal with past keys", 33, 150, -1000, 117}, {"one query", 1, 40, -1000, 20},
		{"sliding window", 200, 200, -16, 0}, {"both sides", 90, 100, -20, 31}, {"shifted", 20, 300, 130, 140},
		{"queries without keys", 20, 30, 15, 40}, {"no keys", 5, 30, 50, 90}, {"many past keys", 1, 1500, -1000, 1400},
	} {
		attrs := fmt.Sprintf("scale = 0.2, before = %d, behind = %d", c.before, c.behind)
		heads := qkv("2,3,", c.lq, c.lk, 32, 32)
		cases = append(cases, attention(c.name, heads, "%q, %k, %v", attrs),
			attention(c.name+", masked", fmt.Sprintf("%s, %%m: float32[%d,%d]", heads, c.lq, c.lk), "%q, %k, %v, %m",
				"nan_to_zero = 1, "+attrs))
	}
	golden.Check(t, inAllPrecisions(cases))
}
