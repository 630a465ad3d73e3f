package golden

import (
	"fmt"
	"math"
	"sort"
	"strings"

	"github.com/rammerc/rammerc/codegen"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/rkernels/functor"
	"github.com/rammerc/rammerc/roperator"
)

// source collects the C++ of a test's program: every distinct functor and instance once, and for each candidate a
// function that runs all of its rTasks or one of them.
type source struct {
	includes  map[string]bool
	functors  map[string]string // key → struct name
	instances map[string]string // key → alias
	decls     strings.Builder
	runs      strings.Builder
	count     int
}

func newSource() *source {
	return &source{includes: map[string]bool{}, functors: map[string]string{}, instances: map[string]string{}}
}

// add emits the function of a candidate and returns the number by which requests name it. offsets says where each
// buffer lies in the memory of a request; t holds the candidate's moves and is nil if it has none.
func (s *source) add(c *roperator.Candidate, offsets []int64, t *moveTable) int {
	alias := s.instance(c.Inst)
	id := s.count
	s.count++
	fmt.Fprintf(&s.runs, "static bool run%d(char* mem, int task) {\n", id)
	if t != nil {
		s.runStaged(c, alias, offsets, t)
		return id
	}
	fmt.Fprintf(&s.runs, "  static const %s::Args args = {%s};\n", alias, fields(c.Args, offsets))
	blocks := "nullptr"
	if c.Stream != nil {
		blocks = "blocks"
		fmt.Fprintf(&s.runs, "  static const rt::harness::Block blocks[] = {")
		for t := range c.Tasks {
			ref, n := c.Stream(t)
			fmt.Fprintf(&s.runs, "{%s, %d}, ", argument(ref, offsets), n/roperator.StreamAlign)
		}
		s.runs.WriteString("};\n")
	}
	fmt.Fprintf(&s.runs, "  return run<%s>(args, %d, mem, task, %s);\n}\n", alias, c.Tasks, blocks)
	return id
}

func (s *source) instance(in *rkernels.Instance) string {
	if alias, ok := s.instances[in.Key()]; ok {
		return alias
	}
	s.includes[in.Kernel.Source] = true
	alias := fmt.Sprintf("K%d", len(s.instances))
	s.instances[in.Key()] = alias
	typ := codegen.InstanceType(in, s.functor)
	fmt.Fprintf(&s.decls, "using %s = %s;  // %s\n", alias, typ, in.Name())
	fmt.Fprintf(&s.decls, "static_assert(%s::kThreads == %d && %s::kShared == %d, \"the manifest of %s\");\n",
		alias, in.Threads(), alias, in.Shared(), in.Kernel.Name)
	if step := in.StreamStep(); step > 0 {
		fmt.Fprintf(&s.decls, "static_assert(%s::kStreamStep == %d, \"the manifest of %s\");\n", alias, step,
			in.Kernel.Name)
	}
	fmt.Fprintf(&s.decls, "static_assert(sizeof(%s::Args) <= 1024, \"arguments of %s\");\n", alias, in.Kernel.Name)
	return alias
}

func (s *source) functor(f *functor.Functor) string {
	if name, ok := s.functors[f.Key()]; ok {
		return name
	}
	name := fmt.Sprintf("F%d", len(s.functors))
	s.functors[f.Key()] = name
	fmt.Fprintf(&s.decls, "struct %s {  // %s\n%s};\n", name, strings.ReplaceAll(codegen.FunctorNote(f), "\n", " "),
		codegen.FunctorBody(f))
	return name
}

func fields(list []rkernels.Field, offsets []int64) string {
	parts := make([]string, len(list))
	for i, f := range list {
		parts[i] = "." + f.Name + " = " + argument(f.Value, offsets)
	}
	return strings.Join(parts, ", ")
}

