package toolchain

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"
)

// NVCC is CUDA's compiler.
type NVCC struct {
	Path string
}

// FindNVCC finds nvcc in this order: the one that flag names, $NVCC, $CUDA_HOME and $CUDA_PATH, PATH, the folder where
// toolkits are usually installed, and the packages that pip installs into the active virtual environment.
func FindNVCC(flag string) (*NVCC, error) {
	p, err := chosen("nvcc", flag, "NVCC")
	if err != nil {
		return nil, err
	}
	if p != "" {
		return &NVCC{p}, nil
	}
	var places []string
	for _, v := range []string{"CUDA_HOME", "CUDA_PATH"} {
		if home := os.Getenv(v); home != "" {
			places = append(places, filepath.Join(home, "bin", "nvcc"))
		}
	}
	places = append(places, "nvcc", "/usr/local/cuda/bin/nvcc")
	if venv := os.Getenv("VIRTUAL_ENV"); venv != "" {
		for _, pattern := range []string{"cu*", "cuda_nvcc"} {
			found, _ := filepath.Glob(filepath.Join(venv, "lib", "python*", "site-packages", "nvidia", pattern, "bin",
				"nvcc"))
			places = append(places, found...)
		}
	}
	if p = lookAll(places); p == "" {
		return nil, &Missing{"nvcc", "install the CUDA toolkit and set CUDA_HOME, or name nvcc in NVCC"}
	}
	return &NVCC{p}, nil
}

var releaseText = regexp.MustCompile(`release (\d+\.\d+)`)

// Version is nvcc's release, such as "13.0".
func (n *NVCC) Version(ctx context.Context) (string, error) {
	r, err := run(ctx, "", n.Path, "--version")
	if err != nil {
		return "", err
	}
	m := releaseText.FindStringSubmatch(r.Output)
	if m == nil {
		return "", &Failed{Command: []string{n.Path, "--version"}, Output: r.Output,
			Err: errors.New("tells no release")}
	}
	return m[1], nil
}

// libraryFlags tell the linker where CUDA's run-time library is. The toolkit keeps it in lib64 and pip's packages in
// lib; some packages have only the shared library.
func (n *NVCC) libraryFlags() []string {
	real := n.Path
	if p, err := filepath.EvalSymlinks(n.Path); err == nil {
		real = p
	}
	root := filepath.Dir(filepath.Dir(real))
	for _, lib := range []string{"lib64", "lib", filepath.Join("targets", "x86_64-linux", "lib")} {
		dir := filepath.Join(root, lib)
		if _, err := os.Stat(filepath.Join(dir, "libcudart_static.a")); err == nil {
			return []string{"-L" + dir}
		}
	}
	for _, lib := range []string{"lib64", "lib"} {
		dir := filepath.Join(root, lib)
		if found, _ := filepath.Glob(filepath.Join(dir, "libcudart.so*")); len(found) > 0 {
			return []string{"-L" + dir, "-cudart", "shared", "-Xlinker", "-rpath," + dir}
		}
	}
	return nil
}

// ArchFlags turns architectures such as "sm_90" into flags for code generation. They ask for machine code only and for
// no PTX. A GPU of another architecture could run PTX, but with a plan that was made for other hardware; without it
// the library refuses to open there. Code for sm_90 is code for sm_90a: all GPUs of compute capability 9.0 run it, and
// it may use what they have for themselves, such as wgmma.
func ArchFlags(archs []string) ([]string, error) {
	var flags []string
	for _, a := range archs {
		num := strings.TrimPrefix(a, "sm_")
		if num == a || !archNumber.MatchString(num) {
			return nil, fmt.Errorf("target %q is no GPU architecture; want sm_80, sm_90, …", a)
		}
		num = strings.TrimPrefix(CodeArch(a), "sm_")
		flags = append(flags, "-gencode", "arch=compute_"+num+",code=sm_"+num)
	}
	return flags, nil
}

// CodeArch is the architecture that code for an architecture is compiled for: with what its generation has for itself.
func CodeArch(arch string) string {
	if arch == "sm_90" {
		return "sm_90a"
	}
	return arch
}

var archNumber = regexp.MustCompile(`^\d{2,3}[af]?$`)

// LineInfo makes nvcc write a line table, which says where code comes from. The code itself stays the same.
const LineInfo = "-lineinfo"

// Build describes the result of a build for GPUs and the commands that it took.
type Build struct {
	Compiler string   `json:"compiler"`
	Flags    []string `json:"flags"`
	Archs    []string `json:"archs"`
	Kernels  []Kernel `json:"kernels"`
	Spans    []Span   `json:"-"` // where all code comes from; only with LineInfo and a single architecture
	Runs     []*Run   `json:"-"`
}

// Kernel is what ptxas reports of one kernel on one architecture.
type Kernel struct {
	Name        string `json:"name"`
	Arch        string `json:"arch"`
	Registers   int    `json:"registers"`
	StackBytes  int    `json:"stack_bytes"`
	SpillStores int    `json:"spill_store_bytes"`
	SpillLoads  int    `json:"spill_load_bytes"`
	CodeBytes   int64  `json:"code_bytes"`
	// Serialised says that ptxas has every wgmma instruction wait for the one before: there are too few registers, or it
	// did not see where products begin and end.
	Serialised bool `json:"serialised,omitempty"`
}

