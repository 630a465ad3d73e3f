"""How much stands in machine code between the wait for an rTask's inputs and its first load behind that, and between the
last products of warp groups and the first store.

    python3 behind_wait.py OUT.json LIBRARY…

Each LIBRARY is a folder that `rammerc compile --target sm_90 --emit all --code` has made. nvdisasm of a CUDA toolkit must
be found, or be named by NVDISASM. No GPU is needed.

What an rTask executes there is on the path of everything that waits for it, while what it executes before the wait is
not. For each wait of each rKernel the result has the instructions up to the first load from global memory, and how many
of these read shared memory, where the arguments are. For each place where warp groups have made their last products it
has the instructions up to the first store to global memory, and how many of these are barriers and loads from global
memory. Code is taken as it lies there: what is in between may also be a branch that is not taken.
"""
import bisect
import json
import os
import re
import shutil
import subprocess
import sys

ELF, CUDA = b"\x7fELF", 190  # e_machine of machine code for GPUs
WAIT = "ACQBULK"
LOAD = re.compile(r"\b(LDG|LDGSTS|UTMALDG|UBLKCP|UBLKPF)\b")
SHARED = re.compile(r"\bLDS\b")
MULTIPLIED = "WARPGROUP.DEPBAR.LE gsb0, 0x0"  # no products are under way any more
STORE = re.compile(r"\bSTG\b")
BARRIER = re.compile(r"\bBAR\b")
INSTRUCTION = re.compile(r"^\s+/\*([0-9a-f]{4,})\*/\s+(.*?);")
LINE = re.compile(r"line (\d+)")


def sections(source):
    """The first lines of the files that an emitted source is made of, and their names. Behind them are functors."""
    starts, names = [], []
    with open(source) as f:
        for number, line in enumerate(f, 1):
            found = re.match(r"// =+ (\S+) =+", line)
            if found or line.startswith("namespace functors"):
                starts.append(number)
                names.append(found.group(1) if found else "")
    return starts, names


def machine_code(library):
    """The largest program for GPUs in a shared library."""
    with open(library, "rb") as f:
        data = f.read()
    at = [m.start() for m in re.finditer(re.escape(ELF), data) if data[m.start() + 18] == CUDA] + [len(data)]
    return max((data[a:b] for a, b in zip(at, at[1:])), key=len)


def instructions(cubin):
    """Lists of (instruction, lines that it is inlined from, the innermost first), one for each CUDA kernel."""
    tool = os.environ.get("NVDISASM") or shutil.which("nvdisasm")
    if not tool:
        sys.exit("behind_wait.py: no nvdisasm; set NVDISASM")
    text = subprocess.run([tool, "-gi", "-c", cubin], capture_output=True, text=True, check=True).stdout
    kernels, lines, fresh = [], (), True
    for line in text.splitlines():
        if line.startswith(".text."):
            kernels.append([])
        elif "//## File" in line:
            lines = (() if fresh else lines) + tuple(int(n) for n in LINE.findall(line))
            fresh = False
            continue
        elif kernels and (found := INSTRUCTION.match(line)):
            kernels[-1].append((found.group(2), lines))
        fresh = True
    return kernels


def rkernel(lines, starts, names):
    """The rKernel that an instruction is from: the innermost file of one. None of the executor has one."""
    for number in lines:
        k = bisect.bisect_right(starts, number) - 1
        name = names[k] if k >= 0 else ""
        if "/" in name and not name.startswith(("common/", "rt/", "backend/")):
            return os.path.splitext(os.path.basename(name))[0]
    return None


def until(code, end, *counted):
    """How many instructions there are up to one that matches `end`, with it, how many of them match each of `counted`,
    and its lines; None if the kernel exits before."""
    counts = [0] * len(counted)
    for number, (text, lines) in enumerate(code, 1):
        if "EXIT" in text:
            return None
        for i, pattern in enumerate(counted):
            counts[i] += bool(pattern.search(text))
        if end.search(text):
            return [number, *counts], lines
    return None


def measure(folder):
    """For each rKernel of a library its waits, [instructions, of which read shared memory], and its ends of products,
    [instructions, of which are barriers, of which load], sorted."""
    name = next(f[:-len(".plan.json")] for f in sorted(os.listdir(folder)) if f.endswith(".plan.json"))
    starts, names = sections(os.path.join(folder, name + ".cu"))
    cubin = os.path.join(folder, name + ".cubin.tmp")
    with open(cubin, "wb") as f:
        f.write(machine_code(os.path.join(folder, f"lib{name}.so")))
    try:
        kernels = instructions(cubin)
    finally:
        os.remove(cubin)
    waits, ends = {}, {}
    for code in kernels:
        for i, (text, lines) in enumerate(code):
            if WAIT in text and (found := until(code[i + 1:], LOAD, SHARED)):
                # What an rTask loads first is often loaded by a functor or a file that rKernels share.
                waits.setdefault(rkernel(found[1], starts, names) or "functors", []).append(found[0])
            if MULTIPLIED in text and (found := until(code[i + 1:], STORE, BARRIER, LOAD)):
                ends.setdefault(rkernel(lines, starts, names) or "functors", []).append(found[0])
    in_order = [{k: sorted(v) for k, v in sorted(found.items())} for found in (waits, ends)]
    return name, *in_order


def main(out, folders):
    result = {"schema": "rammerc/behind-wait/v2", "libraries": {}}
    for folder in folders:
        name, waits, ends = measure(folder)
        library = {"model": name, "behind_wait": waits, "behind_products": ends}
        result["libraries"][os.path.basename(os.path.normpath(folder))] = library
        print(folder)
        for what in ("behind_wait", "behind_products"):
            for kernel, counts in library[what].items():
                print(f"  {what:16} {kernel:24}", " ".join("/".join(map(str, n)) for n in counts))
    with open(out, "w") as f:
        json.dump(result, f, indent=1)
        f.write("\n")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2:])
