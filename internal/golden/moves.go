package golden

import (
	"fmt"

	"github.com/rammerc/rammerc/codegen"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/schema"
)

// moveTable holds the moves of a candidate whose operands the executor copies to the import area and whose results it
// copies out. Each rTask has the same number of imports, and of exports; where it needs fewer, moves of no elements
// fill the rest.
type moveTable struct {
	at               int64 // where the table begins in the memory of a request
	data             []byte
	imports, exports int
	area             int64 // size of the import area in elements
}

func newMoveTable(c *roperator.Candidate, offsets []int64, at int64) *moveTable {
	t := &moveTable{at: at, area: c.ImportArea()}
	tasks := make([][2][][]byte, c.Tasks)
	for task := range tasks {
		tasks[task] = [2][][]byte{plainMoves(c.Imports, offsets, task), plainMoves(c.Exports, offsets, task)}
		t.imports, t.exports = max(t.imports, len(tasks[task][0])), max(t.exports, len(tasks[task][1]))
	}
	for _, task := range tasks {
		for side, n := range []int{t.imports, t.exports} {
			for _, m := range task[side] {
				t.data = append(t.data, m...)
			}
			t.data = append(t.data, make([]byte, (n-len(task[side]))*schema.MoveBytes)...)
		}
	}
	return t
}

// plainMoves are the moves of an rTask whose operands and results are all in plain memory.
func plainMoves(list []roperator.Staged, offsets []int64, task int) [][]byte {
	var out [][]byte
	for i := range list {
		buf := list[i].Access.View.Buf
		for _, r := range list[i].AppendRuns(nil, task) {
			move := schema.Move{
				At: uint64(offsets[buf.ID] + roperator.WordBytes*r.Elem), Staged: uint32(r.At), Step: uint32(r.Stride),
				Count: uint16(r.Count),
				Kind:  schema.PlainMove,
			}
			out = append(out, move.Append(nil))
		}
	}
	return out
}

// stagedHead is a kernel around one with moves. It does what the executor would do: it copies the operands to the
// import area, then calls the rKernel, which writes its results through the exports.
const stagedHead = `
template <class K, bool kResident>
struct Staged {
  struct Args {
    typename K::Args all;
    rt::Ref moves;
    int imports, exports;
  };
  static constexpr int kThreads = K::kThreads, kArea = (K::kShared + 127) / 128 * 128;
  static constexpr int kShared = kArea + 4 * 8192;
  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    const rt::Move* moves = t.ptr<const rt::Move>(a.moves) + rtask * (a.imports + a.exports);
    float* in = reinterpret_cast<float*>(t.smem + kArea);
    for (int k = 0; k < a.imports; ++k) {
      for (int i = t.tid; i < moves[k].count; i += kThreads) {
        in[moves[k].staged + i] = t.ptr<const float>(rt::Ref{moves[k].at})[i * moves[k].step];
      }
    }
    t.sync();
    rt::Task u = t;
    u.in = in, u.exports = moves + a.imports, u.export_count = a.exports;
    if constexpr (kResident) {
      typename K::Resident kept;
      K::load(u, a.all, rtask, kept);
      K::prepare(u, a.all, rtask, kept);
      t.sync();
      K::compute_rtask(u, a.all, rtask, kept);
    } else {
      K::compute_rtask(u, a.all, rtask);
    }
  }
};
`

// runStaged emits the body of the function that runs a candidate with moves.
func (s *source) runStaged(c *roperator.Candidate, alias string, offsets []int64, t *moveTable) {
	if t.area > 8192 {
		panic("BUG: a case with an import area that is too large for stagedHead")
	}
	kernel := fmt.Sprintf("Staged<%s, %t>", alias, c.Inst.Kernel.Resident)
	fmt.Fprintf(&s.runs, "  static const %s::Args args = {{%s}, rt::Ref{RT_ARENA(%d)}, %d, %d};\n",
		kernel, codegen.Initialiser(c.Args, offsets), t.at, t.imports, t.exports)
	fmt.Fprintf(&s.runs, "  return run<%s>(args, %d, mem, task, nullptr);\n}\n", kernel, c.Tasks)
}
