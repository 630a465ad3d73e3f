package measure

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/rammerc/rammerc/codegen"
	"github.com/rammerc/rammerc/codegen/backend"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/roperator"
)

// machineSources are the C++ of the machine.
//
//go:embed machine
var machineSources embed.FS

// writeHeaders writes what all parts include: the machine, the run time, the back ends and the rKernels.
func writeHeaders(dir string, kernels fs.FS, groups []*group) error {
	if err := backend.CopySources(dir); err != nil {
		return err
	}
	if err := os.CopyFS(dir, machineSources); err != nil {
		return err
	}
	if err := os.CopyFS(dir, kernels); err != nil {
		return err
	}
	for _, gr := range groups {
		for _, x := range gr.subjects {
			if err := writeUsers(dir, x.cand.Inst.Kernel); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeUsers writes the source of a kernel that a user has brought.
func writeUsers(dir string, k *rkernels.Kernel) error {
	path := filepath.Join(dir, filepath.FromSlash(k.Source))
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	data, err := fs.ReadFile(k.Sources(rkernels.Files), k.Source)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o644)
}

// part is a program that holds some of the subjects: those of some instances.
type part struct {
	number   int
	subjects []*subject
}

func (p *part) name() string { return fmt.Sprintf("part%d", p.number) }

// source is the part's C++: its instances, a kernel for each, and an entry for each subject. It numbers the subjects.
func (p *part) source() string {
	var b, entries strings.Builder
	decls := codegen.NewDeclarations()
	kernels, areas := map[string]string{}, p.areas()
	for i, s := range p.subjects {
		s.entry = i
		alias, isNew := decls.Instance(s.cand.Inst)
		if isNew {
			kernels[alias] = fmt.Sprintf("kernel_%d", len(kernels))
			of := alias
			if area, staged := areas[s.cand.Inst.Key()]; staged {
				of = kernels[alias] + "_staged"
				decls.Printf("using %s = measure::Staged<%s, %d>;\n", of, alias, area)
			}
			decls.Printf("MEASURED_KERNEL(%s, %s)\n", of, kernels[alias])
		}
		s.kernel = kernels[alias]
		blocks, moves, imports, exports := "nullptr", "nullptr", 0, 0
		if !Standalone(s.cand) {
			var text string
			moves = fmt.Sprintf("moves_%d", i)
			text, imports, exports = codegen.MoveInitialisers(s.cand, s.group.offsets)
			fmt.Fprintf(&b, "static const rt::Move %s[] = {%s};\n", moves, text)
		}
		if s.cand.Stream != nil {
			blocks = fmt.Sprintf("blocks_%d", i)
			fmt.Fprintf(&b, "static const measure::Block %s[] = {%s};\n", blocks,
				codegen.BlockInitialisers(s.cand, s.group.offsets))
		}
		fmt.Fprintf(&b, "static %s::Args args_%d = {%s};\n", alias, i,
			codegen.Initialiser(s.cand.Args, s.group.offsets))
		tiled, matrices := s.tiledMatrices(), "nullptr"
		if len(tiled) > 0 {
			matrices = fmt.Sprintf("matrices_%d", i)
			fmt.Fprintf(&b, "static rt::TiledMatrix* const %s[] = {%s};\n", matrices, strings.Join(tiled, ", "))
		}
		fmt.Fprintf(&entries,
			"    {measure::launch_of<%s_of>, measure::code_of<%s_of>, &args_%d, %s, %s, %d, %d, %d, %s, %d},\n",
			s.kernel, s.kernel, i, blocks, moves, imports, exports, s.cand.Tasks, matrices, len(tiled))
	}
	return "#include \"machine/entry.cuh\"\n#include \"common/math.cuh\"\n#include \"common/operand.cuh\"\n" +
		decls.Includes() + decls.String() + b.String() +
		"const measure::Entry measure::entries[] = {\n" + entries.String() + "};\n" +
		fmt.Sprintf("const int measure::entry_count = %d;\n", len(p.subjects))
}

// tiledMatrices are the addresses of the arguments whose tensor maps the machine makes.
func (s *subject) tiledMatrices() []string {
	var out []string
	for _, f := range s.cand.Args {
		if _, ok := f.Value.(rkernels.TiledMatrix); ok {
			out = append(out, fmt.Sprintf("&args_%d.%s", s.entry, f.Name))
		}
	}
	return out
}

// areas has the words that the candidates of an instance import at most, for instances whose operands the executor
// brings or that keep something on chip.
func (p *part) areas() map[string]int64 {
	out := map[string]int64{}
	for _, s := range p.subjects {
		if !Standalone(s.cand) {
			key := s.cand.Inst.Key()
			out[key] = max(out[key], roperator.WholeQuads(s.cand.ImportArea()))
		}
	}
	return out
}

func (p *part) write(dir string) error {
	return os.WriteFile(filepath.Join(dir, p.name()+".cu"), []byte(p.source()), 0o666)
}
