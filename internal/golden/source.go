package golden

import (
	"fmt"
	"strings"

	"github.com/rammerc/rammerc/codegen"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/roperator"
)

// source collects the C++ of a test's program: every distinct functor and instance once, and for each candidate a
// function that runs all of its rTasks or one of them.
type source struct {
	decls *codegen.Declarations
	runs  strings.Builder
	count int
}

func newSource() *source { return &source{decls: codegen.NewDeclarations()} }

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
	fmt.Fprintf(&s.runs, "  static const %s::Args args = {%s};\n", alias, codegen.Initialiser(c.Args, offsets))
	blocks := "nullptr"
	if c.Stream != nil {
		blocks = "blocks"
		fmt.Fprintf(&s.runs, "  static const rt::harness::Block blocks[] = {%s};\n",
			codegen.BlockInitialisers(c, offsets))
	}
	fmt.Fprintf(&s.runs, "  return run<%s>(args, %d, mem, task, %s);\n}\n", alias, c.Tasks, blocks)
	return id
}

// instance declares an instance, and that it is what its manifest says.
func (s *source) instance(in *rkernels.Instance) string {
	alias, isNew := s.decls.Instance(in)
	if !isNew {
		return alias
	}
	s.decls.Printf("static_assert(%s::kThreads == %d && %s::kShared == %d, \"the manifest of %s\");\n",
		alias, in.Threads(), alias, in.Shared(), in.Kernel.Name)
	if step := in.StreamStep(); step > 0 {
		s.decls.Printf("static_assert(%s::kStreamStep == %d, \"the manifest of %s\");\n", alias, step, in.Kernel.Name)
	}
	s.decls.Printf("static_assert(sizeof(%s::Args) <= 1024, \"arguments of %s\");\n", alias, in.Kernel.Name)
	return alias
}

// text is the whole program, which is the other side of server: it reads requests and answers each with the memory as
// it is afterwards.
func (s *source) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "#include %q\n", preludeFile)
	b.WriteString(s.decls.Includes())
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
static int seed = 1;

static bool said(const rt::harness::Result& r) {
  if (!r.ok) std::fprintf(stderr, "%s\n", r.error);
  return r.ok;
}

// Runs rTask number task, or all of them if it is -1.
template <class K>
static bool run(const typename K::Args& args, int tasks, char* mem, int task, const rt::harness::Block* blocks = nullptr) {
  rt::harness::Bases bases{};
  bases.at[0] = mem;
  const bool all = task < 0;
  return said(rt::harness::run<K>(args, all ? tasks : 1, bases, ++seed, blocks, all ? 0 : task));
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

int main(int, char** argv) {
  const int file = open(argv[1], O_RDWR);
  struct {
    int run, task;
    long long size;
  } request;
  char* mem = nullptr;
  size_t size = 0;
  while (std::fread(&request, sizeof request, 1, stdin) == 1) {
    if (size < size_t(request.size)) {
      if (mem != nullptr) munmap(mem, size);
      size = request.size;
      mem = static_cast<char*>(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
      if (mem == MAP_FAILED) return 1;
    }
    const char ok = run_request(request.run, request.task, mem, request.size);
    std::fwrite(&ok, 1, 1, stdout);
    std::fflush(stdout);
  }
  return 0;
}
`