// BuildLibrary compiles NAME.cu in dir for the given architectures into libNAME.so and libNAME.a.
func (n *NVCC) BuildLibrary(ctx context.Context, dir, name string, archs []string, flags ...string) (*Build, error) {
	c, err := n.prepare(ctx, dir, name, archs, flags...)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(c.folder)
	b := c.build
	err = c.compile(ctx, "-Xcompiler", "-fPIC", "-Xcompiler", "-fvisibility=hidden", "--keep", "--keep-dir", ".", "-c",
		name+".cu", "-o", name+".o")
	if err != nil {
		return b, err
	}
	if slices.Contains(flags, LineInfo) && len(archs) == 1 {
		if b.Spans, err = spansIn(c.folder); err != nil {
			return b, err
		}
	}
	folder := filepath.Base(c.folder) // as seen from dir
	object, temporary := filepath.Join(folder, name+".o"), "TMPDIR="+folder
	link := []string{n.Path, "-shared", "-Xcompiler", "-fPIC", "-Xlinker", "--version-script=" + name + ".map",
		"-Xlinker", "-soname=lib" + name + ".so"}
	link = append(append(link, c.arch...), object, "-o", "lib"+name+".so")
	if err := b.run(ctx, dir, append(link, n.libraryFlags()...), temporary); err != nil {
		return b, err
	}
	return b, b.run(ctx, dir, []string{n.Path, "-lib", object, "-o", "lib" + name + ".a"}, temporary)
}

// compilation is a run of nvcc on one source.
type compilation struct {
	build        *Build
	folder       string   // where it runs; the caller removes it
	arch         []string // flags of the architectures
	command, env []string
}

// prepare makes the folder for NAME.cu in dir, and the command that compiles it there.
func (n *NVCC) prepare(ctx context.Context, dir, name string, archs []string, flags ...string) (*compilation, error) {
	arch, err := ArchFlags(archs)
	if err != nil {
		return nil, err
	}
	version, err := n.Version(ctx)
	if err != nil {
		return nil, err
	}
	folder, err := buildFolder(dir, name)
	if err != nil {
		return nil, err
	}
	common := append([]string{"-std=c++20", "-O3"}, flags...)
	unnamed, env := withoutFolder(name + ".cu")
	return &compilation{
		build: &Build{Compiler: "nvcc " + version, Flags: common, Archs: archs}, folder: folder, arch: arch, env: env,
		command: slices.Concat([]string{n.Path}, common, unnamed, arch,
			[]string{"-Xptxas", "-v", "-frandom-seed=" + name}),
	}, nil
}

// compile runs nvcc with more flags, and takes from it what it says of the kernels.
func (c *compilation) compile(ctx context.Context, flags ...string) error {
	if err := c.build.run(ctx, c.folder, append(c.command, flags...), c.env...); err != nil {
		return err
	}
	c.build.Kernels = readKernels(c.build.Runs[0].Output)
	c.build.readCode(c.folder)
	return nil
}

// buildFolder makes a folder in dir with copies of the sources, in which nvcc compiles them and keeps its intermediate
// files. Whoever removes dir, or finds it abandoned, removes that folder with it. Line tables have the time of a source,
// which is made the same for all builds.
func buildFolder(dir, name string) (string, error) {
	folder, err := os.MkdirTemp(dir, "nvcc-")
	if err != nil {
		return "", err
	}
	for _, ext := range []string{".cu", ".h"} {
		data, err := os.ReadFile(filepath.Join(dir, name+ext))
		if errors.Is(err, fs.ErrNotExist) {
			continue // nvcc says so if it is needed
		}
		copied := filepath.Join(folder, name+ext)
		if err == nil {
			err = os.WriteFile(copied, data, 0o666)
		}
		if err == nil {
			err = os.Chtimes(copied, sourceTime, sourceTime)
		}
		if err != nil {
			os.RemoveAll(folder)
			return "", err
		}
	}
	return folder, nil
}

// sourceTime is the time that sources have in line tables.
var sourceTime = time.Unix(946684800, 0)

// withoutFolder are flags and an environment that keep the name of the folder in which nvcc works out of what it writes.
// From the path of a source cudafe++ and cicc derive the names of what is in unnamed namespaces, and line tables have
// the current folder, as $PWD spells it. /proc/self/cwd is a spelling that holds everywhere. Temporary files are in the
// folder, too.
func withoutFolder(source string) (flags, env []string) {
	path := "--orig_src_path_name " + source
	return []string{"-Xcudafe", path, "-Xcicc", path}, []string{"PWD=/proc/self/cwd", "TMPDIR=."}
}

func (b *Build) run(ctx context.Context, dir string, command []string, env ...string) error {
	r, err := runWith(ctx, dir, env, command...)
	b.Runs = append(b.Runs, r)
	return err
}