func argument(v rkernels.ArgValue, offsets []int64) string {
	switch v := v.(type) {
	case rkernels.Int:
		if int64(v) == math.MinInt64 {
			return "INT64_MIN"
		}
		return fmt.Sprint(int64(v))
	case rkernels.Float:
		return fmt.Sprintf("rk::bit_cast<float>(uint32_t(%d))", math.Float32bits(float32(v)))
	case rkernels.Ref:
		return fmt.Sprintf("rt::Ref{RT_ARENA(%d)}", offsets[v.Buffer]+v.Offset)
	case rkernels.List:
		parts := make([]string, len(v))
		for i, e := range v {
			parts[i] = argument(e, offsets)
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case rkernels.Struct:
		return "{" + fields(v, offsets) + "}"
	}
	panic(fmt.Sprintf("BUG: argument of type %T", v))
}

// text is the whole program, which is the other side of server: it reads requests and answers each with the memory as
// it is afterwards.
func (s *source) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "#include %q\n", preludeFile)
	var names []string
	for n := range s.includes {
		names = append(names, n)
	}
	sort.Strings(names)
	for _, n := range names {
		fmt.Fprintf(&b, "#include %q\n", n)
	}
	b.WriteString(serverHead)
	b.WriteString(stagedHead)
	b.WriteString(s.decls.String())
	b.WriteString(s.runs.String())
	b.WriteString("static bool (*const kRuns[])(char*, int) = {\n")
	for i := range s.count {
		fmt.Fprintf(&b, "  run%d,\n", i)
	}
	b.WriteString("};\n" + serverMain)
	return b.String()
}

const serverHead = `
// One is a kernel whose only rTask is a chosen rTask of K.
template <class K>
struct Step {};
template <rt::Streams K>
struct Step<K> {
  static constexpr int kStreamStep = K::kStreamStep;
};
template <class K>
struct One : Step<K> {
  struct Args {
    typename K::Args all;
    int task;
  };
  static constexpr int kThreads = K::kThreads, kShared = K::kShared;
  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int) { K::compute_rtask(t, a.all, a.task); }
};

static int seed = 1;

template <class K>
static bool run(const typename K::Args& args, int tasks, char* mem, int task, const rt::harness::Block* blocks = nullptr) {
  rt::harness::Bases bases{};
  bases.at[0] = mem;
  const rt::harness::Result r =
      task < 0 ? rt::harness::run<K>(args, tasks, bases, ++seed, blocks)
               : rt::harness::run<One<K>>({args, task}, 1, bases, ++seed, blocks ? blocks + task : nullptr);
  if (!r.ok) std::fprintf(stderr, "%s\n", r.error);
  return r.ok;
}
`

// On a GPU the memory of a request is copied to the device and back.
const serverMain = `
#if defined(__CUDACC__)
static bool run_request(int id, int task, char* mem, size_t size) {
  char* device = nullptr;
  if (cudaMalloc(&device, size) != cudaSuccess) return false;
  cudaMemcpy(device, mem, size, cudaMemcpyHostToDevice);
  const bool ok = kRuns[id](device, task) && cudaMemcpy(mem, device, size, cudaMemcpyDeviceToHost) == cudaSuccess;
  cudaFree(device);
  return ok;
}
#else
static bool run_request(int id, int task, char* mem, size_t) { return kRuns[id](mem, task); }
#endif

int main() {
  struct {
    int run, task;
    long long size;
  } request;
  while (std::fread(&request, sizeof request, 1, stdin) == 1) {
    char* mem = static_cast<char*>(std::aligned_alloc(256, (request.size + 255) / 256 * 256));
    if (std::fread(mem, 1, request.size, stdin) != size_t(request.size)) return 1;
    const char ok = run_request(request.run, request.task, mem, request.size);
    std::fwrite(&ok, 1, 1, stdout);
    std::fwrite(mem, 1, request.size, stdout);
    std::fflush(stdout);
    std::free(mem);
  }
  return 0;
}
`
