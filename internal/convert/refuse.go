package convert

import (
	"strings"

	"github.com/rammerc/rammerc/internal/diag"
)

// obstacle is something that cannot be converted, and what to do about it.
type obstacle struct{ what, help string }

// obstacles has names that stand in the way wherever the kernel uses them.
var obstacles = map[string]obstacle{
	"cooperative_groups": cooperative,
	"this_thread_block":  cooperative,
	"tiled_partition":    cooperative,
	"coalesced_threads":  cooperative,
	"this_grid": {"synchronises the whole grid",
		"cut the kernel into two where the grid is synchronised"},
	"grid_group": {"synchronises the whole grid",
		"cut the kernel into two where the grid is synchronised"},
	"cudaTextureObject_t": texture,
	"cudaSurfaceObject_t": texture,
	"texture":             texture,
	"surface":             texture,
	"tex1D":               texture,
	"tex2D":               texture,
	"tex3D":               texture,
	"tex1Dfetch":          texture,
	"tex2DLayered":        texture,
	"surf2Dread":          texture,
	"surf2Dwrite":         texture,
	"nvcuda":              tensorCores,
	"wmma":                tensorCores,
	"__activemask": {"asks which threads of the warp run together, which is up to the hardware",
		"give the mask of the threads that must"},
	"__shfl":                  oldShuffle,
	"__shfl_up":               oldShuffle,
	"__shfl_down":             oldShuffle,
	"__shfl_xor":              oldShuffle,
	"__ballot":                oldShuffle,
	"__any":                   oldShuffle,
	"__all":                   oldShuffle,
	"__pipeline_memcpy_async": asynchronous,
	"__pipeline_commit":       asynchronous,
	"memcpy_async":            asynchronous,
	"__cluster_dims__":        clusters,
	"cluster_group":           clusters,
	"this_cluster":            clusters,
	"clusterIdx":              clusters,
	"malloc":                  {"takes memory from the heap of the device", "give it scratch memory as an argument"},
	"cudaDeviceSynchronize":   parallelism,
	"cudaLaunchKernel":        parallelism,
	"cudaStreamCreate":        parallelism,
	"__managed__":             {"uses managed memory", "pass it as an argument"},
	"__grid_constant__":       {"takes a parameter by its address", "pass pointers and numbers"},
}

var (
	cooperative = obstacle{"uses cooperative groups",
		"__syncthreads and the __shfl_*_sync functions do the same for blocks and warps"}
	texture     = obstacle{"reads a texture or a surface", "read plain memory"}
	tensorCores = obstacle{"uses the C++ interface of tensor cores, which the emulator does not have", ""}
	oldShuffle  = obstacle{"exchanges in a warp without saying between which threads, as before CUDA 9",
		"use the function with _sync"}
	asynchronous = obstacle{"copies asynchronously through the pipeline interface", "copy with loads and stores"}
	clusters     = obstacle{"uses clusters of thread blocks", ""}
	parallelism  = obstacle{"launches kernels on the device",
		"launch them one after another from the host: as several operators"}
)

// refuse lists what stands in the way of converting the kernel.
func (p *program) refuse(l *diag.List) {
	for _, it := range p.items {
		if !it.taken {
			continue
		}
		p.refuseVariable(l, it)
		it.node.walk(func(n *node) bool {
			p.refuseNode(l, it.src, n)
			return n.kind != "ERROR"
		})
	}
}

func (p *program) refuseNode(l *diag.List, s *source, n *node) {
	stop := func(what, help string) {
		l.Add(s.at(n, "not-convertible", help, "the kernel %s", what))
	}
	switch n.kind {
	case "ERROR", "MISSING":
		if s.pragma(n) { // what a compiler makes of it does not matter
			return
		}
		text, _, _ := strings.Cut(s.of(n), "\n")
		l.Add(s.at(n, "not-parsed", "macros that the parser cannot place can be named under blank",
			"%q cannot be parsed here", text))
	case "gnu_asm_expression":
		stop("has PTX in it, which the emulator does not have", "write it in C++, or with intrinsics")
	case "kernel_call_syntax":
		stop(parallelism.what, parallelism.help)
	case "new_expression", "delete_expression":
		stop("takes memory from the heap of the device", "give it scratch memory as an argument")
	case "identifier", "type_identifier", "namespace_identifier", "__managed__":
		name := s.of(n)
		o, ok := obstacles[name]
		if ok && p.byName[name] == nil {
			stop(o.what+" ("+name+")", o.help)
		}
	}
}

// refuseVariable reports variables that the host fills, or that live from launch to launch.
func (p *program) refuseVariable(l *diag.List, it *item) {
	n := it.node
	if n.kind != "declaration" {
		return
	}
	head := it.src.text[n.start:n.end]
	initialised := n.of("init_declarator") != nil
	switch {
	case n.of("function_declarator") != nil:
	case strings.Contains(head, "__constant__") && !initialised:
		l.Add(it.src.at(n, "not-convertible", "pass them as an input",
			"the kernel reads constant memory that the host fills: %s", it.names[0]))
	case strings.Contains(head, "__device__") && !strings.Contains(head, "const"):
		l.Add(it.src.at(n, "not-convertible", "pass it as scratch memory",
			"the kernel uses a variable that lives from launch to launch: %s", it.names[0]))
	}
}