var (
	entryText = regexp.MustCompile(`Compiling entry function '([^']+)' for '([^']+)'`)
	stackText = regexp.MustCompile(`(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads`)
	usedText  = regexp.MustCompile(`Used (\d+) registers`)
	// ptxas says this of a function before it compiles it, or in between.
	serialText = regexp.MustCompile(`wgmma\.mma_async instructions are serialized .*function '([^']+)'`)
)

// readKernels reads what ptxas -v printed.
func readKernels(output string) []Kernel {
	var ks []Kernel
	serialised := map[string]bool{}
	for _, line := range strings.Split(output, "\n") {
		if m := serialText.FindStringSubmatch(line); m != nil {
			serialised[m[1]] = true
			continue
		}
		if m := entryText.FindStringSubmatch(line); m != nil {
			ks = append(ks, Kernel{Name: m[1], Arch: m[2]})
			continue
		}
		if len(ks) == 0 {
			continue
		}
		k := &ks[len(ks)-1]
		if m := stackText.FindStringSubmatch(line); m != nil {
			k.StackBytes, k.SpillStores, k.SpillLoads = atoi(m[1]), atoi(m[2]), atoi(m[3])
		}
		if m := usedText.FindStringSubmatch(line); m != nil {
			k.Registers = atoi(m[1])
		}
	}
	for i := range ks {
		ks[i].Serialised = serialised[ks[i].Name]
	}
	sort.Slice(ks, func(i, j int) bool {
		return ks[i].Arch < ks[j].Arch || ks[i].Arch == ks[j].Arch && ks[i].Name < ks[j].Name
	})
	return ks
}

func atoi(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}

// readCode adds the size of each kernel's machine code, which is a section of the cubin files that nvcc has kept. The
// names of these files contain the architecture only if there are several.
func (b *Build) readCode(keep string) {
	cubins, _ := filepath.Glob(filepath.Join(keep, "*.cubin"))
	for _, p := range cubins {
		f, err := elf.Open(p)
		if err != nil {
			continue
		}
		for i := range b.Kernels {
			k := &b.Kernels[i]
			named := strings.Contains(filepath.Base(p), "_"+strings.TrimPrefix(k.Arch, "sm_")+".")
			if s := f.Section(".text." + k.Name); s != nil && (named || len(cubins) == 1) {
				k.CodeBytes = int64(s.Size)
			}
		}
		f.Close()
	}
}

// spansIn reads from the only cubin file of a folder where its code comes from.
func spansIn(keep string) ([]Span, error) {
	cubins, _ := filepath.Glob(filepath.Join(keep, "*.cubin"))
	if len(cubins) != 1 {
		return nil, fmt.Errorf("nvcc left %d cubin files, want one", len(cubins))
	}
	return readSpans(cubins[0])
}

// BuildProgram compiles one source in dir into an executable for this machine's GPU.
func (n *NVCC) BuildProgram(ctx context.Context, dir, out, source string, flags ...string) error {
	return n.buildProgram(ctx, dir, out, source, []string{"-arch=native"}, flags)
}

// BuildProgramFor compiles one source in dir into an executable for an architecture, "sm_90".
func (n *NVCC) BuildProgramFor(ctx context.Context, dir, out, source, arch string, flags ...string) error {
	archFlags, err := ArchFlags([]string{arch})
	if err != nil {
		return err
	}
	return n.buildProgram(ctx, dir, out, source, archFlags, flags)
}

func (n *NVCC) buildProgram(ctx context.Context, dir, out, source string, arch, flags []string) error {
	command := append([]string{n.Path, "-std=c++20", "-x", "cu"}, arch...)
	command = append(append(command, flags...), source, "-o", out)
	_, err := run(ctx, dir, append(command, n.libraryFlags()...)...)
	return err
}

// BuildObject compiles one source in dir into an object file for an architecture, and reports its kernels.
func (n *NVCC) BuildObject(ctx context.Context, dir, source, object, arch string, flags ...string) ([]Kernel, error) {
	archFlags, err := ArchFlags([]string{arch})
	if err != nil {
		return nil, err
	}
	keep, err := filepath.Abs(dir)
	if err == nil {
		keep, err = os.MkdirTemp(keep, "nvcc-")
	}
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(keep)
	command := append([]string{n.Path, "-std=c++20", "-O3", "-x", "cu"}, archFlags...)
	command = append(append(command, flags...), "-Xptxas", "-v", "--keep", "--keep-dir", keep, "-c", source,
		"-o", object)
	r, err := run(ctx, dir, command...)
	if err != nil {
		return nil, err
	}
	b := &Build{Kernels: readKernels(r.Output)}
	b.readCode(keep)
	return b.Kernels, nil
}

// LinkProgram links object files in dir to an executable.
func (n *NVCC) LinkProgram(ctx context.Context, dir, out string, objects []string) error {
	command := append(append([]string{n.Path}, objects...), "-o", out)
	_, err := run(ctx, dir, append(command, n.libraryFlags()...)...)
	return err
}
